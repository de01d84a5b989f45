"""The sentence of the first screen: who does the same job, which is the fastest, what became of a suite."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from evaltools.metrics.words import at_most_changing
from evaltools.report.content import BY_NEED
from evaltools.report.screen.rows import ModelRow, ModelRows, is_lost, is_share, worst_first
from evaltools.report.screen.table import is_shown, word_of
from evaltools.report.words.facts import (
    by_latency,
    counted,
    heading_of,
    is_faster,
    label,
    latency_of,
    median_time,
    median_with_interval,
    model_name,
    speed_of,
)
from evaltools.report.words.numbers import figure, in_milliseconds, times_in_short
from evaltools.result.facts import NOT_REPEATABLE
from evaltools.result.places import reference_of
from evaltools.result.result import ALL, ANSWERS_CHANGED, Result, Row
from evaltools.result.verdict import Verdict, against_the_same, kind_in_words

_SAME: Final = ("identical", "unchanged", "equivalent")
_OTHER: Final = ("worse", "mixed", "better", "diverged", "fp16", "bf16", "int8")
"""Verdicts that say that answers are others; all else is open, or was not compared."""
_ODD_REFERENCE: Final = "the reference is the odd one out"
_MOST_NAMED: Final = 2
_MOST_LISTED: Final = 4
"""Names in one sentence, each with its word."""
_MOST_NAMED_FASTEST: Final = 4
_MOST_SENTENCES: Final = 3
"""Results that have one each."""


def answer_of(results: Mapping[str, Result]) -> str:
    """How many configurations do the same job as what they were compared with, and what the others do.

    Of one that was compared with nothing, what is known of it. It ends with why a run has not all of its examples.
    """
    early = dict.fromkeys(result.stopped for result in results.values() if result.stopped)
    own = [_answer_of(results)] if not _have_own_answers(results) else list(_own_answers(results))
    return " ".join([*own, *(f"Not complete: {why}." for why in early)])


def _have_own_answers(results: Mapping[str, Result]) -> bool:
    """Whether each of a few results has something to compare, so that each has a sentence of its own."""
    return 1 < len(results) <= _MOST_SENTENCES and all(
        any(row.verdict is not None for row in result.rows) for result in results.values()
    )


def _own_answers(results: Mapping[str, Result]) -> Iterator[str]:
    """The sentence of each result, behind its name; then which of all is the best, and the fastest.

    That says nothing new of a model that is compared with another one of them.
    """
    for name, result in results.items():
        text = _answer_of({name: result})
        yield f"{name}: {text[0].lower()}{text[1:]}"
    every = ModelRows.of(results)
    if any(_is_of_other_model([row]) for row in every.rows if row.row.role == "test"):
        return
    best = _best(every, [row for row in every.rows if row.is_clean], results)
    if best:
        yield f"{'; '.join(best)}."


def _answer_of(results: Mapping[str, Result]) -> str:
    every = ModelRows.of(results)
    if not every.rows:
        (first, *_) = results.values()
        return f"Nothing was measured: {first.stopped or 'the result has no configurations'}."
    rows = [row for row in every.rows if row.row.role == "test"]
    lost = lost_reference(every.rows)
    judged = worst_first(row for row in rows if row.row.verdict is not None or not row.is_clean)
    if lost is not None:
        judged = [row for row in judged if not row.row.runtime]
        own = [f"{_name(row, results)} {_what_else(row)}" for row in judged[:_MOST_NAMED]]
        return f"{'; '.join([f'Nothing was compared, as {_name(lost, results)} was not measured', *own])}."
    if not any(row.row.verdict is not None or is_lost(row) for row in judged):
        return _single(every, every.rows[0]) if len(every.rows) == 1 else _best_of(every, results)
    parts = list(_judged(judged, results))
    parts += [f"the reference {_name(row, results)} {_unclean(row)}" for row in every.rows if _is_bad_reference(row)]
    if len(results) > 1:
        parts += _best(every, [row for row in every.rows if row.is_clean], results)
    return f"{'; '.join(parts)}."


def _judged(judged: Sequence[ModelRow], results: Mapping[str, Result]) -> Iterator[str]:
    """Which of the rows do the same as what they were compared with, then what the others do."""
    same = [row for row in judged if _gives_the_same(row)]
    others = [row for row in judged if not _gives_the_same(row)]
    baseline, is_of_other = _baseline(judged), _is_of_other_model(judged)
    if not same and all(row.is_clean and _kind(row) == "not decided" for row in others):
        who = _name(others[0], results) if len(others) == 1 else f"{len(others)} configurations"
        yield f"Whether {who} {_does_the_same(others)} {baseline} {_not_decided(others)}"
        yield from [f"it is {pace}" for pace in map(_pace, others[:1]) if pace and len(others) == 1]
    else:
        first = [*_same_in_words(same, others, baseline, results)]
        against = f"Against {baseline}, " if is_of_other and not same else ""
        of = "" if first or len(others) <= _MOST_NAMED else f"Of {len(judged)} configurations: "
        text, *more = [*first, *_others_in_words(others, results)]
        yield f"{against}{of}{text}"
        yield from more
    if is_of_other:
        yield from (text for row in judged for text in _beside_itself(row, results))


def _same_in_words(
    same: Sequence[ModelRow], others: Sequence[ModelRow], baseline: str, results: Mapping[str, Result]
) -> Iterator[str]:
    """How many do the same, and how fast; that none does, where all others were judged as well."""
    does, count = _does_the_same(same), len(same) + len(others)
    if count == 1 and same:
        pace = f", {_pace(same[0])}" if _pace(same[0]) else ""
        yield f"{_name(same[0], results)} {does} {baseline}{pace}{_evidence(same)}"
    elif count > 1 and same:
        named = f", {_listed([_with_pace(row, results) for row in same])}," if len(same) < _MOST_LISTED else ""
        yield f"{len(same)} of {count} configurations{named} {does} {baseline}{_evidence(same)}"
    elif count > 1 and all(map(_is_another, others)) and not _is_of_other_model(others):
        yield f"None of {count} configurations {does} {baseline}"


def _others_in_words(others: Sequence[ModelRow], results: Mapping[str, Result]) -> Iterator[str]:
    """What each of a few does, of more a word with their names, of many with their number."""
    if len(others) <= _MOST_NAMED:
        yield from (f"{_name(row, results)} {_what_else(row)}{_pace_of_open(row)}" for row in others)
    elif len(others) <= _MOST_LISTED:
        named: dict[str, list[str]] = {}
        for row in others:
            named.setdefault(_in_few_words(row), []).append(_name(row, results))
        yield "; ".join(f"{_listed(names)} {word}" for word, names in named.items())
    else:
        yield ", ".join(f"{count} {word}" for word, count in Counter(map(_in_a_word, others)).items())


def _is_of_other_model(rows: Sequence[ModelRow]) -> bool:
    """Whether they are compared with another model, whose answers nobody expects to be the same."""
    references = [reference_of(row.row, row.result.rows) for row in rows]
    return all(each is not None and each.other_model is not None for each in references)


def _beside_itself(row: ModelRow, results: Mapping[str, Result]) -> Iterator[str]:
    """Of a model that is compared with another one: whether it does the same job as itself on the CPU."""
    reference = reference_of(row.row, row.result.rows)
    for verdict in row.row.verdicts:
        if not row.is_clean or reference is None or verdict.against == reference.name:
            continue
        job = "does the same job as the same model on the CPU"
        if verdict.kind == "not decided":
            yield f"whether {_name(row, results)} {job} is not decided"
        else:
            does = job if verdict.kind in _SAME else f"is {verdict.kind} than the same model on the CPU"
            yield f"{_name(row, results)} {does}"


def _pace(row: ModelRow) -> str:
    """How many times as fast as its reference, where the times of both on the same examples are known."""
    ratio = speed_of(row.row, reference_of(row.row, row.result.rows)) if "latency_ratio" in row.row.figures else None
    return f"{times_in_short(ratio)} as fast" if ratio is not None and ratio.value else ""


def _pace_of_open(row: ModelRow) -> str:
    """That of one which is neither the same nor wrong."""
    is_open = row.is_clean and _kind(row) in ("not decided", "better", "fp16", "bf16", "int8")
    return f", {_pace(row)}" if is_open and _pace(row) else ""


def _with_pace(row: ModelRow, results: Mapping[str, Result]) -> str:
    name, pace = _name(row, results), _pace(row)
    return f"{name} ({pace})" if pace else name


def lost_reference(rows: Sequence[ModelRow]) -> ModelRow | None:
    """The reference that was not measured, so that nothing was compared with it though others ran."""
    references = [row for row in rows if row.row.role == "reference"]
    ran = any(row.row.role == "test" and row.row.runtime for row in rows)
    is_lost_to_all = ran and bool(references) and all(map(is_lost, references))
    return references[0] if is_lost_to_all else None


def _single(found: ModelRows, row: ModelRow) -> str:
    entry = row.row
    accuracy = f", {found.heading} {_figure_of(found, row)}" if _figure_of(found, row) else ""
    examples = counted(entry.finished_examples, "example")
    trouble = "" if row.is_clean or is_lost(row) else f"; it {_what_else(row)}"
    return f'"{entry.name}": {examples}{accuracy}{trouble}; it was compared with nothing.'


def _figure_of(found: ModelRows, row: ModelRow) -> str:
    """The figure that a row is judged by; empty where it has none."""
    known = row.figure(found.figure)
    return "" if known is None else figure(known)


def _best_of(found: ModelRows, results: Mapping[str, Result]) -> str:
    """The best and the fastest of several configurations that were compared with nothing."""
    rows = [row for row in found.rows if row.is_clean]
    texts = [f"{counted(len(rows), 'configuration')} measured, compared with nothing", *_best(found, rows, results)]
    others = [f"{_name(row, results)} {_what_else(row)}" for row in found.rows if not row.is_clean]
    return f"{'; '.join([*texts, *others])}."


def _best(found: ModelRows, rows: Sequence[ModelRow], results: Mapping[str, Result]) -> list[str]:
    """Which row has the best figure, unless that is not decided, and which is the fastest."""
    texts = []
    best, timed = found.best(rows), [row for row in rows if not math.isnan(row.latency_ms)]
    if best is not None and not found.are_outputs and (best.row.verdict is None or not best.row.verdict.is_open):
        texts.append(f"{_name(best, results)} has the best {found.heading}, {_figure_of(found, best)}")
    if len(timed) > 1:
        fastest = min(timed, key=lambda row: row.latency_ms)
        texts.append(f"{_name(fastest, results)} is the fastest, {median_time(fastest.row)}")
    return texts


def _gives_the_same(row: ModelRow) -> bool:
    """Whether the verdict says so, or no answer changed."""
    return row.is_clean and _says_the_same(row)


def _says_the_same(row: ModelRow) -> bool:
    return _kind(row) in _SAME


def _does_the_same(rows: Sequence[ModelRow]) -> str:
    """What these do: where single answers are others, and the verdict is the same all the same, it is the job."""
    is_one = len(rows) == 1
    if any(row.answers_changed for row in rows):
        return f"{'does' if is_one else 'do'} the same job as"
    return f"{'gives' if is_one else 'give'} the same answers as"


def _is_another(row: ModelRow) -> bool:
    """Whether it was measured as asked, and gives other answers."""
    return row.is_clean and _kind(row) in _OTHER


def _is_bad_reference(row: ModelRow) -> bool:
    return row.row.role == "reference" and bool(row.row.not_clean or row.errors)


def _evidence(same: Sequence[ModelRow]) -> str:
    """How many examples show that no answer changed, and how sure that is, where no more than that is known.

    Else how many answers of a single one changed.
    """
    few = [(row, verdict) for row in same if (verdict := row.row.verdict) is not None and verdict.is_open]
    count = min((row.row.finished_examples for row, _ in few), default=0)
    if not count:
        changed = same[0].row.texts.get(ANSWERS_CHANGED, "") if len(same) == 1 else ""
        return f" ({changed})" if changed else ""
    what = next((_of_other_answers(row, verdict, count) for row, verdict in few if row.answers_changed), "")
    what = what or f"no answer of {count} changed"
    return f": {what} (95 % confident: fewer than {at_most_changing(count)} would)"


def _of_other_answers(row: ModelRow, verdict: Verdict, count: int) -> str:
    """That no example counts otherwise, though some answers are others."""
    if is_share(row.row, verdict):
        return f"no example of {count} became right or wrong"
    return f"{heading_of(verdict.metric)} changed on none of {count} examples"


def _not_decided(rows: Sequence[ModelRow]) -> str:
    """By which metrics, where they are some of several; of a single one how many answers changed."""
    if len(rows) > 1:
        return "is not decided"
    changed = rows[0].row.texts.get(ANSWERS_CHANGED, "")
    return f"{_metrics_in_words(rows[0])}{f': {changed}' if changed else ''}"


def _metrics_in_words(row: ModelRow) -> str:
    """What a row is worse and better in, else what is not decided; with the metric's name where there are several.

    ``is worse in "margin" by 0.1 and better in "iou" by 0.03``
    """
    own = against_the_same(row.row.verdicts)
    by_kind = {kind: [each for each in own if each.kind == kind] for kind in ("worse", "better", "not decided")}
    shown = [kind for kind in ("worse", "better") if by_kind[kind]] or ["not decided"]
    texts = [f"{kind} {_in_metrics(row, by_kind[kind], is_named=len(own) > 1)}".rstrip() for kind in shown]
    return f"is {' and '.join(texts)}"


def _in_metrics(row: ModelRow, verdicts: Sequence[Verdict], is_named: bool) -> str:
    """Which metrics, and by how much they changed where that is known for sure."""
    texts = []
    for each in verdicts:
        factor, unit = (100, " points") if is_share(row.row, each) else (1, "")
        size = f"{factor * abs(each.change or 0.0):{'.2f' if unit else '.3g'}}{unit}"
        by = "" if each.change is None or each.kind == "not decided" else f"by {size}"
        texts.append(" ".join(filter(None, (f'"{each.metric}"' if is_named else "", by))))
    return f"{'in ' if is_named else ''}{', '.join(texts)}"


def _kind(row: ModelRow) -> str:
    verdict = row.row.verdict
    return "" if verdict is None else verdict.kind


def _name(row: ModelRow, results: Mapping[str, Result]) -> str:
    """In quotes, as a configuration may have any name."""
    name = f'"{row.row.name}"'
    return f"{row.model} in {name}" if len(results) > 1 else name


def _baseline(rows: Sequence[ModelRow]) -> str:
    """What they were compared with, as a reader knows it."""
    names = set()
    for row in rows:
        reference = reference_of(row.row, row.result.rows)
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


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _in_a_word(row: ModelRow) -> str:
    """A word for one of many that do not give the same answers."""
    return row.word or "not compared"


def _in_few_words(row: ModelRow) -> str:
    """The word with how much worse or better it is, where that is known."""
    is_decided = row.is_clean and _kind(row) in ("worse", "better", "mixed")
    return _metrics_in_words(row).removeprefix("is ") if is_decided else _in_a_word(row)


def _what_else(row: ModelRow) -> str:
    """What a configuration does that does not give the same answers."""
    if is_lost(row):
        return "was not measured"
    if row.row.fallback:
        return "fell back to the CPU"
    return _verdict_in_words(row) if row.is_clean else _unclean(row)


def _unclean(row: ModelRow) -> str:
    """What went wrong in its runs, and after errors what the other runs show."""
    entry = row.row
    if entry.not_clean == NOT_REPEATABLE:
        return NOT_REPEATABLE
    if entry.not_clean:
        return entry.crashes_of_runs or "did not end cleanly"
    runs = entry.finished_examples + entry.failed_examples
    if not entry.finished_examples or entry.verdict is None:
        return f"returned an error in {row.errors} of {runs} runs"
    others = f"{_does_the_same([row])} {_baseline([row])}" if _says_the_same(row) else _verdict_in_words(row)
    return f"{others} in {entry.finished_examples} of {runs} runs, and returned an error in {row.errors}"


def _verdict_in_words(row: ModelRow) -> str:
    verdict = row.row.verdict
    if verdict is None or verdict.kind in ("not compared", "not measured"):
        return "was not compared"
    if verdict.kind in ("worse", "better", "mixed", "not decided"):
        changed = "" if _is_of_other_model([row]) else row.row.texts.get(ANSWERS_CHANGED, "")
        return f"{_metrics_in_words(row)}{f' ({changed})' if changed else ''}"
    word = kind_in_words(verdict.kind)
    if word == _ODD_REFERENCE:
        return f"shows that {word}"
    if word != "diverged":
        return f"is {word}"
    changed = row.row.texts.get(ANSWERS_CHANGED, "")
    return f"diverged from {_baseline([row])}{f' ({changed})' if changed else ''}"


def fastest(result: Result) -> str:
    """The fastest row of a benchmark that ran as asked, and the next one, with whether they can be told apart."""
    models = result.models
    timed = [row for row in by_latency(result.rows) if not row.fallback]
    if not timed:
        return f"Nothing was measured{f': {result.stopped}' if result.stopped else ' as asked for'}."
    of_models = {row.model: row for row in reversed(timed)}
    if 1 < len(of_models) <= _MOST_NAMED_FASTEST:
        ranked = reversed(of_models.values())
        texts = [
            f'{model_name(models, row)} "{row.name}" {in_milliseconds(_time_ms(row))}{_not_told_from(row, timed)}'
            for row in ranked
        ]
        return f"The fastest of each model: {'; '.join(texts)}."
    row, *following = timed
    failing = [
        f"{counted(each.failed_examples, 'run')} of {label(models, each)} failed"
        for each in timed
        if each.failed_examples
    ]
    alike = [row, *itertools.takewhile(lambda each: is_faster(row, each) is False, following)]
    first, *others = (f"{label(models, each)}: {median_with_interval(each)}" for each in timed)
    if len(alike) > 1:
        left = len(alike) - _MOST_LISTED
        named = [first, *others[: len(alike) - 1]][:_MOST_LISTED] + ([f"{left} more"] if left > 0 else [])
        count = "two" if len(alike) == 2 else f"{len(alike)}"
        text = f"The fastest {count} cannot be told apart, {', '.join(named[:-1])}, and {named[-1]}"
    else:
        text = f"The fastest is {first}; next is {others[0]}" if others else first
    return f"{'; '.join([text, *failing])}."


def _not_told_from(row: Row, timed: Sequence[Row]) -> str:
    """Which others of its model may be as fast as the fastest one."""
    others = [each for each in timed if each.model == row.model and each is not row]
    alike = [f'"{each.name}"' for each in others if is_faster(row, each) is False]
    return f" (not told apart from {_listed(alike)})" if alike else ""


def _time_ms(row: Row) -> float:
    return latency_of(row) or 0.0


def became_of(result: Result) -> str:
    """How many models and configurations a suite has, and what became of them in each job, the worst first."""
    rows = result.rows
    configurations = len({row.name for row in rows if row.role == "test" and row.name != ALL})
    what = f"{counted(len({row.model for row in rows}), 'model')}, {counted(configurations, 'configuration')}"
    jobs: dict[str, Counter[tuple[int, str]]] = {}
    for row in filter(is_shown, rows):
        shown = ModelRow("", result, row)
        jobs.setdefault(row.job, Counter())[(BY_NEED.index(shown.tone), word_of(shown))] += 1
    texts = {job: ", ".join(f"{counts[kind]} {kind[1]}" for kind in sorted(counts)) for job, counts in jobs.items()}
    if len(texts) == 1:
        return f"{what}: {'; '.join(texts.values())}."
    return f"{what}; {'; '.join(f'{job}: {text}' for job, text in texts.items())}."
