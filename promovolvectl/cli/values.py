"""What people type as flags' values, checked before anything is sent; every error names the flag and exits 2."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from node.admin.protocol import Slot, SlotFloor
from node.core import limits
from promovolvectl.cli.select import closest, did_you_mean, usage

_MONEY: Final = re.compile(r"[0-9]{1,10}(\.[0-9]{1,6})?")
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_SIZE: Final = re.compile(r"([0-9]{1,5})x([0-9]{1,5})")
_MICROS: Final = 1_000_000
LONG_WORK_STATES: Final = ("running", "done", "failed", "cancelled")


def money(text: str, flag: str, *, zero: bool = False) -> str:
    """A decimal amount such as `12.50`, as it was typed; raises CommandFailed (2). `zero` allows nothing at all."""
    if not _MONEY.fullmatch(text):
        raise usage(flag, f"{text!r} is not an amount such as 12.50", f"{flag} 12.50")
    whole, _, rest = text.partition(".")
    micros = int(whole) * _MICROS + int(rest.ljust(6, "0") or 0)
    if micros > limits.money_micros_max:
        raise usage(flag, f"{text!r} is more than {limits.money_micros_max // _MICROS}", f"{flag} 12.50")
    if micros == 0 and not zero:
        raise usage(flag, "it must be more than zero", f"{flag} 12.50")
    return text


def share(text: str, flag: str) -> str:
    """A share such as `0.2`, from 0 to 1, as it was typed; raises CommandFailed (2)."""
    found = _MONEY.fullmatch(text)
    if not found or float(text) > 1:
        raise usage(flag, f"{text!r} is no share from 0 to 1", f"{flag} 0.2")
    return text


def identifier(text: str, what: str, example: str) -> str:
    """An id as the cluster takes it, where it becomes a file's name here first; raises CommandFailed (2)."""
    if not _ID.fullmatch(text):
        raise usage(what, f"{text[:80]!r} is not 1 to 64 letters, digits, '.', '_' and '-'", example)
    return text


def one_of(text: str, flag: str, known: Sequence[str]) -> str:
    """A word of a short list, or nothing; raises CommandFailed (2)."""
    if text and text not in known:
        wrong = f"{text!r} is not one of {', '.join(known)}.{did_you_mean(text, known)}"
        raise usage(flag, wrong, closest(flag, text, known))
    return text


def size(text: str, flag: str) -> tuple[int, int]:
    """`728x90`; raises CommandFailed (2)."""
    found = _SIZE.fullmatch(text)
    if found is None or not int(found[1]) or not int(found[2]):
        raise usage(flag, f"{text!r} is not WIDTHxHEIGHT in pixels", f"{flag} 728x90")
    return int(found[1]), int(found[2])


def slot(text: str, flag: str = "--slot") -> Slot:
    """`top:728x90`; raises CommandFailed (2)."""
    name, colon, pixels = text.rpartition(":")
    if not colon or not name:
        raise usage(flag, f"{text!r} is not NAME:WIDTHxHEIGHT", f"{flag} top:728x90")
    width, height = size(pixels, flag)
    return Slot(slot=name, width=width, height=height)


def slots(texts: list[str]) -> tuple[Slot, ...]:
    """All slots of a site, none twice; raises CommandFailed (2)."""
    found = tuple(slot(text) for text in texts)
    names = [item.slot for item in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise usage("--slot", f"{twice!r} is given twice", _once("--slot", texts))
    return found


def _once(flag: str, texts: Sequence[str]) -> str:
    """Each name's last word."""
    return " ".join(
        f"{flag} {shlex.quote(text)}" for text in {each.rpartition(":")[0]: each for each in texts}.values()
    )


def slot_floors(texts: Sequence[str]) -> tuple[SlotFloor, ...]:
    """`top:1.20` each, no slot twice; raises CommandFailed (2)."""
    flag = "--slot-floor"
    found: dict[str, SlotFloor] = {}
    for text in texts:
        name, colon, amount = text.rpartition(":")
        if not colon or not name:
            raise usage(flag, f"{text!r} is not NAME:AMOUNT", f"{flag} top:1.20")
        if name in found:
            raise usage(flag, f"{name!r} is given twice", _once(flag, texts))
        found[name] = SlotFloor(slot=name, floor_cpm=money(amount, flag, zero=True))
    return tuple(found.values())


def web_url(text: str, flag: str) -> str:
    """An http or https URL without credentials; raises CommandFailed (2)."""
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError as error:
        raise usage(flag, f"{text!r} is not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise usage(flag, f"{text!r} is not an http or https URL", f"{flag} https://example.com/")
    if "@" in parts.netloc:
        raise usage(flag, "a URL with a name or password in it is not used", f"{flag} https://{host}/")
    if len(text) > limits.url_chars_max:
        raise usage(flag, f"the URL is longer than {limits.url_chars_max} characters")
    return text
