"""The first screens of results: of each command one, whatever it is; shown on a terminal, a page and in Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.report.content import First, merged
from evaltools.report.screen.answer import answer_of, became_of, fastest
from evaltools.report.screen.rows import WORST_FIRST, ModelRow, is_lost, worst_first
from evaltools.report.screen.table import BENCHMARK, SUITE, by_task, summary_of
from evaltools.report.words.facts import counted, heading_of, label, model_name
from evaltools.report.words.next_steps import FOR_A_DIFFERENCE, SEARCH, after_evaluation, how_fast
from evaltools.report.words.numbers import times_as_fast
from evaltools.result.places import fastest_on_cpu, reference_of, runs_on_cpu
from evaltools.result.result import HINT, NEXT, WARNING, Result, Row
from evaltools.result.section import Block, Lines, Note, Place, Section, Sentence
from evaltools.result.verdict import OF_OUTPUTS, Verdict, kind_in_words

_FAILED: Final = "failed"
_LONGEST_REASON: Final = 320
_KINDS: Final = (WARNING, NEXT, HINT)
"""What notes are of that stand elsewhere."""
Located = Mapping[str, Sequence[Result]]
"""What was located in the model of an evaluation, by its name."""


def first_screens(results: Mapping[str, Result], located: Located | None = None) -> list[First]:
    """One for each command or task."""
    return [first_screen(each, located or {}) for each in by_task(results)]


def first_screen(results: Mapping[str, Result], located: Located | None = None) -> First:
    """Of results of one command, by their names; what was located in their models is part of the answer."""
    several, found = len(results) > 1, located or {}
    own = [(name, block) for name, each in results.items() for block in at(each.blocks, "first")]
    blocks: list[Block] = [Sentence(text)] if (text := _sentence(results)) else []
    summary = summary_of(results) if has_table(results) else None
    blocks += [] if summary is None else [summary]
    blocks += [block for _, block in own if not isinstance(block, Sentence | Lines)]
    lines: list[str | Note] = []
    notes: list[Note] = []
    for name, result in results.items():
        if result.device_run is not None:
            from evaltools.report.words.devices import devices_in_words

            notes += devices_in_words(result.device_run)
        said = [line for of, block in own if of == name and isinstance(block, Lines) for line in block.lines]
        stored = [note for note in result.notes if note.of not in _KINDS]
        if has_table(results):
            names = {label(result.models, row) for row in result.rows}
            of_rows = [line for line in said if isinstance(line, Note) and line.of in names]
            said = [line for line in said if line not in of_rows]
            stored = [*_notes(result, of_rows), *stored]
        lines += [of_result(name, line) for line in said] if several else said
        notes += [of_result(name, note) if several else note for note in stored]
        notes += [note for search in found.get(name, ()) for note in _faults(search, result)]
    shown = merged([line for line in lines if isinstance(line, Note)]) if several else lines
    blocks += [Lines(shown)] if shown else []
    title = next(iter(results.values())).about
    steps = tuple(dict.fromkeys(_steps(results, found)))
    return First(title, tuple(blocks), tuple(notes), steps, "" if several else next(iter(results)))


def has_table(results: Mapping[str, Result]) -> bool:
    """Whether their rows are configurations that stand in a table."""
    return all(result.is_of_examples or result.command in (BENCHMARK, SUITE) for result in results.values())


def _sentence(results: Mapping[str, Result]) -> str:
    """The answer: that to all evaluations of a task, with limits that are broken; of other commands each one's own."""
    if all(result.is_of_examples for result in results.values()):
        own = [block for result in results.values() for block in at(result.blocks, "first")]
        lines = [line for block in own if isinstance(block, Lines) for line in block.lines]
        broken = sum(isinstance(line, Note) and line.tone == "bad" for line in lines)
        return " ".join([answer_of(results), *([f"{counted(broken, 'limit')} broken."] if broken else [])])
    texts = {name: text for name, result in results.items() if (text := _own_sentence(result))}
    return " ".join(f"{name}: {text}" if len(results) > 1 else text for name, text in texts.items())


def _own_sentence(result: Result) -> str:
    if result.command in _SENTENCES:
        return _SENTENCES[result.command](result)
    return next((block.text for block in at(result.blocks, "first") if isinstance(block, Sentence)), "")


