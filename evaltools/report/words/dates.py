"""Moments in words."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime


def moments_in_words(moments: Sequence[str]) -> str:
    """From the first to the last of moments in ISO 8601, to the minute; what is no such moment stays as it is.

    >>> moments_in_words(["2026-11-25T19:30:57+00:00"])
    '25 November 2026, 19:30 UTC'
    >>> moments_in_words(["2026-11-25T19:32:30+00:00", "2026-11-25T19:30:57+00:00"])
    '25 November 2026, 19:30 to 19:32 UTC'
    >>> moments_in_words(["2026-11-25T19:30:57+00:00", "2026-11-26T07:00:00+00:00"])
    '25 November 2026, 19:30 UTC to 26 November 2026, 07:00 UTC'
    >>> moments_in_words(["now"])
    'now'
    """
    ordered = sorted(set(moments))
    first, last = ordered[0], ordered[-1]
    begun, ended = _parsed(first), _parsed(last)
    if begun is None or ended is None:
        return " to ".join(dict.fromkeys((first, last)))
    if _in_words(begun) == _in_words(ended):
        return _in_words(begun)
    if begun.date() == ended.date() and begun.tzinfo == ended.tzinfo:
        return f"{_day(begun)}, {begun:%H:%M} to {_time(ended)}"
    return f"{_in_words(begun)} to {_in_words(ended)}"


def _parsed(text: str) -> datetime | None:
    """None for a day alone, and for what is no moment."""
    try:
        return datetime.fromisoformat(text) if "T" in text else None
    except ValueError:
        return None


def _in_words(moment: datetime) -> str:
    return f"{_day(moment)}, {_time(moment)}"


def _day(moment: datetime) -> str:
    return f"{moment.day} {moment:%B %Y}"


def _time(moment: datetime) -> str:
    return f"{moment:%H:%M %Z}".rstrip()
