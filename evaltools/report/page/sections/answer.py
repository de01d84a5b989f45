"""The first screen of evaluations: a sentence that answers, one table, what is special of some configurations."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evaltools.report.page.content.page import First, sentences
from evaltools.report.page.sections.rows import ModelRow, ModelRows, interval_of, tone_of, verdict_of
from evaltools.report.page.sections.tradeoff import models_tradeoff
from evaltools.report.words.facts import counted, delegated, median_time, speed_of
from evaltools.report.words.next_steps import SEARCH, after_evaluation, how_fast
from evaltools.report.words.numbers import change, figure, half_width, in_times, megabytes
from evaltools.report.words.verdicts import is_share, judged_in_words, reasons_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult, other_models
from evaltools.result.fastest_cpu import fastest_on_cpu, runs_on_cpu
from evaltools.result.places import machine_of, reference_of
from evaltools.result.section import Block, Cell, Note, Number, Sentence, Table, Word, number_cell, path_to
from evaltools.task_kind import kind_of

if TYPE_CHECKING:
    from evaltools.result.benchmark import BenchmarkRow

_SAME: Final = ("identical", "equivalent")
_UNCHANGED: Final = ("identical", "unchanged")
"""The words for answers of which none changed, where too few were seen for a verdict."""
_ODD_REFERENCE: Final = "the reference is the odd one out"
_OPEN: Final = ("not decided", _ODD_REFERENCE)
"""Verdicts that need a sentence."""
_FAILED: Final = "failed"
_MOST_NAMED: Final = 2
FACTS: Final = {"file MB": "a file of {} MB", "examples": "{} examples", "machine": "{}", "versions": "{}"}
"""Columns that are a line below the table where they say the same in each row."""
_UNLIKE: Final = "Not all of it was measured on one machine, with the same versions and on the same examples"


def first_screen(results: Mapping[str, EvaluationResult], located: Iterable[str] = ()) -> First:
    """Of results of one task, by their names; for those in ``located`` the operators were looked at already."""
    found = ModelRows.of(results)
    answer, several = answer_of(results), len(results) > 1
    blocks: list[Block] = [Sentence(answer)] if answer else []
    summary = summary_of(results)
    blocks += [] if summary is None else [summary]
    drawn = models_tradeoff(found) if several and _is_alike(results.values()) else None
    blocks += [] if drawn is None else [drawn]
    notes: list[Note] = []
    steps: list[str] = []
    for name, result in results.items():
        notes += [of_result(name, note) if several else note for note in _notes(result)]
        most_needed = max(map(_examples_needed, result.configurations), default=0)
        for entry in result.configurations:
            if 0 < _examples_needed(entry) < most_needed:
                continue
            more = after_evaluation(result, entry)
            steps += [step for step in more if not (name in located and step.startswith(SEARCH))]
    if not steps and not several:
        steps = list(how_fast(next(iter(results.values()))))
    names = {kind_of(result.task).evidence.subject(result) for result in results.values()}
    return First(names.pop(), tuple(blocks), tuple(notes), tuple(steps), "" if several else next(iter(results)))


def _examples_needed(entry: ConfigurationResult) -> int:
    """How many examples decide a verdict that is open, 0 where that is not known."""
    verdict = entry.verdict
    return (verdict.examples_needed or 0) if verdict is not None and verdict.kind == "not decided" else 0


def of_result(name: str, line: str | Note) -> Note:
    """A remark with the name of the result that it is about, of several."""
    if isinstance(line, str):
        return Note(name, line)
    return Note(name if line.of == _FAILED else f"{name}, {line.of}", line.text, line.tone)


def by_task(results: Mapping[str, EvaluationResult]) -> Iterator[Mapping[str, EvaluationResult]]:
    """The results of each task."""
    found: dict[str, dict[str, EvaluationResult]] = {}
    for name, result in results.items():
        found.setdefault(kind_of(result.task).evidence.subject(result), {})[name] = result
    yield from found.values()


def answer_of(results: Mapping[str, EvaluationResult]) -> str:
    """How many configurations do the same job as what they were compared with, and what the others do.

    Of one that was compared with nothing, what is known of it.
    """
    every = ModelRows.of(results)
    if not every.rows:
        (first, *_) = results.values()
        return f"Nothing was measured: {first.stopped or 'the result has no configurations'}."
    rows = [row for row in every.rows if row.configuration.role == "test"]
    judged = [row for row in rows if row.configuration.verdict is not None or _is_lost(row)]
    if not judged:
        return _single(every, every.rows[0]) if len(every.rows) == 1 else _best_of(every, results)
    same = [row for row in judged if _gives_the_same(row)]
    others = [row for row in judged if not _gives_the_same(row)]
    parts = []
    if len(judged) == 1 and same:
        parts = [f"{_name(same[0], results)} gives the same answers as {_baseline(judged)}{_on_examples(same)}"]
    elif len(judged) > 1:
        verb = "gives" if len(same) == 1 else "give"
        parts = [
            f"{len(same) or 'None'} of {len(judged)} configurations {verb} the same answers as {_baseline(judged)}"
            f"{_on_examples(same)}"
        ]
    if len(others) <= _MOST_NAMED:
        parts += [f"{_name(row, results)} {_what_else(row)}" for row in others]
    else:
        counts = Counter(map(_in_a_word, others))
        parts += [", ".join(f"{count} {word}" for word, count in counts.items())]
    if not same and all(_is_clean(row) and _kind(row) == "not decided" for row in others):
        who = f"{_name(others[0], results)} gives" if len(others) == 1 else f"{len(others)} configurations give"
        parts = [f"Whether {who} the same answers as {_baseline(judged)} is not decided"]
    if len(results) > 1:
        parts += _best(every, [row for row in every.rows if _is_clean(row)], results)
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
    rows = [row for row in found.rows if _is_clean(row)]
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


def summary_of(results: Mapping[str, EvaluationResult]) -> Table | None:
    """A row for each configuration; the columns of several results that distinguish them stand at the end.

    None for results of several tasks, and where there is no configuration.
    """
    found, several = ModelRows.of(results), len(results) > 1
    if not found.rows or len(list(by_task(results))) > 1:
        return None
    is_alike = not several or _is_alike(results.values())
    front = (found.on_front if several and is_alike else None) or [False] * len(found.rows)
    names = _model_names(results)
    rows = [
        [*_cells(found, row, names, several), *(_of_several(row, is_on, is_alike) if several else ())]
        for row, is_on in zip(found.rows, front, strict=True)
    ]
    compared = _compared_with(results) if several else {}
    columns = ["result", "model", "configuration", found.heading, "change", "verdict", "latency", "vs reference"]
    columns += ["delegated", "file MB", *(("on the front", "examples", "machine", "versions") if several else ())]
    ranks = [0, 0, 0, 1, 2, 0, 3, 4, 5, 6, 7, 8, 9, 10]
    below = sentences(
        "On the front: no other one is as good and as fast" if any(front) else "",
        _how_to_read(found),
        _UNLIKE if several and not is_alike else "",
        *(f"{', '.join(models)}: compared with {other} on the same examples" for other, models in compared.items()),
    )
    table = Table("All configurations", columns, rows, below, 3, ranks[: len(columns)])
    models = {row[1] for row in rows}
    is_named = all(row[0] == row[1] for row in rows)
    left_out = {0} if is_named or not several else set()
    left_out |= {1} if len(models) == 1 and not (several and is_named) else set()
    table = table.of_columns([place for place in range(len(columns)) if place not in left_out]).compact
    return table.with_facts(FACTS)


def _how_to_read(found: ModelRows) -> str:
    """Which direction is better of a figure that is no accuracy."""
    if found.are_outputs:
        return "relative RMS: size of the difference by that of the reference, of the worst output; lower is better"
    return f"{found.heading}: {found.better} is better" if found.metric is None and found.better is not None else ""


def _cells(found: ModelRows, row: ModelRow, names: Mapping[str, str], several: bool) -> list[Cell]:
    entry = row.configuration
    path = "" if several else f"configurations/{row.result.configurations.index(entry)}"
    if entry.fallback:
        return _blank(row, names)
    verdict = _word(row)
    latency = entry.inference_latency
    p50 = None if latency is None else latency.p50_us
    time = median_time(entry)
    return [
        row.model,
        names.get(row.model, row.model),
        entry.name,
        _accuracy(found, row, path),
        _change(row, path),
        Word(verdict, tone_of(entry)) if verdict else "",
        time if p50 is None else Number(time, p50, path and f"{path}/inference_latency/p50_us"),
        _speed(row, several),
        delegated(entry),
        Number(megabytes(row.size_bytes), row.size_bytes),
    ]


def _blank(row: ModelRow, names: Mapping[str, str]) -> list[Cell]:
    """The cells of what ran on the CPU instead of its delegate: figures would look like those of the delegate."""
    entry = row.configuration
    found: list[Cell] = [row.model, names.get(row.model, row.model), entry.name, "", "", Word("fell back", "bad")]
    return [*found, "-", "", "-", Number(megabytes(row.size_bytes), row.size_bytes)]


def _word(row: ModelRow) -> str:
    entry = row.configuration
    if _is_lost(row):
        return "not measured"
    return "not clean" if entry.not_clean else verdict_of(row).replace("expected precision of ", "")


def _accuracy(found: ModelRows, row: ModelRow, path: str) -> Cell:
    """With half the width of its 95 % interval, where it has one."""
    if found.figure is None or math.isnan(row.figure(found.figure)):
        return ""
    value, metric = row.figure(found.figure), found.metric
    width = half_width(interval_of(found.figure, row.result, row.configuration), metric is not None and metric.is_share)
    return Number(f"{figure(value, metric)}{width}", value, path and f"{path}/{path_to('figures', found.figure)}")


def _change(row: ModelRow, path: str) -> Cell:
    verdict = row.configuration.verdict
    if verdict is None or verdict.change is None or _is_lost(row):
        return ""
    text = change(verdict.change, verdict.low, verdict.high, is_share(verdict))
    return Number(text, verdict.change, path and f"{path}/verdicts/0/change")


def _speed(row: ModelRow, several: bool) -> Cell:
    """How many times faster or slower than its reference; empty where no time of both is known."""
    entry, comparisons = row.configuration, row.result.latency_comparisons
    ratio = speed_of(entry, reference_of(entry, row.result.configurations), comparisons)
    if ratio is None or entry.status != "measured":
        return ""
    places = [] if several else [place for place, each in enumerate(comparisons) if each is ratio]
    return Number(in_times(ratio.ratio), ratio.ratio, f"latency_comparisons/{places[0]}/ratio" if places else "")


def _of_several(row: ModelRow, is_on: bool, is_alike: bool) -> Sequence[Cell]:
    """Whether it is on the front; what differs of how it was measured."""
    if is_alike:
        return ("yes" if is_on else "", "", "", "")
    result, entry = row.result, row.configuration
    return (
        "",
        number_cell(result.examples_done),
        machine_of(result.environment, result.device_run, entry.place),
        versions_in_words(result.environment.evaltools, entry),
    )


def _is_alike(results: Iterable[EvaluationResult]) -> bool:
    """Whether all are of one machine, one version of each package, and the same examples read in the same way."""
    machines, versions, examples = set(), set(), set()
    for result in results:
        inputs = kind_of(result.task).evidence.inputs(result)
        examples.add((result.examples_done, result.pictures_digest, tuple(inputs.items())))
        for entry in result.configurations:
            machines.add(machine_of(result.environment, result.device_run, entry.place))
            versions |= set(_versions(result.environment.evaltools, entry).items())
    packages = {package for package, _ in versions}
    return len(machines) < 2 and len(versions) == len(packages) and len(examples) < 2


def _versions(evaltools: str, opened: ConfigurationResult | BenchmarkRow) -> dict[str, str]:
    """Those of evaltools and of the runtime, where one was opened, by name."""
    runtime = {opened.runtime.package: opened.runtime.version} if opened.runtime is not None else {}
    return {"evaltools": evaltools, **runtime}


def versions_in_words(evaltools: str, opened: ConfigurationResult | BenchmarkRow) -> str:
    """The versions of evaltools and of the runtime that ran a configuration."""
    return ", ".join(f"{name} {version}" for name, version in _versions(evaltools, opened).items())


def _model_names(results: Mapping[str, EvaluationResult]) -> dict[str, str]:
    """The file's name without its ending for each result, with a checksum where others of that name differ."""
    stems = {source: Path(result.model.file).stem for source, result in results.items()}
    contents: dict[str, set[str]] = {}
    for source, stem in stems.items():
        contents.setdefault(stem, set()).add(results[source].model.sha256)
    return {
        source: f"{stem} ({results[source].model.sha256[:6]})" if len(contents[stem]) > 1 else stem
        for source, stem in stems.items()
    }