_SENTENCES: Final = {BENCHMARK: fastest, SUITE: became_of}


def _steps(results: Mapping[str, Result], located: Located) -> Iterator[Note]:
    """What answers the questions that results leave open; where an evaluation leaves none, how fast it is.

    One search for an operator is enough, in the worst configuration; of several counts of examples the largest.
    """
    steps: list[Note] = []
    neediest = max((row for result in results.values() for row in result.rows), key=_need, default=None)
    for name, result in results.items():
        steps += result.next_steps
        for row in worst_first(ModelRow("", result, each) for each in result.rows) if result.is_of_examples else ():
            entry = row.row
            if _examples_needed(entry) and entry is not neediest:
                continue
            more = [_of_model(name, step) if len(results) > 1 else step for step in after_evaluation(result, entry)]
            is_sought = any(step.text == FOR_A_DIFFERENCE for step in steps)
            steps += [
                step
                for step in more
                if not (located.get(name) and step.command.startswith(SEARCH))
                and not (is_sought and step.text == FOR_A_DIFFERENCE)
            ]
    (first, *others) = results.values()
    yield from steps or (how_fast(first) if first.is_of_examples and not others else ())


def _need(entry: Row) -> tuple[bool, int]:
    """What is not decided needs examples more than what only may be surer."""
    is_undecided = entry.verdict is not None and entry.verdict.kind == "not decided"
    return is_undecided and _examples_needed(entry) > 0, _examples_needed(entry)


def _of_model(name: str, step: Note) -> Note:
    """A step with the model that it is about, which a command names itself."""
    return step if step.command else replace(step, text=f"{name}: {step.text}")


def _examples_needed(entry: Row) -> int:
    """How many examples decide a verdict that is open, 0 where that is not known."""
    verdict = entry.verdict
    return (verdict.examples_needed or 0) if verdict is not None and verdict.is_open else 0


def of_result(name: str, line: str | Note) -> Note:
    """A remark with the name of the result that it is about, of several."""
    if isinstance(line, str):
        return Note(name, line)
    return Note(name if line.of == _FAILED else f"{name}, {line.of}", line.text, line.tone)


def _notes(result: Result, more: Sequence[Note]) -> Iterator[Note]:
    """What the table does not say of some rows, a line each and the worst first, and how many examples failed.

    ``more`` are further remarks on rows.
    """
    lost_models = dict(_lost_models(result)) if result.command == SUITE else {}
    for name, row in lost_models.items():
        reason = textwrap.shorten(row.row.reason, _LONGEST_REASON, placeholder=" ...")
        yield Note(name, f"{row.word}: {reason}".removesuffix(": "), row.tone)
    for row in worst_first(ModelRow("", result, entry) for entry in result.rows):
        if model_name(result.models, row.row) in lost_models:
            continue
        name = label(result.models, row.row)
        found = [*_of_row(row), *(note for note in more if note.of == name), *_beside_cpu(row)]
        if found:
            own = [row.tone] if row.row.role == "test" else []
            tones = [tone for tone in (*own, *(note.tone for note in found)) if tone]
            yield Note(name, "; ".join(note.text for note in found), min(tones, key=WORST_FIRST.index, default=""))
    lost = [entry.name for entry in result.rows if entry.status == "not measured"]
    failed = [failure for failure in result.failed if failure.configuration not in lost]
    if failed:
        where = f" ({failed[0].configuration})" if failed[0].configuration else ""
        first = f"{failed[0].example}{where}: {failed[0].reason}"
        yield Note(_FAILED, f"{counted(len(failed), 'example')} without an answer, first {first}", "bad")


def _lost_models(result: Result) -> Iterator[tuple[str, ModelRow]]:
    """The models of which nothing was measured, each with its first row."""
    for place in range(len(result.models)):
        rows = [row for row in result.rows if row.model == place]
        if rows and all(row.status == "not measured" for row in rows):
            yield model_name(result.models, rows[0]), ModelRow("", result, rows[0])


