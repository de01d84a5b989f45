"""The first screen of a task's results with what the task itself adds to it; the sections that tasks give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from evaltools.extensions import named
from evaltools.report.content import First
from evaltools.report.page.sections.answer import first_screen, of_result
from evaltools.report.words.facts import counted
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Block, Lines, Note, Place, Section, Sentence

if TYPE_CHECKING:
    from evaltools.result.locate import LocateResult


def first_of_task(results: Mapping[str, EvaluationResult], located: Mapping[str, Sequence[LocateResult]]) -> First:
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
        if located.get(name):
            from evaltools.report.page.sections.layers import faults

            notes += faults(located[name])
    if broken and blocks and isinstance(blocks[0], Sentence):
        blocks[0] = Sentence(f"{blocks[0].text} {counted(broken, 'limit')} broken.")
    return replace(found, blocks=tuple(blocks), notes=tuple(notes))


def _bad_notes(block: Block) -> int:
    """How many remarks of the task say that something is wrong, which are limits that are broken."""
    lines = block.lines if isinstance(block, Lines) else ()
    return sum(isinstance(line, Note) and line.tone == "bad" for line in lines)


def warnings_of(result: EvaluationResult) -> tuple[str, ...]:
    """The warnings of a result, first that it ended early."""
    stopped = [f"the run ended early: {result.stopped}"] if result.stopped else []
    not_traced = result.execution.not_traced if result.execution is not None else None
    return (*stopped, *([not_traced] if not_traced else []), *result.warnings)


def at(sections: Sequence[Section], place: Place) -> list[Section]:
    """The sections that stand at a place."""
    return [section for section in sections if section.place == place]


def own_sections(result: EvaluationResult) -> list[Section]:
    """The sections of the task's part that have blocks."""
    return [section for section in named(result.part.sections_at)(result) if section.blocks]