def _compared_with(results: Mapping[str, EvaluationResult]) -> dict[str, list[str]]:
    """The models that were compared with another one, by the name of that one's file."""
    found: dict[str, list[str]] = {}
    for name, result in results.items():
        for model in other_models(result):
            found.setdefault(Path(model.file).name, []).append(name)
    return found


def _notes(result: EvaluationResult) -> Iterator[Note]:
    """What the table does not say of some configurations, and how many examples failed."""
    for entry in result.configurations:
        yield from _of_configuration(result, entry)
    lost = [entry.name for entry in result.configurations if entry.status == "not measured"]
    failed = [failure for failure in result.failed if failure.configuration not in lost]
    if failed:
        where = f" ({failed[0].configuration})" if failed[0].configuration else ""
        first = f"{failed[0].example}{where}: {failed[0].reason}"
        yield Note(_FAILED, f"{counted(len(failed), 'example')} without an answer, first {first}", "bad")


def _of_configuration(result: EvaluationResult, entry: ConfigurationResult) -> Iterator[Note]:
    verdict = entry.verdict
    if entry.status == "not measured":
        yield Note(entry.name, f"not measured: {entry.reason or ''}".removesuffix(": "), "missing")
        return
    if entry.fallback:
        yield Note(entry.name, f"fell back to the CPU: {entry.fallback}", "bad")
    if entry.not_clean:
        yield Note(entry.name, f"not clean: {entry.crashes_of_runs or entry.not_clean}", "bad")
    if beside_cpu := _beside_cpu(result, entry):
        yield Note(entry.name, beside_cpu)
    if verdict is not None and verdict.kind in _OPEN:
        yield Note(entry.name, judged_in_words(verdict), tone_of(entry))
    elif verdict is not None and verdict.kind == "not measured":
        yield Note(entry.name, f"not measured: {reasons_in_words(verdict.reasons)}", "missing")
    elif verdict is None and entry.role == "test":
        reference = reference_of(entry, result.configurations)
        if reference is not None and reference.status != "measured":
            yield Note(entry.name, f"not decided: {reference.name} was not measured", "open")
        elif reference is not None:
            yield Note(entry.name, "not decided: there is no answer that both gave", "open")


def _beside_cpu(result: EvaluationResult, entry: ConfigurationResult) -> str:
    """The speed of an accelerator compared with the fastest on the CPU, where that is not the reference."""
    cpu, ratio = fastest_on_cpu(result.configurations, entry.place), entry.latency_cpu_ratio
    reference = reference_of(entry, result.configurations)
    if cpu is None or not ratio or cpu is reference or cpu is entry or runs_on_cpu(entry):
        return ""
    compared = in_times(ratio)
    return f"{compared} {'as' if compared == 'as fast' else 'than'} {cpu.name}, the fastest on the CPU"


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
    if word == _ODD_REFERENCE:
        return f"shows that {word}"
    return f"diverged from {_baseline([row])}" if word == "diverged" else f"is {word}"