def _of_row(row: ModelRow) -> Iterator[Note]:
    result, entry = row.result, row.row
    name, verdict = label(result.models, entry), entry.verdict
    if is_lost(row):
        yield Note(name, f"{row.word}: {entry.reason}".removesuffix(": "), row.tone)
        return
    if entry.fallback:
        yield Note(name, f"fell back to the CPU: {entry.fallback}", "bad")
    if entry.not_clean:
        yield Note(name, f"not clean: {entry.crashes_of_runs or entry.not_clean}", "bad")
    if entry.failed_examples and not result.is_of_examples:
        yield Note(name, f"{entry.failed_examples} runs failed: {entry.texts.get('first_failure', '')}", "bad")
    if verdict is not None and _needs_reason(result, entry, verdict):
        yield Note(name, _judged(verdict), row.tone)
    elif verdict is not None and verdict.kind in ("not compared", "not measured"):
        yield Note(name, f"{verdict.kind}: {verdict.why}", "missing")
    elif verdict is None and entry.role == "test" and result.is_of_examples:
        reference = reference_of(entry, result.rows)
        if reference is not None and reference.status != "measured":
            yield Note(name, f"not compared: {reference.name} was not measured", "open")
        elif reference is not None:
            yield Note(name, "not compared: there is no answer that both gave", "open")


def _needs_reason(result: Result, entry: Row, verdict: Verdict) -> bool:
    """Whether the table's word is not enough: for what is open or mixed, and what is others and no warning says.

    Not for what the answer to an evaluation says, and in a suite, which has many rows, not for what is within a
    precision.
    """
    if result.is_of_examples and verdict.kind in ("identical", "unchanged"):
        return False
    if verdict.is_open or verdict.tone in ("", "open") or not verdict.texts:
        return verdict.is_open or verdict.tone in ("", "open")
    if verdict.tone == "near":
        return not entry.job
    is_said = any(text.startswith(f"{entry.name} is {verdict.texts[0].partition(':')[0]}") for text in result.warnings)
    return (verdict.metric == OF_OUTPUTS or verdict.kind == "diverged") and verdict.tone == "bad" and not is_said


def _judged(verdict: Verdict) -> str:
    """The verdict in words; of one on outputs with the first thing that it rests on."""
    if verdict.metric == OF_OUTPUTS:
        return ": ".join([kind_in_words(verdict.kind), *verdict.texts[:1]])
    return f"{heading_of(verdict.metric)} {verdict.why}"


def _beside_cpu(row: ModelRow) -> Iterator[Note]:
    """The speed of an accelerator, where it does the job, by the fastest on the CPU that is not the reference."""
    result, entry = row.result, row.row
    if is_lost(row) or not result.is_of_examples or row.tone == "bad":
        return
    cpu, ratio = fastest_on_cpu(result.rows, entry.place), entry.figures.get("latency_cpu_ratio")
    reference = reference_of(entry, result.rows)
    if cpu is None or ratio is None or not ratio.value or cpu is reference or cpu is entry or runs_on_cpu(entry):
        return
    text = f"{times_as_fast(ratio)} as fast as {cpu.name}, the fastest on the CPU"
    yield Note(entry.name, text)


def _faults(search: Result, evaluation: Result) -> Iterator[Note]:
    """What was located in the model of an evaluation, unless its verdict says it, and what to do about it."""
    answers = [block for each in search.blocks for block in each.blocks if isinstance(block, Sentence)]
    if answers and answers[0].tone == "bad":
        found, name = search.rows[0].name, f"{search.rows[0].name}, layer by layer"
        kind = search.rows[0].verdicts[0].kind
        said = [text for row in evaluation.rows if row.name == found for each in row.verdicts for text in each.texts]
        if not any(text.startswith(kind) for text in said):
            yield Note(name, answers[0].text.removesuffix("."), "bad")
        yield from (Note(name, note.text) for note in search.notes if note.of == NEXT and not note.command)


def warnings_of(result: Result) -> tuple[str, ...]:
    """The warnings of a result, first that it ended early."""
    stopped = [f"the run ended early: {result.stopped}"] if result.stopped else []
    return (*stopped, *result.warnings)


def at(sections: Sequence[Section], place: Place) -> list[Block]:
    """The blocks of sections that stand at a place."""
    return [block for section in sections if section.place == place for block in section.blocks]
