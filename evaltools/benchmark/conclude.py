"""From what was measured, at one place or at several, to the result of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.benchmark.accuracy import AccuracyGiven
from evaltools.benchmark.details import details, notes_of
from evaltools.benchmark.rows import rows_of
from evaltools.parameter import Value
from evaltools.report.words.facts import accuracy_of, by_latency, is_faster, load_in_words, median_interval_of
from evaltools.report.words.next_steps import next_command, where_it_did_not_run
from evaltools.result.device import DeviceRun
from evaltools.result.facts import Environment, Load, Model, load_of_parts
from evaltools.result.result import HINT, WARNING, Result, Row, next_step
from evaltools.result.rounds import Measured, Records
from evaltools.result.section import Note

_ENOUGH_ROUNDS: Final = 8


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
    warnings: list[str] = []
    for place, records in places.items():
        warnings += [*records.warnings, *filter(None, [load_in_words(loads[place])])]
    return result_of(asked, rows, measured, warnings, stopped)


def result_of(
    asked: Asked, rows: list[Row], measured: Sequence[Measured], warnings: Sequence[str] = (), stopped: str = ""
) -> Result:
    """The result of rows, with what there is to show of them; ``measured`` is what each was concluded from."""
    models, environment = asked.models, asked.environment
    steps = _next_steps(rows, models, asked.options, environment.command)
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
            *dict.fromkeys(steps),
            *(Note(HINT, text) for text in _hints(measured)),
        ],
        blocks=details(rows, measured, models),
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


def _next_steps(
    rows: Sequence[Row], models: Sequence[Model], options: Mapping[str, Value], typed: Sequence[str]
) -> Iterator[Note]:
    """Of the fastest row how sure that is, and whether its outputs are right; of others only why they did not run."""
    ranked = [row for row in by_latency(rows) if not row.fallback]
    for row in rows:
        model = models[row.model].file
        yield from where_it_did_not_run(row, model, typed, _input_shapes(options))
        if ranked and row is ranked[0]:
            yield from _whether_it_is_sure(ranked)
            if row.delegates and accuracy_of(row) is None:
                command = next_command("diff", model, [*row.flags, *_input_shapes(options)], typed)
                yield next_step("says whether its outputs are still those of the CPU", command)


def _input_shapes(options: Mapping[str, Value]) -> Iterator[str]:
    """The shapes of inputs that were stated, as ``evaltools diff`` takes them."""
    names, shapes = (str(options.get(name) or "") for name in ("input_layer", "input_layer_shape"))
    for name, shape in zip(names.split(","), shapes.split(":"), strict=False):
        if shape:
            yield f"--input_shape={name}:{shape}"


def _whether_it_is_sure(ranked: Sequence[Row]) -> Iterator[Note]:
    """More rounds where the two fastest rows cannot be separated, or the only one has no interval."""
    fastest, following = ranked[0], ranked[1:2]
    if not fastest.series or fastest.counts["rounds"] >= _ENOUGH_ROUNDS:
        return
    more = f"the same command with --rounds={_ENOUGH_ROUNDS}"
    if median_interval_of(fastest) is None:
        yield next_step(f"{more} says how sure the medians are")
    elif any(not is_faster(fastest, row) for row in following):
        yield next_step(f"{more} may separate the two fastest, whose intervals overlap")
