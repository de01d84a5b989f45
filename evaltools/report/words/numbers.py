"""Numbers, units and intervals as texts: whatever shows a figure, on a terminal, a page or in a file, asks here."""

from __future__ import annotations

import math
from typing import Final

from evaltools.metrics.interval import Interval
from evaltools.metrics.words import ends
from evaltools.result.figure import Figure

_SMALLEST_P: Final = 1e-9
_WIDEST_INTERVAL: Final = 3.0
"""Ends of an interval that are further apart than this, as a ratio, say nothing."""
_SHORTEST_S: Final = 0.001
_NEAR_1: Final = (0.1, 2.0)
"""Between these, factors have two digits behind the point."""


def three_digits(number: float) -> str:
    """Three digits, more before the point where there are more.

    >>> three_digits(0.05312), three_digits(12345.6)
    ('0.0531', '12346')
    """
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def milliseconds(microseconds: float) -> str:
    """Microseconds as milliseconds with three digits, never in scientific notation."""
    return f"{three_digits(microseconds / 1000)} ms"


def in_milliseconds(time_ms: float) -> str:
    """Milliseconds with three digits and their unit."""
    return f"{three_digits(time_ms)} ms"


def in_seconds(seconds: float) -> str:
    """Seconds with three digits and their unit, never in scientific notation.

    >>> in_seconds(0.0421), in_seconds(132.4), in_seconds(0.00002), in_seconds(0.0)
    ('0.0421 s', '132 s', '<0.001 s', '0 s')
    """
    return "<0.001 s" if 0 < seconds < _SHORTEST_S else f"{three_digits(seconds)} s"


def megabytes(size_bytes: int) -> str:
    """The size of a file in millions of bytes.

    >>> megabytes(1234567), megabytes(752)
    ('1.23', '<0.01')
    """
    return "<0.01" if 0 < size_bytes < 5000 else f"{size_bytes / 1e6:.2f}"


def percent(share: float, digits: int = 2) -> str:
    """A share, 0..1, in percent.

    >>> percent(0.715), percent(0.715, 1)
    ('71.50 %', '71.5 %')
    """
    return f"{100 * share:.{digits}f} %"


def figure(found: Figure) -> str:
    """A figure with its unit, a share in percent.

    >>> figure(Figure(0.715, is_share=True)), figure(Figure(None))
    ('71.50 %', 'no number')
    """
    if found.value is None:
        return "no number"
    return percent(found.value) if found.is_share else f"{found.value:.4g} {found.unit}".rstrip()


def figure_with_interval(found: Figure) -> str:
    """The same with its 95 % interval, where it has one: ``±`` where both ends are as far off, as it is shown.

    >>> figure_with_interval(Figure(0.75, is_share=True, interval=Interval(0.7, 0.8)))
    '75.00 % ±5.00'
    >>> figure_with_interval(Figure(250.8, "ms", interval=Interval(245.6, 251.8)))
    '250.8 ms (245.6 to 251.8)'
    """
    if found.value is None or found.interval is None:
        return figure(found)
    factor, width, end = (100, ".2f", ".2f") if found.is_share else (1, ".2g", ".4g")
    low, high = found.interval.low, found.interval.high
    below, above = (f"{factor * reach:{width}}" for reach in (found.value - low, high - found.value))
    span = f"±{above}" if below == above else ends(f"{factor * low:{end}}", f"{factor * high:{end}}")
    return f"{figure(found)} {span}"


def p_value(p: float) -> str:
    """A p-value in a cell.

    >>> p_value(0.351), p_value(0.0004), p_value(1e-12)
    ('p 0.35', 'p 0.0004', 'p <1e-9')
    """
    if p < _SMALLEST_P:
        return f"p <{_SMALLEST_P:.0e}".replace("e-0", "e-")
    return f"p {p:.2g}"


def in_unit(value: float | None, unit: str) -> str:
    """A figure with its unit; a share, 0..1, in ``%`` or ``points`` as a hundred times as much.

    >>> in_unit(0.985, "%"), in_unit(123456.7, "ms"), in_unit(None, "ms")
    ('98.5 %', '123457 ms', 'no number')
    """
    is_number = value is not None and math.isfinite(value)
    return f"{number_in(value, unit)} {unit}" if unit and is_number else number_in(value, unit)


def number_in(value: float | None, unit: str) -> str:
    """The same without the unit: four digits, more before the point where there are more."""
    if value is None:
        return "no number"
    scaled = 100 * value if unit in ("%", "points") else value
    return f"{scaled:.0f}" if 1e4 <= abs(scaled) < 1e15 else f"{scaled:.4g}"


def says_something(interval: Interval) -> bool:
    """Whether a factor or a time is known well enough that its ends are worth showing.

    >>> says_something(Interval(0.5, 1.4)), says_something(Interval(0.05, 50.0))
    (True, False)
    """
    return interval.low > 0 and interval.high / interval.low <= _WIDEST_INTERVAL


def times_as_fast(found: Figure) -> str:
    """A ratio of times that has a number as how many times as fast, with its interval, or the word for why it has none.

    >>> times_as_fast(Figure(0.5, interval=Interval(0.4, 0.625))), times_as_fast(Figure(14.0))
    ('2x (1.60 to 2.5)', 'about 0.071x')
    >>> times_as_fast(Figure(0.5, withheld="jumped"))
    'about 2x [times jumped]'
    """
    assert found.value
    interval = found.interval
    if interval is None or not says_something(interval):
        about = f"about {_two_digits(1 / found.value)}x"
        return f"{about} [times jumped]" if found.withheld == "jumped" else about
    return f"{_factor(1 / found.value)}x {ends(_factor(1 / interval.high), _factor(1 / interval.low))}"


def times_in_short(found: Figure) -> str:
    """The same without its interval, for a sentence.

    >>> times_in_short(Figure(0.5, interval=Interval(0.4, 0.625))), times_in_short(Figure(0.5, withheld="jumped"))
    ('2x', 'about 2x')
    """
    return times_as_fast(found).partition(" (")[0].partition(" [")[0]


def _factor(factor: float) -> str:
    """Two digits, or two behind the point near 1."""
    low, high = _NEAR_1
    return f"{factor:.2f}" if low <= factor < high else _two_digits(factor)


def _two_digits(factor: float) -> str:
    """More where there are more before the point."""
    return f"{factor:.0f}" if factor >= 10 else f"{factor:.2g}"
