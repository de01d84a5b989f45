"""What gates look at: the rows of one model in a run, and what is known of each of them, as limits need it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.gates.bounds import compared
from evaltools.metrics.between_runs import Timed, crowding_of, ratio_between_runs
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import LatencyRatio, median_interval
from evaltools.metrics.series import Withheld
from evaltools.result.facts import Environment, Load, Model
from evaltools.result.figure import Figure, Part
from evaltools.result.obstacles import why_not_measured
from evaltools.result.places import reference_of
from evaltools.result.result import Result, Row, standing_alone

Earlier = TypeVar("Earlier")
OldPart = TypeVar("OldPart")
MOST_LOAD: Final = 1.0
"""Other processes for each core, on average, beside which latencies still count where a gate allows no other load."""
MOST_STEAL: Final = 0.1
"""The share of the time of all cores that a hypervisor may take from latencies that count."""
NO_REFERENCE: Final = "this result has no reference to compare it with; run with one"
_NO_EARLIER_ROW: Final = "others of the benchmark are compared with it; name these in the gate (model, configuration)"
_UNKNOWN_LOAD: Final = "what else the machine did is not known, and it may have been busy; measure where it says so"
IN_GATE: Final = "write allow_load = inf in the gate"
"""What allows any load for the limits of a file of gates."""
BY_FLAG: Final = "give --allow_any_load"
"""The same for those of ``--limit``."""
EARLIER: Final = "the earlier result"


class RunRows(Struct, frozen=True):
    """The rows of one model with one command.

    ``task``, ``subject``, what that is called, and the name of the ``model`` are what patterns are compared with; all
    are empty where they are not known. ``failure`` says why there are no rows, also where their names are not known.
    ``given`` is everything else that decides the figures, by name. ``measured`` is the model, None where nothing was.
    ``is_base``: times of later models of the same benchmark are ratios to its own.
    """

    task: str = ""
    subject: str = ""
    model: str = ""
    rows: Sequence[Row] = ()
    failure: str = ""
    elapsed_s: float = 0.0
    warnings: Sequence[str] = ()
    given: dict[str, str] = field(default_factory=dict)
    measured: Model | None = None
    environment: Environment | None = None
    is_base: bool = False

    @property
    def tests(self) -> list[Row]:
        """The rows that are no references."""
        return [row for row in self.rows if row.role == "test"]

    def row(self, name: str) -> Row | None:
        """The row of that name."""
        return next((row for row in self.rows if row.name == name), None)


def parts_of(run: str, result: Result) -> dict[str, RunRows]:
    """What gates are compared with, by the name of the run or a part of it."""
    if not result.rows:
        return {run: _of_rows((), result)}
    names = part_names(run, [model.file for model in result.models])
    found: dict[str, list[Row]] = {}
    for row in standing_alone(result):
        name = f"{run}/{result.model_names[row.model]}/{row.job}" if row.job else names[row.model]
        found.setdefault(name, []).append(row)
    parts = {name: _of_rows(rows, result) for name, rows in found.items()}
    (first, *others) = parts
    if result.command == "benchmark" and others and all(row.status == "measured" for row in parts[first].rows):
        parts[first] = replace(parts[first], is_base=True)
    return parts


def _of_rows(rows: Sequence[Row], result: Result) -> RunRows:
    first = rows[0] if rows else Row("", command=result.command)
    model = result.models[first.model]
    named = [row for row in rows if not row.is_all]
    return RunRows(
        first.command,
        first.texts.get("subject", first.command),
        Path(model.file).name,
        named,
        "" if named else first.reason,
        first.value("elapsed_s") or result.environment.elapsed_s,
        () if first.job else result.warnings,
        first.given,
        model,
        result.environment,
    )


def part_names(run: str, models: Sequence[str]) -> list[str]:
    """The names of the runs of one or several models.

    >>> part_names("fast", ["a/m.tflite"]), part_names("fast", ["a/m.tflite", "n.tflite"])
    (['fast'], ['fast/m', 'fast/n'])
    """
    if len(models) == 1:
        return [run]
    stems = [Path(model).stem for model in models]
    return [f"{run}/{stem if stems.count(stem) == 1 else model}" for stem, model in zip(stems, models, strict=True)]


class Allowed(Struct, frozen=True):
    """How much of what makes a result no clean one a gate allows by name, for each configuration.

    ``load`` is how many other processes may run for each core, on average, while latencies are measured, and
    ``any_load_by`` says what allows any number, empty for nothing. ``missing``: what no runtime here can create is
    skipped.
    """

    failed_examples: int = 0
    nan_outputs: int = 0
    crashes: int = 0
    load: float = MOST_LOAD
    missing: bool = False
    any_load_by: str = ""


NOTHING_ALLOWED: Final = Allowed()


class Evidence(Struct, frozen=True):
    """One configuration with its figures, and what decides whether they count.

    ``not_measured`` says why it has no figures that count: not measured, fell back, ended early, or lost examples;
    ``cannot_exist`` that this machine cannot have what it asks for. ``examples`` counts those with an answer.
    ``reference_not_measured`` says why there is nothing to compare it with. ``base`` has the figures of what it is
    compared with. ``ratio`` is the latency ratio. ``loads`` is what else the machine did while each side was timed, by
    the words for a side that is not this result's; a device, on which nothing else is started, has none. ``allowed`` is
    what the gate allows. ``classes`` is between how many classes a classifier chooses, 0 for other models. ``limited``
    are the figures that have a limit of their own beside. ``old`` has the same with an earlier result in the place of
    the reference, None where there is none.
    """

    configuration: str
    not_measured: str = ""
    cannot_exist: bool = False
    reference_not_measured: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    base: Mapping[str, Figure] = field(default_factory=dict)
    outputs: Sequence[Part] = ()
    ratio: LatencyRatio | None = None
    is_emulated: bool = False
    loads: Mapping[str, Load | None] = field(default_factory=dict)
    allowed: Allowed = NOTHING_ALLOWED
    examples: int = 0
    classes: int = 0
    limited: frozenset[str] = frozenset()
    old: Evidence | None = None

    @property
    def busy(self) -> str:
        """Why no latency counts; empty where the machine was quiet enough."""
        found = (of_another(whose, why_too_busy(load, self.allowed)) for whose, load in self.loads.items())
        return next(filter(None, found), "")


def evidence_of(
    found: RunRows, row: Row, allowed: Allowed = NOTHING_ALLOWED, old: Baseline[RunRows] | None = None
) -> Evidence:
    """The evidence on one of the rows of a run, and that on it since an earlier result."""
    obstacle, examples = _obstacle(found, row, allowed), row.finished_examples
    if obstacle:
        return Evidence(row.name, obstacle, row.cannot_exist, examples=examples, allowed=allowed)
    ratio, reference = row.figures.get("latency_ratio"), reference_of(row, found.rows)
    own = Evidence(
        row.name,
        reference_not_measured=_why_no_reference(found, row, allowed),
        figures={name: figure for name, figure in row.figures.items() if figure is not ratio},
        base={} if reference is None else reference.figures,
        outputs=row.parts,
        is_emulated=row.is_emulated,
        loads={"": row.load},
        allowed=allowed,
        ratio=None if ratio is None else _ratio(ratio, row),
        examples=examples,
        classes=_classes(found),
    )
    return own if old is None else replace(own, old=_since(old, found, row, own))


def _classes(found: RunRows) -> int:
    """Between how many classes the answers of Top-k are; 0 where they are of none."""
    outputs = [] if found.measured is None else found.measured.outputs
    sizes = [size for size in outputs[0].shape if size != 1] if len(outputs) == 1 else []
    return sizes[0] if len(sizes) == 1 else 0


def _since(old: Baseline[RunRows], new: RunRows, row: Row, own: Evidence) -> Evidence:
    """The evidence with the earlier result in the place of the reference."""
    earlier = old.result.row(row.name)
    if earlier is None:
        names = ", ".join(each.name for each in old.result.rows)
        return Evidence(row.name, f"{old.name} has no such configuration; it has {names}")
    obstacle = of_another(EARLIER, _obstacle(old.result, earlier, own.allowed))
    others = other_inputs(old.result, new)
    if not obstacle and others and not old.other_examples:
        obstacle = (
            f"other inputs than before ({'; '.join(others)}); measure on the same, or give --allow_other_examples=true "
            "for a comparison of two samples"
        )
    if obstacle:
        return Evidence(row.name, obstacle)
    examples = row.finished_examples if not others and earlier.finished_examples == row.finished_examples else None
    before, now = _timed(earlier), _timed(row)
    return replace(
        own,
        reference_not_measured="",
        figures={
            name: compared(figure, earlier.figures.get(name), EARLIER, examples) for name, figure in own.figures.items()
        },
        base=earlier.figures,
        ratio=None if before is None or now is None else ratio_between_runs(before, now),
        loads={"": row.load, EARLIER: earlier.load},
    )


def _timed(row: Row) -> Timed | None:
    found = row.figures.get("latency_ms")
    if found is None or not found.value:
        return None
    interval = found.interval and Interval(1000 * found.interval.low, 1000 * found.interval.high)
    if interval is None and "rounds" not in row.counts:
        interval = median_interval([row.series.get("invoke_us", [])])
    load = row.load or Load(1)
    crowding = crowding_of(load.cpu_count, load.others_running, load.others_cores, row.num_threads)
    return Timed(1000 * found.value, interval, crowding)


def why_too_busy(load: Load | None, allowed: Allowed) -> str:
    """Why latencies do not count: more other processes for each core than are allowed, or much time stolen.

    Where nobody knows how many others ran, it may have been any number.

    >>> why_too_busy(Load(2, 11.0), NOTHING_ALLOWED)[:51], why_too_busy(Load(8, 2.0), NOTHING_ALLOWED)
    ('the machine was busy, 11 other processes on 2 cores', '')
    """
    most, otherwise = allowed.load, f", or {allowed.any_load_by}" if allowed.any_load_by else ""
    if load is None or load.others is None:
        return "" if math.isinf(most) else f"{_UNKNOWN_LOAD}{otherwise}"
    if load.others > most * load.cpu_count:
        return (
            f"the machine was busy, {round(load.others)} other processes on {load.cpu_count} cores, and latencies "
            f"count up to {most:g} for each core; measure where less runs{otherwise}"
        )
    if load.steal is not None and load.steal > MOST_STEAL:
        return (
            f"the hypervisor gave {round(100 * load.steal)} % of the time to others, and latencies count up to "
            f"{round(100 * MOST_STEAL)} %; measure where its host is less busy"
        )
    return ""


def _ratio(figure: Figure, row: Row) -> LatencyRatio:
    """A latency ratio, of as many processes as there were rounds where it has an interval."""
    known = row.counts.get("processes", row.counts.get("rounds", 1))
    withheld: Withheld | None = "jumped" if figure.withheld == "jumped" else "few" if figure.withheld else None
    processes = known if figure.interval is not None else 1
    return LatencyRatio(figure.count or 0, figure.value or 0.0, figure.interval, processes, withheld)


def _obstacle(found: RunRows, row: Row, allowed: Allowed) -> str:
    return why_not_measured(row, found.rows, allowed.failed_examples, allowed.nan_outputs, allowed.crashes)


def _why_no_reference(found: RunRows, row: Row, allowed: Allowed) -> str:
    """A benchmark has no reference: its times are compared with the first row's."""
    reference = reference_of(row, found.rows)
    if reference is None:
        base = _NO_EARLIER_ROW if row.command == "benchmark" else NO_REFERENCE
        return "" if "latency_ratio" in row.figures else base
    return of_another("the reference", _obstacle(found, reference, allowed))


