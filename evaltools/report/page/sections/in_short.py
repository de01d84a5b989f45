"""The first screen of a page about evaluations: a sentence that answers, and a table of all configurations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from evaltools.metrics.metric import Absent
from evaltools.report.page.sections.accuracy import is_share, tone_of
from evaltools.report.tables.cells import delegated, figure_in_words, median_time, megabytes
from evaltools.report.tables.models import ModelRow, ModelRows, verdict_of
from evaltools.report.words.verdicts import change_with_interval
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.places import reference_of
from evaltools.result.section import Cell, Number, Table, Word
from evaltools.task_kind import kind_of

_SAME: Final = ("identical", "equivalent")
_UNCHANGED: Final = ("identical", "unchanged")
"""What is said of answers of which none changed, where too few were seen for a verdict."""
_MOST_NAMED: Final = 2
_CLEARLY: Final = 1.05
"""Times that differ by less are said to be as fast."""


def answer_of(results: Mapping[str, EvaluationResult]) -> str:
    """How many configurations do the same job as what they were compared with, and what the others do.

    Empty where nothing was compared, and for results of several tasks.
    """
    if not _is_one_task(results):
        return ""
    rows = [row for row in ModelRows.of(results).rows if row.configuration.role == "test"]
    judged = [row for row in rows if row.configuration.verdict is not None or _is_lost(row)]
    if not judged:
        return ""
    same = [row for row in judged if _gives_the_same(row)]
    others = [row for row in judged if not _gives_the_same(row)]
    said = []
    if len(judged) == 1 and same:
        said = [f"{_name(same[0], results)} gives the same answers as {_baseline(judged)}{_on_examples(same)}"]
    elif len(judged) > 1:
        verb = "gives" if len(same) == 1 else "give"
        said = [
            f"{len(same) or 'None'} of {len(judged)} configurations {verb} the same answers as {_baseline(judged)}"
            f"{_on_examples(same)}"
        ]
    if len(others) <= _MOST_NAMED:
        said += [f"{_name(row, results)} {_what_else(row)}" for row in others]
    else:
        counts = Counter(map(_in_a_word, others))
        said += [", ".join(f"{count} {word}" for word, count in counts.items())]
    return f"{'; '.join(said)}."


def summary_of(results: Mapping[str, EvaluationResult]) -> Table | None:
    """A row for each configuration: accuracy, change, verdict, latency, what ran on the delegate, size.

    None for results of several tasks, and where there is no configuration.
    """
    if not _is_one_task(results):
        return None
    found = ModelRows.of(results)
    if not found.rows:
        return None
    is_judged = any(row.configuration.verdicts for row in found.rows)
    columns = (
        "model" if len({row.model for row in found.rows}) > 1 else "", "configuration", found.heading, "change",
        "verdict" if is_judged else "", "latency", "speed", "delegated", "MB",
    )  # fmt: skip
    kept = [place for place, column in enumerate(columns) if column]
    rows = [_cells(found, row) for row in found.rows]
    shown = [[row[place] for place in kept] for row in rows]
    return Table("All configurations", [columns[place] for place in kept], shown)


def _is_one_task(results: Mapping[str, EvaluationResult]) -> bool:
    return len({kind_of(result.task).evidence.subject(result) for result in results.values()}) == 1


def _cells(found: ModelRows, row: ModelRow) -> Sequence[Cell]:
    entry = row.configuration
    verdict = verdict_of(row)
    return (
        row.model,
        entry.name,
        _accuracy(found, row),
        _change(row),
        Word(verdict, "good" if _is_clean(row) and verdict == "identical" else tone_of(entry)) if verdict else "",
        median_time(entry),
        speed_in_words(row),
        f"fell back, {delegated(entry)}" if entry.fallback else delegated(entry),
        Number(megabytes(row.size_bytes), row.size_bytes),
    )


def _accuracy(found: ModelRows, row: ModelRow) -> Cell:
    """With half the width of its 95 % interval, where it has one."""
    if found.figure is None or math.isnan(row.figure(found.figure)):
        return ""
    value, metric = row.figure(found.figure), found.metric
    is_read = metric is not None and not isinstance(metric.read(row.result, row.configuration), Absent)
    interval = metric.interval(row.result, row.configuration) if metric and metric.interval and is_read else None
    width = "" if interval is None else f" ±{50 * (interval.high - interval.low):.2f}"
    return Number(f"{figure_in_words(value, metric)}{width}", value)


def _change(row: ModelRow) -> str:
    verdict = row.configuration.verdict
    if verdict is None or verdict.change is None or _is_lost(row):
        return ""
    return change_with_interval(verdict, is_share(verdict))


def speed_in_words(row: ModelRow) -> str:
    """How many times faster or slower than its reference; empty where no time of both is known."""
    entry = row.configuration
    reference = reference_of(entry, row.result.configurations)
    if reference is None or reference is entry:
        return ""
    for found in row.result.latency_comparisons:
        if (found.baseline, found.other) == (reference.name, entry.name):
            return in_times(found.ratio)
    return ""


def in_times(ratio: float) -> str:
    """So many times as long, in words.

    >>> in_times(14.0), in_times(0.5), in_times(1.0)
    ('14 times slower', '2 times faster', 'as fast')
    """
    if 1 / _CLEARLY < ratio < _CLEARLY:
        return "as fast"
    return f"{ratio:.2g} times slower" if ratio > 1 else f"{1 / ratio:.2g} times faster"


def _is_lost(row: ModelRow) -> bool:
    return row.configuration.status == "not measured"


def _gives_the_same(row: ModelRow) -> bool:
    """Whether the verdict says so, or no answer changed."""
    return _is_clean(row) and (_kind(row) in _SAME or verdict_of(row) in _UNCHANGED)


def _on_examples(same: Sequence[ModelRow]) -> str:
    """How many examples show that no answer changed, where no more than that is known."""
    counts = [row.configuration.finished_examples for row in same if _kind(row) not in _SAME]
    return f" on {min(counts)} examples" if counts else ""


def _is_clean(row: ModelRow) -> bool:
    entry = row.configuration
    return not (_is_lost(row) or entry.fallback or entry.not_clean)


def _kind(row: ModelRow) -> str:
    verdict = row.configuration.verdict
    return "" if verdict is None else verdict.kind


def _name(row: ModelRow, results: Mapping[str, EvaluationResult]) -> str:
    return f"{row.model}, {row.configuration.name}," if len(results) > 1 else row.configuration.name


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
    return names.pop() if len(names) == 1 else "their references"


def _in_a_word(row: ModelRow) -> str:
    """What is said of one of many that do not give the same answers."""
    if row.configuration.fallback and not _is_lost(row):
        return "on the CPU instead"
    return "not clean" if row.configuration.not_clean else verdict_of(row) or "not compared"


def _what_else(row: ModelRow) -> str:
    """What a configuration does that does not give the same answers."""
    verdict = row.configuration.verdict
    if _is_lost(row) or verdict is None:
        return "was not measured"
    if row.configuration.fallback:
        return "ran on the CPU instead of its delegate"
    if row.configuration.not_clean:
        return row.configuration.crashes_of_runs or "did not end cleanly"
    if verdict.change is not None and verdict.kind in ("worse", "better"):
        by = f"{100 * abs(verdict.change):.2f} points" if is_share(verdict) else f"{abs(verdict.change):.3g}"
        return f"is {verdict.kind} by {by}"
    word = verdict_of(row)
    return word if word == "diverged" else f"is {word}"
