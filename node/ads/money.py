"""Money: integer micro-units inside, decimal strings outside. 1 unit is 1,000,000 micros.

A CPM is the price of 1,000 impressions, also in micros; one impression costs a thousandth of it. Binary
floats never hold money: they appear only inside a formula whose result is rounded back to micros at once.
"""

from __future__ import annotations

import re

from node.core.errors import BadInput
from node.core.limits import money_micros_max

MICROS_PER_UNIT = 1_000_000
IMPRESSIONS_PER_CPM = 1_000
_DECIMAL_PLACES = 6
_DECIMAL = re.compile(r"(\d{1,12})(?:\.(\d{1,6}))?", re.ASCII)


def parse_money(text: object, field: str, *, allow_zero: bool = True) -> int:
    """Parse a decimal string such as "12.50" into micros.

    Plain digits with at most six decimal places; no sign, exponent, separator, NaN or infinity. A JSON number
    is refused because its binary value may not be the one that was written. Raises BadInput naming `field`.
    """
    if not isinstance(text, str):
        raise BadInput(field, 'money is a decimal string, for example "12.50"')
    match = _DECIMAL.fullmatch(text.strip())
    if match is None:
        raise BadInput(field, f"{text[:40]!r} is not a decimal amount of zero or more with at most 6 decimal places")
    units, fraction = match.groups()
    micros = int(units) * MICROS_PER_UNIT + int((fraction or "").ljust(_DECIMAL_PLACES, "0"))
    return check_micros(micros, field, allow_zero=allow_zero)


def parse_share(text: object, field: str) -> int:
    """Parse a share such as "0.2" of what is paid into millionths, from 0 to 1. Raises BadInput naming `field`."""
    ppm = parse_money(text, field)
    if ppm > MICROS_PER_UNIT:
        raise BadInput(field, "must not be more than 1, which is all of it")
    return ppm


def check_micros(micros: int, field: str, *, allow_zero: bool = True) -> int:
    """Return `micros` when it is a sensible amount; raises BadInput naming `field` otherwise."""
    if micros < 0:
        raise BadInput(field, "must not be negative")
    if micros == 0 and not allow_zero:
        raise BadInput(field, "must be more than zero")
    if micros > money_micros_max:
        raise BadInput(field, f"must not exceed {format_money(money_micros_max)}")
    return micros


def format_money(micros: int) -> str:
    """The shortest exact decimal string with at least two decimal places: 2500000 -> "2.50", 1 -> "0.000001"."""
    sign = "-" if micros < 0 else ""
    units, rest = divmod(abs(micros), MICROS_PER_UNIT)
    fraction = f"{rest:06d}".rstrip("0").ljust(2, "0")
    return f"{sign}{units}.{fraction}"


def impression_cost_micros(cpm_micros: int) -> int:
    """What one impression costs at this CPM, to the nearest micro, halves up."""
    return (cpm_micros + IMPRESSIONS_PER_CPM // 2) // IMPRESSIONS_PER_CPM


def to_units(micros: int) -> float:
    """Micros as currency units, for formulas only."""
    return micros / MICROS_PER_UNIT


def to_micros(units: float) -> int:
    """A formula's result in currency units back to micros, to the nearest."""
    return round(units * MICROS_PER_UNIT)
