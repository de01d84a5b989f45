"""Shares as a user writes them, ``70 %`` or ``0.5 points``: a share without its unit has two readings, and is refused.

Whoever writes ``0.5`` means half a point, or half of all examples. The two are a factor of a hundred apart, and the
wrong one makes a limit that no model breaks.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from evaltools.errors import UsageError

DEFAULT_MARGIN: Final = 0.005
"""The change of a share that counts as none where nobody states one: half a point."""
HUNDREDTHS: Final = ("%", "point", "points")
_AMOUNT: Final = re.compile(r"\s*(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>%|points?)?\s*")


def share_in(number: str, unit: str) -> float:
    """The number of a limit; ``70 %`` gives exactly the float of 7 / 10.

    >>> share_in("70", "%"), share_in("2", "")
    (0.7, 2.0)
    """
    return float(Decimal(number) / 100) if unit in HUNDREDTHS else float(number)


def without_unit(number: str, unit: str) -> str:
    """What is wrong with a share that has no unit: both readings, and what to write; ``unit`` is the one it needs.

    >>> without_unit("0.5", "points")
    ' has no unit: 0.5 points or 50 points? Write 0.5 points (5 of 1000 examples), or 50 points (half of them)'
    >>> without_unit("70", "%")
    ' has no unit: write 70 %'
    """
    given = Decimal(number)
    whole = f"{_plain(100 * given)} {unit}"
    if abs(given) > 1:
        return f" has no unit: write {_plain(given)} {unit}"
    small = f"{_plain(given)} {unit}"
    readings = f"{small} ({_of_examples(given / 100)}), or {whole} ({_of_examples(given)})"
    return f" has no unit: {small} or {whole}? Write {readings}"


def _plain(number: Decimal) -> str:
    return format(number.normalize(), "f")


def _of_examples(share: Decimal) -> str:
    return "half of them" if share == Decimal("0.5") else f"{_plain(1000 * share)} of 1000 examples"


def amount_of_flag(name: str, text: str) -> tuple[float, bool]:
    """The value of a flag such as ``--margin='0.5 points'``, and whether it was stated with a unit, as a share.

    >>> amount_of_flag("margin", "0.5 points"), amount_of_flag("margin", "0.1")
    ((0.005, True), (0.1, False))
    """
    found = _AMOUNT.fullmatch(text)
    if found is None:
        raise UsageError(f"--{name}={text}: not a number with its unit; write such as --{name}='0.5 points'")
    return share_in(found["number"], found["unit"] or ""), found["unit"] is not None


def share_of_flag(name: str, text: str, unit: str = "points") -> float:
    """The value of a flag that is a share above 0 and below 1; raises :class:`UsageError` for one without a unit.

    >>> share_of_flag("drop", "1 point"), share_of_flag("flip_rate", "1 %", "%")
    (0.01, 0.01)
    """
    value, has_unit = amount_of_flag(name, text)
    if not has_unit:
        raise UsageError(f"--{name}={text}{without_unit(text.strip(), unit)}")
    if not 0 < value < 1:
        raise UsageError(f"--{name}={text}: use more than 0 and less than 100 {unit}")
    return value
