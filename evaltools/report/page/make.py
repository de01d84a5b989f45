"""Results as a page: which sections there are, and in which order."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from evaltools.known_tasks import task_command
from evaltools.report.content import Download, Page, Part, Sources, bounded, bounded_first
from evaltools.report.page.figures import accuracy, speed
from evaltools.report.page.what_ran import devices, origin, proof
from evaltools.report.screen.charts import answering
from evaltools.report.screen.first import at, first_screens, warnings_of
from evaltools.report.screen.matrix import matrix_of
from evaltools.report.screen.table import by_task
from evaltools.result.places import machine_of
from evaltools.result.result import HINT, INVOKE_US, Result
from evaltools.result.section import Block, Place, Section, Table

_GATE: Final = "gate"
_MOST_NAMED: Final = 3
"""Models in a title."""


def page_of(sources: Sources) -> Page:
    """All that is shown of results; sections without data are left out."""
    results = dict(sorted(sources.results.items(), key=lambda each: _order(each[1])))
    screens = zip(first_screens(results, sources.located), by_task(results), strict=True)
    first = [
        replace(screen, blocks=(*_with_matrix(screen.blocks, of), *_glances(of), *answering(of)))
        for screen, of in screens
    ]
    alone = {next(iter(of)) for of in by_task(results) if len(of) == 1}
    parts = [_part(name, result, sources, name in alone) for name, result in results.items()]
    return Page(_title(parts, sources), tuple(map(bounded_first, first)), tuple(map(bounded, parts)), _below(sources))


def _with_matrix(blocks: Sequence[Block], results: Mapping[str, Result]) -> Iterator[Block]:
    """The blocks of a first screen, of a suite with all models at a glance before its table."""
    matrix = matrix_of(results)
    for block in blocks:
        if isinstance(block, Table) and matrix is not None:
            yield matrix
        yield block


def _glances(results: Mapping[str, Result]) -> list[Block]:
    """What the only result of a command shows at a glance beside its answer; of several each in its details."""
    (first, *others) = results.values()
    return [] if others else at(first.blocks, "glance")


def _order(result: Result) -> int:
    """A page begins with what came of gates, then with evaluations."""
    return 0 if result.command == _GATE else 1 if result.is_of_examples else 2


def _below(sources: Sources) -> str:
    """Which evaltools measured, where and when."""
    found = [(each.environment, each.device_run) for each in sources.results.values()]
    if not found:
        return ""
    versions = dict.fromkeys(environment.evaltools for environment, _ in found)
    machines = dict.fromkeys(machine_of(environment, run) for environment, run in found)
    when = _from_to([environment.started_at for environment, _ in found])
    return f"evaltools {' and '.join(versions)}; {'; '.join(machines)}; {when}"


def _from_to(moments: Sequence[str]) -> str:
    """The first and the last of moments in ISO 8601, to the minute.

    >>> _from_to(["2026-11-25T19:32:30+00:00", "2026-11-25T19:30:57+00:00"])
    '2026-11-25 19:30 UTC to 2026-11-25 19:32 UTC'
    """
    ordered = [f"{moment[:10]} {moment[11:16]} {moment[19:]}".replace("+00:00", "UTC") for moment in sorted(moments)]
    return " to ".join(dict.fromkeys((ordered[0], ordered[-1])))


def _title(parts: Sequence[Part], sources: Sources) -> str:
    """What the only result is of, or the gates; then how many other results there are of what."""
    by_name = parts[:1] if len(parts) == 1 or any(each.command == _GATE for each in sources.results.values()) else []
    models: dict[str, list[str]] = {}
    for part in parts[len(by_name) :]:
        file = Path(sources.results[part.source].model.file).name
        models.setdefault(part.about.rpartition(": ")[2], []).append(file)
    others = [_of_kind(kind, dict.fromkeys(of), len(of)) for kind, of in models.items()]
    return ", ".join([*(part.about for part in by_name), *others])


def _of_kind(kind: str, models: Collection[str], count: int) -> str:
    """So many results of a kind, with the names of a few models where each has its own.

    >>> _of_kind("coco", ["a.tflite", "b.tflite"], 2), _of_kind("coco", ["a.tflite"], 2)
    ('a.tflite, b.tflite: coco', '2 x coco')
    """
    if count == 1:
        return kind
    return f"{', '.join(models)}: {kind}" if len(models) == count <= _MOST_NAMED else f"{count} x {kind}"


def _part(name: str, result: Result, sources: Sources, is_alone: bool) -> Part:
    """``is_alone``: the first screen has what it shows at a glance."""
    searches = sources.located.get(name, ())
    located = {f"{name}.locate{f'-{number}' * (number > 1)}": each for number, each in enumerate(searches, 1)}
    own = [section for section in result.blocks if section.blocks]
    sections = [
        proof(result),
        accuracy(result) if result.is_of_examples else None,
        *([] if is_alone else _at(own, "glance")),
        *_at(own, "accuracy"),
        *_at(own, "numerics"),
        *(section for source, search in located.items() for section in _of_located(source, search)),
        *_at(own, "task"),
        speed(result),
        *(section for section in _at(own, "speed") if section.title),
        devices(result.device_run),
        *_at(own, "changes"),
    ]
    return Part(
        source=name,
        folders=_folders(name, result.environment.folder, sources),
        about=_about(result),
        sections=tuple(filter(None, sections)),
        ran=(*_at(own, "run"), *origin(result)),
        warnings=warnings_of(result),
        hints=tuple(_hints(result, bool(located))),
        downloads=(
            _download(name, result, sources),
            *(_download(source, search, sources) for source, search in located.items()),
        ),
    )


def _at(sections: Sequence[Section], place: Place) -> list[Section]:
    return [section for section in sections if section.place == place]


def _about(result: Result) -> str:
    """Its models and the command or the task, as it is typed; of gates their file."""
    if result.subject and not result.is_of_examples:
        return f"{result.subject}: evaltools {result.command}"
    models = result.models_in_words if len(result.models) == 1 else f"{len(result.models)} models"
    words = task_command(result.command).words if result.is_of_examples else result.command
    return f"{models}: {result.subject or words}"


def _hints(result: Result, is_located: bool) -> list[str]:
    """What is not known, and what brings it."""
    hints = [note.text for note in result.notes if note.of == HINT]
    if not result.is_of_examples:
        return hints
    task = task_command(result.command)
    if not any(row.verdict for row in result.rows):
        hints.append("how far a configuration is from another one: --config='NAME: flags' adds one to compare")
    if not any(row.series.get(INVOKE_US) for row in result.rows):
        hints.append("the time of each single run: --record_examples=true with one worker, or evaltools benchmark")
    if "locate" in task.parameters and not is_located:
        hints.append("which operator makes a difference: --locate=true")
    if "locate" not in task.parameters:
        hints.append(
            f"how far the outputs are apart: evaltools diff {shlex.quote(result.model.file)} --report=FILE.html"
        )
    hints.append(
        f"memory, load time, operators: evaltools benchmark {shlex.quote(result.model.file)} --report=FILE.html"
    )
    return hints


def _of_located(source: str, search: Result) -> list[Section]:
    """What was located in the model of an evaluation, without what that says itself; ``source`` is its JSON result."""
    return [replace(section, source=source) for section in search.blocks if section.place not in ("first", "run")]


def _folders(name: str, asked_in: str, sources: Sources) -> tuple[Path, ...]:
    """Where relative names of a result may be meant from; the present folder where nothing else is known."""
    known = [Path(asked_in)] if asked_in else []
    known += [sources.folders[name]] if name in sources.folders else []
    return tuple(known) or (Path(),)


def _download(name: str, result: Any, sources: Sources) -> Download:
    return Download(f"{name}.json.gz", result, sources.saved.get(name, b""))
