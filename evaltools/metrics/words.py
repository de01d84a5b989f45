"""Changes and sizes as texts: verdicts and whatever shows them ask here."""

from __future__ import annotations


def points(share: float | None) -> str:
    """A change of a share in points, with its sign."""
    return "no number" if share is None else f"{100 * share:+.2f}"


def change(value: float, low: float | None, high: float | None, is_share: bool) -> str:
    """A change, of a share in points, with its interval where it has one.

    >>> change(-0.027, -0.033, -0.021, is_share=False), change(-0.027, None, None, is_share=True)
    ('-0.027 (-0.033 to -0.021)', '-2.70 points')
    """
    span = "" if low is None or high is None else f" {ends(_signed(low, is_share), _signed(high, is_share))}"
    return f"{_signed(value, is_share)}{' points' if is_share else ''}{span}"


def _signed(value: float, is_share: bool) -> str:
    return points(value) if is_share else f"{value:+.3g}"


def ends(low: str, high: str) -> str:
    """The ends of an interval.

    >>> ends("1", "2")
    '(1 to 2)'
    """
    return f"({low} to {high})"


def at_most_changing(examples: int) -> str:
    """Where none of so many examples changed: fewer like them do, by the exact one-sided bound (95 %).

    >>> at_most_changing(100)
    '3 %'
    """
    return f"{100 * (1 - 0.05 ** (1 / examples)):.2g} %"


def two_digits(value: float | None) -> str:
    """A size or an error."""
    return "no number" if value is None else f"{value:.2g}"