def of_another(whose: str, obstacle: str) -> str:
    """The same obstacle as that of ``the reference``, or of ``the earlier result``; ``whose`` may be empty."""
    return f"{whose}: {obstacle}" if obstacle and whose else obstacle


class Baseline(Struct, Generic[Earlier], frozen=True):
    """An earlier result, or a part of one, and the ``name`` of its file.

    ``other_examples``: it may be of other examples than the new one, which are then compared as two samples.
    ``margin`` is the drop of an accuracy, 0..1, that counts as none, None where it was not stated; ``margin_has_unit``:
    it was stated as a share, else in a metric's own unit. ``allowed`` is for what a
    comparison asks by itself.
    """

    name: str
    result: Earlier
    other_examples: bool = False
    margin: float | None = None
    margin_has_unit: bool = True
    allowed: Allowed = NOTHING_ALLOWED

    def of(self, part: OldPart) -> Baseline[OldPart]:
        """The same about a part of the result."""
        return Baseline(self.name, part, self.other_examples, self.margin, self.margin_has_unit, self.allowed)


def other_inputs(old: RunRows, new: RunRows) -> list[str]:
    """What the models were given in another way: examples, labels, preprocessing; empty where it is all the same."""
    names = dict.fromkeys([*old.given, *new.given])
    pairs = [(name, old.given.get(name, "none"), new.given.get(name, "none")) for name in names]
    return [f"{name}: {then} then, {later} now" for name, then, later in pairs if then != later]
