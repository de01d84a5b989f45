"""The first screen of evaluations: a sentence that answers, one table, what is special; with what the task adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.known_tasks import metric_named
from evaltools.report.content import First
from evaltools.report.page.sections.rows import ModelRow, ModelRows, tone_of, tone_of_verdict
from evaltools.report.page.sections.summary import answer_of, is_alike, summary_of
from evaltools.report.words.facts import counted
from evaltools.report.words.next_steps import SEARCH, after_evaluation, how_fast
from evaltools.report.words.numbers import in_times
from evaltools.result.places import fastest_on_cpu, reference_of, runs_on_cpu
from evaltools.result.result import NEXT, Result, Row
from evaltools.result.section import Block, Lines, Note, Place, Section, Sentence
from evaltools.result.verdict import OF_OUTPUTS, Verdict, kind_in_words

_FAILED: Final = "failed"


def first_screen(results: Mapping[str, Result], located: Iterable[str] = ()) -> First:
    """Of results of one task, by their names; for those in ``located`` the operators were looked at already."""
    found = ModelRows.of(results)
    answer, several = answer_of(results), len(results) > 1
    blocks: list[Block] = [Sentence(answer)] if answer else []
    summary = summary_of(results)
    blocks += [] if summary is None else [summary]
    if several and is_alike(results.values()):
        from evaltools.report.page.sections.tradeoff import models_tradeoff

        drawn = models_tradeoff(found)
        blocks += [] if drawn is None else [drawn]
    notes: list[Note] = []
    steps: list[str] = []
    for name, result in results.items():
        notes += [of_result(name, note) if several else note for note in _notes(result)]
        most_needed = max(map(_examples_needed, result.rows), default=0)
        for entry in result.rows:
            if 0 < _examples_needed(entry) < most_needed:
                continue
            more = after_evaluation(result, entry)
            steps += [step for step in more if not (name in located and step.startswith(SEARCH))]
    if not steps and not several:
        steps = list(how_fast(next(iter(results.values()))))
    names = {result.about for result in results.values()}
    return First(names.pop(), tuple(blocks), tuple(notes), tuple(steps), "" if several else next(iter(results)))


def _examples_needed(entry: Row) -> int:
    """How many examples decide a verdict that is open, 0 where that is not known."""
    verdict = entry.verdict
    return (verdict.examples_needed or 0) if verdict is not None and verdict.kind == "not decided" else 0


def of_result(name: str, line: str | Note) -> Note:
    """A remark with the name of the result that it is about, of several."""
    if isinstance(line, str):
        return Note(name, line)
    return Note(name if line.of == _FAILED else f"{name}, {line.of}", line.text, line.tone)


def _notes(result: Result) -> Iterator[Note]:
    """What the table does not say of some configurations, and how many examples failed."""
    for entry in result.rows:
        yield from _of_configuration(ModelRow("", result, entry))
    lost = [entry.name for entry in result.rows if entry.status == "not measured"]
    failed = [failure for failure in result.failed if failure.configuration not in lost]
    if failed:
        where = f" ({failed[0].configuration})" if failed[0].configuration else ""
        first = f"{failed[0].example}{where}: {failed[0].reason}"
        yield Note(_FAILED, f"{counted(len(failed), 'example')} without an answer, first {first}", "bad")


def _of_configuration(row: ModelRow) -> Iterator[Note]:
    result, entry = row.result, row.row
    verdict = entry.verdict
    if entry.status == "not measured":
        yield Note(entry.name, f"not measured: {entry.reason}".removesuffix(": "), "missing")
        return
    if entry.fallback:
        yield Note(entry.name, f"fell back to the CPU: {entry.fallback}", "bad")
    if entry.not_clean:
        yield Note(entry.name, f"not clean: {entry.crashes_of_runs or entry.not_clean}", "bad")
    if beside_cpu := _beside_cpu(result, entry):
        yield Note(entry.name, beside_cpu)
    if verdict is not None and tone_of_verdict(verdict) == "open":
        yield Note(entry.name, _judged(verdict), tone_of(row))
    elif verdict is not None and verdict.kind == "not measured":
        yield Note(entry.name, f"not measured: {verdict.why}", "missing")
    elif verdict is None and entry.role == "test":
        reference = reference_of(entry, result.rows)
        if reference is not None and reference.status != "measured":
            yield Note(entry.name, f"not decided: {reference.name} was not measured", "open")
        elif reference is not None:
            yield Note(entry.name, "not decided: there is no answer that both gave", "open")


def _judged(verdict: Verdict) -> str:
    """The verdict in words; of one on outputs with the first thing that it rests on."""
    if verdict.metric == OF_OUTPUTS:
        return ": ".join([kind_in_words(verdict.kind), *verdict.texts[:1]])
    metric = metric_named(verdict.metric)
    heading = "" if metric is None else metric.heading
    return f"{heading or verdict.metric} {verdict.why}"


def _beside_cpu(result: Result, entry: Row) -> str:
    """The speed of an accelerator compared with the fastest on the CPU, where that is not the reference."""
    cpu, ratio = fastest_on_cpu(result.rows, entry.place), entry.value("latency_cpu_ratio")
    reference = reference_of(entry, result.rows)
    if cpu is None or not ratio or cpu is reference or cpu is entry or runs_on_cpu(entry):
        return ""
    compared = in_times(ratio)
    return f"{compared} {'as' if compared == 'as fast' else 'than'} {cpu.name}, the fastest on the CPU"


def first_of_task(results: Mapping[str, Result], located: Mapping[str, Sequence[Result]]) -> First:
    """The answer to all results of a task, with what the task itself has on the first screen, and faulty operators."""
    found = first_screen(results, [name for name in results if located.get(name)])
    blocks, notes = list(found.blocks), list(found.notes)
    broken = 0
    for name, result in results.items():
        own = at(own_sections(result), "first")
        for block in (block for section in own for block in section.blocks):
            broken += _bad_notes(block)
            if isinstance(block, Lines) and len(results) > 1:
                block = Lines([of_result(name, line) for line in block.lines])
            blocks.append(block)
        notes += [note for search in located.get(name, ()) for note in _faults(search)]
    if broken and blocks and isinstance(blocks[0], Sentence):
        blocks[0] = Sentence(f"{blocks[0].text} {counted(broken, 'limit')} broken.")
    return replace(found, blocks=tuple(blocks), notes=tuple(notes))


def _faults(search: Result) -> Iterator[Note]:
    """What was located in the model of an evaluation, where that is a fault, and what to do about it."""
    answers = [block for each in search.blocks for block in each.blocks if isinstance(block, Sentence)]
    if answers and answers[0].tone == "bad":
        name = f"{search.rows[0].name}, layer by layer"
        yield Note(name, answers[0].text.removesuffix("."), "bad")
        yield from (Note(name, note.text) for note in search.notes if note.of == NEXT)


def _bad_notes(block: Block) -> int:
    """How many remarks of the task say that something is wrong, which are limits that are broken."""
    lines = block.lines if isinstance(block, Lines) else ()
    return sum(isinstance(line, Note) and line.tone == "bad" for line in lines)


def warnings_of(result: Result) -> tuple[str, ...]:
    """The warnings of a result, first that it ended early."""
    stopped = [f"the run ended early: {result.stopped}"] if result.stopped else []
    return (*stopped, *result.warnings)


def at(sections: Sequence[Section], place: Place) -> list[Section]:
    """The sections that stand at a place."""
    return [section for section in sections if section.place == place]


def own_sections(result: Result) -> list[Section]:
    """The sections of the task that have blocks."""
    return [section for section in result.blocks if section.blocks]
