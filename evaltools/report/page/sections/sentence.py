"""The sentence of the first screen: which configurations do the same job, and what the others do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from evaltools.report.page.sections.rows import ModelRow, ModelRows, verdict_of
from evaltools.report.page.sections.summary import is_lost
from evaltools.report.words.facts import counted, median_time
from evaltools.report.words.numbers import figure
from evaltools.report.words.verdicts import is_share
from evaltools.result.evaluation import NOT_REPEATABLE, EvaluationResult
from evaltools.result.places import reference_of

_SAME: Final = ("identical", "equivalent")
_OTHER: Final = ("worse", "better", "diverged", "fp16", "bf16", "int8")
"""Verdicts that say that answers are others; all else is open, or was not compared."""
_UNCHANGED: Final = ("identical", "unchanged")
"""The words for answers of which none changed, where too few were seen for a verdict."""
_ODD_REFERENCE: Final = "the reference is the odd one out"
_MOST_NAMED: Final = 2


def answer_of(results: Mapping[str, EvaluationResult]) -> str:
    """How many configurations do the same job as what they were compared with, and what the others do.

    Of one that was compared with nothing, what is known of it. It ends with why a run has not all of its examples.
    """
    early = dict.fromkeys(result.stopped for result in results.values() if result.stopped)
    return " ".join([_answer_of(results), *(f"Not complete: {why}." for why in early)])


def _answer_of(results: Mapping[str, EvaluationResult]) -> str:
    every = ModelRows.of(results)
    if not every.rows:
        (first, *_) = results.values()
        return f"Nothing was measured: {first.stopped or 'the result has no configurations'}."
    rows = [row for row in every.rows if row.configuration.role == "test"]
    judged = [row for row in rows if row.configuration.verdict is not None or is_lost(row)]
    if not judged:
        return _single(every, every.rows[0]) if len(every.rows) == 1 else _best_of(every, results)
    same = [row for row in judged if _gives_the_same(row)]
    others = [row for row in judged if not _gives_the_same(row)]
    parts = []
    if len(judged) == 1 and same:
        parts = [f"{_name(same[0], results)} gives the same answers as {_baseline(judged)}{_on_examples(same)}"]
    elif len(judged) > 1 and (same or all(map(_is_another, others))):
        verb = "gives" if len(same) == 1 else "give"
        parts = [
            f"{len(same) or 'None'} of {len(judged)} configurations {verb} the same answers as {_baseline(judged)}"
            f"{_on_examples(same)}"
        ]
    if len(others) <= _MOST_NAMED:
        parts += [f"{_name(row, results)} {_what_else(row)}" for row in others]
    else:
        counts = Counter(map(_in_a_word, others))
        words = ", ".join(f"{count} {word}" for word, count in counts.items())
        parts += [words if parts else f"Of {len(judged)} configurations: {words}"]
    if not same and all(row.is_clean and _kind(row) == "not decided" for row in others):
        who = f"{_name(others[0], results)} gives" if len(others) == 1 else f"{len(others)} configurations give"
        parts = [f"Whether {who} the same answers as {_baseline(judged)} is not decided"]
    parts += [f"the reference {_name(row, results)} {_unclean(row)}" for row in every.rows if _is_bad_reference(row)]
    if len(results) > 1:
        parts += _best(every, [row for row in every.rows if row.is_clean], results)
    return f"{'; '.join(parts)}."


def _single(found: ModelRows, row: ModelRow) -> str:
    entry = row.configuration
    accuracy = f", {found.heading} {_figure_of(found, row)}" if _figure_of(found, row) else ""
    examples = counted(entry.finished_examples, "example")
    return f'"{entry.name}": {examples}{accuracy}; it was compared with nothing.'


def _figure_of(found: ModelRows, row: ModelRow) -> str:
    """The figure that a row is judged by; empty where it has none."""
    known = math.nan if found.figure is None else row.figure(found.figure)
    return "" if math.isnan(known) else figure(known, found.metric)


def _best_of(found: ModelRows, results: Mapping[str, EvaluationResult]) -> str:
    """The best and the fastest of several configurations that were compared with nothing."""
    rows = [row for row in found.rows if row.is_clean]
    texts = [f"{counted(len(rows), 'configuration')} measured, compared with nothing", *_best(found, rows, results)]
    return f"{'; '.join(texts)}."


def _best(found: ModelRows, rows: Sequence[ModelRow], results: Mapping[str, EvaluationResult]) -> list[str]:
    """Which row has the best figure, and which is the fastest."""
    texts = []
    best, timed = found.best(rows), [row for row in rows if not math.isnan(row.p50_us)]
    if best is not None and not found.are_outputs:
        texts.append(f"{_name(best, results)} has the best {found.heading}, {_figure_of(found, best)}")
    if len(timed) > 1:
        fastest = min(timed, key=lambda row: row.p50_us)
        texts.append(f"{_name(fastest, results)} is the fastest, {median_time(fastest.configuration)}")
    return texts


def _gives_the_same(row: ModelRow) -> bool:
    """Whether the verdict says so, or no answer changed."""
    return row.is_clean and _says_the_same(row)


def _says_the_same(row: ModelRow) -> bool:
    return _kind(row) in _SAME or verdict_of(row) in _UNCHANGED


def _is_another(row: ModelRow) -> bool:
    """Whether it was measured as asked, and gives other answers."""
    return row.is_clean and _kind(row) in _OTHER


def _is_bad_reference(row: ModelRow) -> bool:
    return row.configuration.role == "reference" and bool(row.configuration.not_clean or row.errors)


def _on_examples(same: Sequence[ModelRow]) -> str:
    """How many examples show that no answer changed, where no more than that is known."""
    counts = [row.configuration.finished_examples for row in same if _kind(row) not in _SAME]
    return f" on {min(counts)} examples" if counts else ""


def _kind(row: ModelRow) -> str:
    verdict = row.configuration.verdict
    return "" if verdict is None else verdict.kind


def _name(row: ModelRow, results: Mapping[str, EvaluationResult]) -> str:
    """In quotes, as a configuration may have any name."""
    name = f'"{row.configuration.name}"'
    return f"{row.model} in {name}" if len(results) > 1 else name


def _baseline(rows: Sequence[ModelRow]) -> str:
    """What they were compared with, as a reader knows it."""
    names = set()
    for row in rows:
        reference = reference_of(row.configuration, row.result.configurations)
        if reference is not None and reference.other_model is not None:
            names.add(Path(reference.other_model.file).name)
        elif reference is not None and any(used.requested for used in reference.delegates):
            names.add(reference.name)
        else:
            names.add("the CPU")
    others = names - {"the CPU"}
    if len(names) > 1 and len(others) == 1:
        return f"{others.pop()} on the CPU"
    return names.pop() if len(names) == 1 else "their references"


def _in_a_word(row: ModelRow) -> str:
    """A word for one of many that do not give the same answers."""
    if row.configuration.fallback and not is_lost(row):
        return "on the CPU instead"
    return verdict_of(row) or "not compared" if row.is_clean or is_lost(row) else "not clean"


def _what_else(row: ModelRow) -> str:
    """What a configuration does that does not give the same answers."""
    if is_lost(row):
        return "was not measured"
    if row.configuration.fallback:
        return "ran on the CPU instead of its delegate"
    return _verdict_in_words(row) if row.is_clean else _unclean(row)


def _unclean(row: ModelRow) -> str:
    """What went wrong in its runs, and after errors what the other runs show."""
    entry = row.configuration
    if entry.not_clean == NOT_REPEATABLE:
        return NOT_REPEATABLE
    if entry.not_clean:
        return entry.crashes_of_runs or "did not end cleanly"
    text = f"returned an error in {row.errors} of {entry.finished_examples + entry.failed_examples} runs"
    if not entry.finished_examples or entry.verdict is None:
        return text
    others = f"gives the same answers as {_baseline([row])}" if _says_the_same(row) else _verdict_in_words(row)
    return f"{text} and {others} in the others"


def _verdict_in_words(row: ModelRow) -> str:
    verdict = row.configuration.verdict
    if verdict is None or verdict.kind == "not measured":
        return "was not compared"
    if verdict.change is not None and verdict.kind in ("worse", "better"):
        by = f"{100 * abs(verdict.change):.2f} points" if is_share(verdict) else f"{abs(verdict.change):.3g}"
        return f"is {verdict.kind} by {by}"
    word = verdict_of(row)
    if word == _ODD_REFERENCE:
        return f"shows that {word}"
    return f"diverged from {_baseline([row])}" if word == "diverged" else f"is {word}"
