"""What is done with a culprit once it is found: its worst run is kept, its cause looked up, other settings tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.locate.causes.table import find_causes
from evaltools.locate.parts.bench import Bench, GivenUp
from evaltools.locate.parts.part import Case, Outcome, Part, TensorRuns
from evaltools.locate.search.findings import Findings, Found
from evaltools.locate.search.judge import Limit, least_limit
from evaltools.model.cut import CuttableModel
from evaltools.result.locate import Cause, LocateResult, SweptOption

_MOST_EXPLAINED: Final = 5
_NEIGHBOUR: Final = "neighbour.npz"


class Setting(Struct, frozen=True):
    """A flag of a delegate with another value, and what it means."""

    flag: str
    value: str
    delegate: str
    tells: str


_SETTINGS: Final = (
    Setting("xnnpack_force_fp16", "false", "XNNPACK", "float32 instead of float16"),
    Setting("gpu_precision_loss_allowed", "false", "GPU", "float32 instead of float16"),
    Setting("num_interpreter_threads", "4", "XNNPACK", "the work is shared among four threads"),
)


def variants(tested: Configuration) -> list[tuple[Setting, Configuration]]:
    """The settings that differ from those of a configuration, each with the configuration that has it.

    >>> half = Configuration.from_text("half", "use_xnnpack=true xnnpack_force_fp16=true num_threads=4")
    >>> [setting.tells for setting, _ in variants(half)]
    ['float32 instead of float16']
    """
    names = {delegate.name for delegate in tested.delegates.requested}
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in tested.to_flags())
    found = []
    for setting in _SETTINGS:
        is_other = flags.get(setting.flag, "") != setting.value
        if setting.delegate not in names or not is_other or not _is_in_force(setting, tested):
            continue
        changed = {**flags, setting.flag: setting.value}
        found.append((setting, Configuration.from_flags(tested.name, list(changed.items()))))
    return found


def _is_in_force(setting: Setting, tested: Configuration) -> bool:
    """Whether the setting is a change: a flag of precision is one only where precision is given away."""
    if setting.value != "false":
        return True
    return tested.delegates.value(setting.flag) is True


def sweep(
    tested: Configuration, outcome_of: Callable[[Configuration], Outcome], limit: Limit
) -> tuple[SweptOption, ...]:
    """Whether a part is still wrong with each other setting; those that cannot be run are left out."""
    found = []
    for setting, configuration in variants(tested):
        outcome = outcome_of(configuration)
        if outcome.ran:
            wrong = any(map(limit.beyond, outcome.outputs))
            found.append(SweptOption(f"--{setting.flag}={setting.value}", wrong, setting.tells))
    return tuple(found)


class Explainer:
    """Looks closer at the culprits of one search, at the surest ones first."""

    def __init__(self, bench: Bench, model: CuttableModel, whole: Part, findings: Findings) -> None:
        self._bench = bench
        self._model = model
        self._whole = whole
        self._findings = findings
        self._cases: dict[int, Case] = {}
        self._causes: dict[int, tuple[Cause, ...]] = {}
        self._swept: dict[int, tuple[SweptOption, ...]] = {}

    def explain(self) -> None:
        """Look at the culprits; where a limit is reached, the others stay unexplained."""
        surest = sorted(
            self._findings.culprits, key=lambda found: found.status not in ("confirmed", "confirmed in context")
        )
        try:
            for found in surest[:_MOST_EXPLAINED]:
                if not found.status.startswith("crashes") and found.evidence[0].method != "taps":
                    self._explain(found)
        except GivenUp as error:
            self._findings.stopped = self._findings.stopped or str(error)

    def explained(self, result: LocateResult) -> LocateResult:
        """The same with the causes of its culprits, and what other settings gave."""
        places = [found.place for found in sorted(self._findings.culprits, key=lambda found: found.place)]
        culprits = [
            replace(culprit, causes=self._causes.get(place, ()), sweep=self._swept.get(place, ()))
            for place, culprit in zip(places, result.culprits, strict=True)
        ]
        return replace(result, culprits=tuple(culprits), stopped=self._findings.stopped)

    @property
    def case(self) -> Case | None:
        """The surest culprit with its worst run."""
        return next(iter(self._cases.values()), None)

    def _explain(self, found: Found) -> None:
        part = replace(self._whole, first=found.first, last=found.last)
        name = f"culprit-{found.place}.npz"
        outcome = self._bench.measure(replace(part, keep=name, kept_tensor=found.tensor))
        runs = next((each for each in outcome.outputs if each.tensor == found.tensor), None)
        if runs is None:
            return
        limit = self._limit(found.place, runs)
        case = self._case(found.place, runs, limit, self._bench.folder / name)
        self._cases[found.place] = case
        self._causes[found.place] = find_causes(case)

        def outcome_of(configuration: Configuration) -> Outcome:
            return self._bench.measure(replace(part, configuration=configuration))

        self._swept[found.place] = sweep(self._whole.configuration, outcome_of, limit)

    def _limit(self, place: int, runs: TensorRuns) -> Limit:
        known = self._findings.limits.get(place, {})
        return known.get(runs.tensor, least_limit(runs, self._findings.precision))

    def _case(self, place: int, runs: TensorRuns, limit: Limit, arrays: Path) -> Case:
        on_average = bool(limit.only_to_one_side(runs))
        return Case(
            index=place,
            operator=self._model.operators[place],
            tensor=runs.name,
            unit=runs.unit,
            tolerance=limit.one_sided if on_average else limit.largest,
            model=arrays.with_suffix(".tflite"),
            arrays=arrays,
            configuration=self._whole.configuration,
            on_average=on_average,
            precision=self._findings.stated,
        )

    def neighbour(self) -> Case | None:
        """A part that is right: the one next to what fails, or an operator of the same kind that is right alone."""
        wanted = self._findings.neighbour or self._right_one()
        if wanted is None:
            return None
        try:
            outcome = self._bench.measure(replace(wanted, keep=_NEIGHBOUR))
        except GivenUp:
            return None
        if not outcome.ran:
            return None
        runs = max(outcome.outputs, key=lambda each: each.worst)
        place = self._model.makers[runs.tensor]
        return self._case(place, runs, self._limit(place, runs), self._bench.folder / _NEIGHBOUR)

    def _right_one(self) -> Part | None:
        """The nearest operator of the same kind that is right alone, else the nearest one."""
        if self.case is None:
            return None
        kind, index = self.case.operator, self.case.index
        wrong = {found.place for found in self._findings.culprits}
        right = [
            place
            for place, outcome in self._findings.singles.items()
            if outcome.ran and outcome.is_evidence and outcome.delegated and place not in wrong
        ]
        nearest = min(right, key=lambda place: (self._model.operators[place] != kind, abs(place - index)), default=None)
        return None if nearest is None else replace(self._whole, first=nearest, last=nearest)
