"""Lengths of time as people type them: `90s`, `1h30m`, `2d`. Without a unit nobody knows what was meant."""

from __future__ import annotations

import re
from typing import Final

from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

_UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_LONGEST_MS: Final = 30 * 86_400_000


def milliseconds(text: str, flag: str = "--timeout", longest_ms: int = _LONGEST_MS, none: str = "") -> int:
    """Raises CommandFailed (2) naming the flag; `none` is what is said of no time at all."""
    parts = _PART.findall(text)
    if not parts or "".join(amount + unit for amount, unit in parts) != text:
        example = f"{text}s" if text.replace(".", "", 1).isdigit() else "90s"
        raise CommandFailed(
            ExitStatus.USAGE,
            "E-USAGE",
            f"{flag}: {text!r} is not a length of time with its unit (ms, s, m, h, d)",
            hint=f"{flag} {example}",
        )
    total = sum(float(amount) * _UNIT_MS[unit] for amount, unit in parts)
    if none and total < 1:
        raise CommandFailed(ExitStatus.USAGE, "E-USAGE", f"{flag}: {none}", hint=f"{flag} 90d")
    if not 1 <= total <= longest_ms:
        between = f"between 1ms and {longest_ms // _UNIT_MS['d']}d"
        raise CommandFailed(ExitStatus.USAGE, "E-USAGE", f"{flag}: {text!r} is not {between}", hint=f"{flag} 90s")
    return int(total)
