"""From what was measured, at one place or at several, to the result of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from evaltools.benchmark.accuracy import AccuracyGiven
from evaltools.benchmark.rows import rows_of
from evaltools.benchmark.screen import first_screen, next_steps, notes_of
from evaltools.benchmark.sections import details
from evaltools.parameter import Value
from evaltools.report.page.sections.devices import devices
from evaltools.report.page.sections.proof import proof
from evaltools.report.page.sections.run import origin
from evaltools.report.words.facts import label, load_in_words
from evaltools.result.device import DeviceRun
from evaltools.result.facts import Environment, Load, Model, load_of_parts
from evaltools.result.result import HINT, NEXT, WARNING, Result, Row
from evaltools.result.rounds import Measured, Records
from evaltools.result.section import Note, Section


class Asked(Struct, frozen=True):
    """What a benchmark was asked for and where: its ``models``, the options in force, the accuracies that are known.

    ``accuracies`` are those of each row of one place; empty for none. ``device_run`` is None on this computer.
    """

    environment: Environment
    options: dict[str, Value]
    models: list[Model]
    accuracies: Sequence[AccuracyGiven | None] = ()
    device_run: DeviceRun | None = None


def conclude(asked: Asked, places: Mapping[str, Records]) -> Result:
    """The result of what was measured at each place; one that is alone has no name, and rows are not named after it."""
    environment = asked.environment
    loads = {place: _load_of(records.measured) for place, records in places.items()}
    on_devices = Load(environment.cpu_count, 0.0, 0.0) if asked.device_run is not None else None
    rows = [
        replace(row, load=on_devices or loads[place])
        for place, records in places.items()
        for row in rows_of(records.measured, asked.accuracies, place)
    ]
    measured = [each for records in places.values() for each in records.measured]
    if asked.device_run is None:
        load = load_of_parts([load for load in loads.values() if load is not None])
        asked = replace(asked, environment=replace(environment, load=load))
    stopped = next((records.stopped for records in places.values() if records.stopped), "")
    warnings = [f"stopped: {stopped}"] if stopped else []
    for place, records in places.items():
        warnings += [*records.warnings, *filter(None, [load_in_words(loads[place])])]
    return result_of(asked, rows, measured, warnings, stopped)


def result_of(
    asked: Asked, rows: list[Row], measured: Sequence[Measured], warnings: Sequence[str] = (), stopped: str = ""
) -> Result:
    """The result of rows, with what there is to show of them; ``measured`` is what each was concluded from."""
    models, environment = asked.models, asked.environment
    names = [label(models, row) for row in rows]
    steps = next_steps(rows, models, asked.options, environment.command)
    sections = [
        Section("", first_screen(rows, models, stopped), "first"),
        proof(rows, names, [f"rows/{place}" for place in range(len(rows))], models),
        *details(rows, measured, models),
        devices(asked.device_run),
        origin(environment),
    ]
    return Result(
        command="benchmark",
        environment=environment,
        models=models,
        rows=rows,
        complete=not stopped,
        stopped=stopped,
        options=asked.options,
        notes=[
            *notes_of(rows, measured, models),
            *(Note(WARNING, text, "open") for text in dict.fromkeys(warnings)),
            *(Note(NEXT, text) for text in dict.fromkeys(steps)),
            *(Note(HINT, text) for text in _hints(measured)),
        ],
        blocks=[section for section in sections if section is not None],
        device_run=asked.device_run,
    )


def _load_of(measured: Sequence[Measured]) -> Load | None:
    return load_of_parts([found.load for each in measured for found in each.rounds if found.load is not None])


def _hints(measured: Sequence[Measured]) -> list[str]:
    """What is not known, and what brings it."""
    hints = []
    if not any(each.profile for each in measured):
        hints.append("which operators take how long: --enable_op_profiling=true")
    if all(len(each.rounds) < 2 for each in measured):
        hints.append("how much processes differ: --rounds=5")
    return hints
