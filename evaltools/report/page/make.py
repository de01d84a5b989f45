"""Results as a page: which sections there are, and in which order."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evaltools.command import TaskCommand
from evaltools.known_tasks import task_command
from evaltools.report.content import Download, Page, Part, Sources, bounded, bounded_first
from evaltools.report.page.joined import first_of_results
from evaltools.report.page.sections.accuracy import accuracy
from evaltools.report.page.sections.answer import at, first_of_task, own_sections, warnings_of
from evaltools.report.page.sections.devices import devices
from evaltools.report.page.sections.proof import proof
from evaltools.report.page.sections.run import origin
from evaltools.report.page.sections.speed import speed
from evaltools.report.page.sections.summary import by_task
from evaltools.result.places import machine_of
from evaltools.result.result import HINT, INVOKE_US, WARNING, Result
from evaltools.result.section import Section


def page_of(sources: Sources) -> Page:
    """All that is shown of results; sections without data are left out."""
    first = [each for name, outcome in sources.outcomes.items() for each in first_of_results({name: outcome})]
    first += [first_of_task(results, sources.located) for results in by_task(sources.evaluations)]
    first += first_of_results(sources.others)
    parts = [_of_result(name, outcome, sources) for name, outcome in sources.outcomes.items()]
    parts += [_of_evaluation(name, result, sources) for name, result in sources.evaluations.items()]
    parts += [_of_result(name, result, sources) for name, result in sources.others.items()]
    return Page(_title(parts, sources), tuple(map(bounded_first, first)), tuple(map(bounded, parts)), _below(sources))


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
    by_name = parts[:1] if len(parts) == 1 or sources.outcomes else []
    kinds = Counter(part.about.rpartition(": ")[2] for part in parts[len(by_name) :])
    others = [f"{count} x {kind}" if count > 1 else kind for kind, count in kinds.items()]
    return ", ".join([*(part.about for part in by_name), *others])


def _of_evaluation(name: str, result: Result, sources: Sources) -> Part:
    task = task_command(result.command)
    searches = sources.located.get(name, ())
    located = {f"{name}.locate{f'-{number}' * (number > 1)}": each for number, each in enumerate(searches, 1)}
    names = [row.name for row in result.rows]
    paths = [f"rows/{place}" for place in range(len(names))]
    own = own_sections(result)
    sections = [
        proof(result.rows, names, paths, [result.model, *result.other_models]),
        accuracy(result),
        *at(own, "accuracy"),
        *at(own, "numerics"),
        *(section for source, search in located.items() for section in _of_located(source, search)),
        *at(own, "task"),
        *filter(None, [speed(result)]),
        *(section for section in at(own, "speed") if section.title),
        *filter(None, [devices(result.device_run)]),
        *at(own, "changes"),
        origin(result.environment, result.failed),
    ]
    return Part(
        source=name,
        folders=_folders(name, result.environment.folder, sources),
        about=f"{result.models_in_words}: {_subject(task, result)}",
        sections=tuple(sections),
        warnings=warnings_of(result),
        hints=tuple(_hints(result, bool(located))),
        downloads=(
            _download(name, result, sources),
            *(_download(source, search, sources) for source, search in located.items()),
        ),
    )


def _subject(task: TaskCommand, result: Result) -> str:
    """The task, as it is typed."""
    return result.subject or task.words


def _hints(result: Result, is_located: bool) -> list[str]:
    """What is not known, and what brings it."""
    hints = []
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


def _of_result(name: str, result: Result, sources: Sources) -> Part:
    about = Path(result.models[0].file).name if len(result.models) == 1 else f"{len(result.models)} models"
    texts = {of: tuple(note.text for note in result.notes if note.of == of) for of in (WARNING, HINT)}
    return Part(
        source=name,
        folders=_folders(name, result.environment.folder, sources),
        about=f"{result.subject}: evaltools {result.command}" if result.subject else f"{about}: {result.command}",
        sections=tuple(section for section in result.blocks if section.place != "first"),
        warnings=texts[WARNING],
        hints=texts[HINT],
        downloads=(_download(name, result, sources),),
    )


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
