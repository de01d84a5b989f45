"""What is done with a culprit once it is found: its worst run is kept, its cause looked up, other settings tried."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.locate.bench import Bench, GivenUp
from evaltools.locate.causes import find_causes
from evaltools.locate.findings import Findings, Found
from evaltools.locate.judge import Limit, least_limit
from evaltools.locate.part import Case, Outcome, Part
from evaltools.model.cut import CuttableModel
from evaltools.result.locate import Cause, LocateResult, SweptOption

_MOST_EXPLAINED: Final = 5


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

    A flag of precision is another setting only where precision is given away.

    >>> half = Configuration.from_text("half", "use_xnnpack=true xnnpack_force_fp16=true num_threads=4")
    >>> [setting.tells for setting, _ in variants(half)]
    ['float32 instead of float16']
    """
    names = {delegate.name for delegate in tested.delegates.requested}
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in tested.to_flags())
    return [
        (setting, Configuration.from_flags(tested.name, list({**flags, setting.flag: setting.value}.items())))
        for setting in _SETTINGS
        if setting.delegate in names
        and flags.get(setting.flag, "") != setting.value
        and (setting.value != "false" or tested.delegates.value(setting.flag) is True)
    ]


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
    """Looks closer at the culprits of one search, at the surest ones first; explains, and decides nothing.

    ``case`` is the surest culprit with its worst run, None where none was looked at.
    """

    def __init__(self, bench: Bench, model: CuttableModel, whole: Part, findings: Findings) -> None:
        self._bench = bench
        self._model = model
        self._whole = whole
        self._findings = findings
        self._causes: dict[int, tuple[Cause, ...]] = {}
        self._swept: dict[int, tuple[SweptOption, ...]] = {}
        self.case: Case | None = None

    def explain(self) -> None:
        """Look at the culprits; where a limit is reached, the others stay unexplained."""
        surest = sorted(
            self._findings.culprits, key=lambda found: found.status not in ("confirmed", "confirmed in context")
        )
        try:
            for found in surest[:_MOST_EXPLAINED]:
                if found.evidence[0].method != "taps":
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

    def _explain(self, found: Found) -> None:
        part = replace(self._whole, first=found.first, last=found.last)
        arrays = self._bench.folder / f"culprit-{found.place}.npz"
        outcome = self._bench.measure(replace(part, keep=arrays.name, kept_tensor=found.tensor))
        runs = next((each for each in outcome.outputs if each.tensor == found.tensor), None)
        if runs is None:
            if outcome.died and arrays.exists():
                self.case = self.case or self._case(found, "absolute", 0.0, arrays)
            return
        known = self._findings.limits.get(found.place, {})
        limit = known.get(runs.tensor) or least_limit(runs, self._findings.precision)
        case = self._case(found, runs.unit, limit.of_element(runs), arrays)
        self.case = self.case or case
        self._causes[found.place] = find_causes(case)

        def outcome_of(configuration: Configuration) -> Outcome:
            return self._bench.measure(replace(part, configuration=configuration))

        self._swept[found.place] = sweep(self._whole.configuration, outcome_of, limit)

    def _case(self, found: Found, unit: str, tolerance: float, arrays: Path) -> Case:
        return Case(
            index=found.place,
            operator=self._model.operators[found.place],
            tensor=self._model.name(found.tensor),
            unit=unit,
            tolerance=tolerance,
            model=arrays.with_suffix(".tflite"),
            arrays=arrays,
            configuration=self._whole.configuration,
            precision=self._findings.stated,
        )
