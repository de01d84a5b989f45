"""The one word for what became of a row: tables, frames, files, charts and sentences have it from here."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from evaltools.result.result import STATE, Result, Row
from evaltools.result.section import Tone
from evaltools.result.verdict import Verdict

FELL_BACK: Final = "fell back"
NOT_CLEAN: Final = "not clean"


def errors_of(result: Result, row: Row) -> int:
    """In how many runs a configuration was given an input and gave no answer."""
    return sum(failure.configuration == row.name for failure in result.failed)


def is_clean(result: Result, row: Row) -> bool:
    """Whether it ran as asked: on its delegate, without a crash or an error."""
    return row.status == "measured" and not (row.fallback or row.not_clean or errors_of(result, row))


def word_of(result: Result, row: Row) -> str:
    """The kind of its verdict; of one that did not run as asked, what it did; empty where nothing was judged."""
    if row.status != "measured":
        return row.texts.get(STATE, "not measured")
    if not is_clean(result, row):
        return FELL_BACK if row.fallback else NOT_CLEAN
    return "" if row.verdict is None else row.verdict.kind


def verdict_of(result: Result, row: Row) -> Verdict | None:
    """Its verdict, with that word as its kind."""
    return None if row.verdict is None else replace(row.verdict, kind=word_of(result, row))


def tone_of(result: Result, row: Row) -> Tone:
    """The colour of that word; one that did not run as asked is never good, and a question without answer is open."""
    if row.status != "measured":
        return "bad" if row.texts.get(STATE) == "failed" else "missing"
    if not is_clean(result, row):
        return "bad"
    return "open" if row.verdict is None else row.verdict.tone
