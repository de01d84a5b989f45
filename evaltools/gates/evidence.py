"""What is known of one configuration, as limits need it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from evaltools.metrics.latency import LatencyRatio
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult, LatencyComparison, Load
from evaltools.result.figure import Figure, Part
from evaltools.result.metrics import common_figures
from evaltools.result.places import against_reference, reference_of

MOST_LOAD: Final = 1.0
"""Other processes for each core, on average, beside which latencies still count where a gate allows no other load."""
MOST_STEAL: Final = 0.1
"""The share of the time of all cores that a hypervisor may take from latencies that count."""
NO_REFERENCE: Final = "this result has no reference to compare it with; run with one"
_UNKNOWN_LOAD: Final = (
    "what else the machine did is not known, and it may have been busy; measure where it says so, or allow_load = inf "
    "in the gate, or give --allow_any_load"
)


class Allowed(Struct, frozen=True):
    """How much of what makes a result no clean one a gate allows by name, for each configuration.

    ``load`` is how many other processes may run for each core, on average, while latencies are measured. ``missing``:
    what no runtime here can create is skipped.
    """

    failed_examples: int = 0
    nan_outputs: int = 0
    crashes: int = 0
    load: float = MOST_LOAD
    missing: bool = False


NOTHING_ALLOWED: Final = Allowed()


class Evidence(Struct, frozen=True):
    """One configuration with its figures, and what decides whether they count.

    ``not_measured`` says why it has no figures that count: not measured, fell back, ended early, or lost examples;
    ``cannot_exist`` that this machine cannot have what it asks for. ``examples`` counts those with an answer.
    ``reference_not_measured`` says why there is nothing to compare it with. ``base`` has the figures of what it is
    compared with. ``ratio`` is the latency ratio. ``loads`` is what else the machine did while each side was timed, by
    the words for a side that is not this result's; a device, on which nothing else is started, has none. ``allowed`` is
    what the gate allows. ``old`` has the same with an earlier result in the place of the reference, None where there is
    none.
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
    old: Evidence | None = None

    @property
    def busy(self) -> str:
        """Why no latency counts; empty where the machine was quiet enough."""
        found = (of_another(whose, why_too_busy(load, self.allowed.load)) for whose, load in self.loads.items())
        return next(filter(None, found), "")


def evidence_of(
    result: EvaluationResult, configuration: ConfigurationResult, allowed: Allowed = NOTHING_ALLOWED
) -> Evidence:
    """The evidence in a result on one of its configurations, as limits need it."""
    examples = configuration.finished_examples
    obstacle = why_not_measured(result, configuration, allowed)
    if obstacle:
        missing = configuration.cannot_exist
        return Evidence(configuration.name, obstacle, missing, examples=examples, allowed=allowed)
    ratio = against_reference(result, result.latency_comparisons, configuration)
    reference = reference_of(configuration, result.configurations)
    return Evidence(
        configuration.name,
        reference_not_measured=_why_no_reference(result, configuration, allowed),
        figures=common_figures(result, configuration) | configuration.figures,
        base={} if reference is None else reference.figures,
        outputs=configuration.parts,
        is_emulated=configuration.is_emulated,
        loads=loads_of(result),
        allowed=allowed,
        ratio=_ratio(ratio),
        examples=examples,
    )


def loads_of(result: EvaluationResult, whose: str = "") -> dict[str, Load | None]:
    """The load of the machine as evidence has it; none for devices."""
    return {} if result.device_run is not None else {whose: result.environment.load}


def why_too_busy(load: Load | None, most: float) -> str:
    """Why latencies do not count: more than ``most`` other processes for each core, or much time stolen.

    Where nobody knows how many others ran, it may have been any number.

    >>> why_too_busy(Load(2, 11.0), 1.0)[:51], why_too_busy(Load(8, 2.0), 1.0)
    ('the machine was busy, 11 other processes on 2 cores', '')
    """
    if load is None or load.others is None:
        return "" if math.isinf(most) else _UNKNOWN_LOAD
    if load.others > most * load.cpu_count:
        return (
            f"the machine was busy, {round(load.others)} other processes on {load.cpu_count} cores, and latencies "
            f"count up to {most:g} for each core; measure where less runs, or allow_load = NUMBER in the gate, or give "
            "--allow_any_load"
        )
    if load.steal is not None and load.steal > MOST_STEAL:
        return (
            f"the hypervisor gave {round(100 * load.steal)} % of the time to others, and latencies count up to "
            f"{round(100 * MOST_STEAL)} %; measure where its host is less busy"
        )
    return ""


def _ratio(found: LatencyComparison | None) -> LatencyRatio | None:
    if found is None:
        return None
    return LatencyRatio(found.pairs, found.ratio, found.interval, found.processes, found.withheld)


def why_not_measured(
    result: EvaluationResult, configuration: ConfigurationResult, allowed: Allowed = NOTHING_ALLOWED
) -> str:
    """Why no figure of a configuration counts: what its own command would end with 3 or 4 for, or a part of a run."""
    if configuration.status == "not measured":
        return configuration.reason or "not measured"
    if configuration.fallback is not None:
        return fell_back(configuration.fallback)
    if not result.complete:
        return ended_early(str(result.stopped))
    if result.execution is not None and result.execution.shard is not None:
        return f"it is only shard {result.execution.shard}; put all of them together: evaltools merge"
    return _why_not_clean(result, configuration, allowed) or _why_reference_crashed(result, configuration, allowed)


def _why_not_clean(result: EvaluationResult, configuration: ConfigurationResult, allowed: Allowed) -> str:
    failed, nan_outputs = configuration.failed_examples, configuration.nan_outputs
    if failed > allowed.failed_examples:
        first = next((each for each in result.failed if each.configuration in (configuration.name, None)), None)
        why = f" (first {first.example}: {first.reason})" if first else ""
        allows = f"a gate with allow_failed_examples = {failed} allows it"
        return f"{failed} of {failed + configuration.finished_examples} examples failed{why}; {allows}"
    if nan_outputs > allowed.nan_outputs:
        allows = f"a gate with allow_nan_outputs = {nan_outputs} allows it"
        return f"{nan_outputs} of its outputs are NaN or infinite; {allows}"
    crashes = configuration.crashes
    if crashes > allowed.crashes or (configuration.not_clean and not crashes):
        return _not_clean(configuration.not_clean, crashes)
    return ""


def fell_back(why: str) -> str:
    """That figures are those of the CPU."""
    return f"it was measured on the CPU instead of what it asked for: {why}"


def ended_early(why: str) -> str:
    """That figures are those of a part of the examples."""
    return f"the run ended early ({why}); its figures are those of a part of the examples"


def _not_clean(why: str, crashes: int) -> str:
    return f"not clean: {why}; a gate with allow_crashes = {crashes} allows it"


def _why_reference_crashed(result: EvaluationResult, configuration: ConfigurationResult, allowed: Allowed) -> str:
    """The crash of the reference, which the command that measured ends with 4 for, whatever the limit is about."""
    reference = reference_of(configuration, result.configurations)
    if reference is None or reference.crashes <= allowed.crashes:
        return ""
    crashed = _not_clean(reference.not_clean or reference.first_crash, reference.crashes)
    return of_another("the reference", crashed)


def _why_no_reference(result: EvaluationResult, configuration: ConfigurationResult, allowed: Allowed) -> str:
    reference = reference_of(configuration, result.configurations)
    if reference is None:
        return NO_REFERENCE
    return of_another("the reference", why_not_measured(result, reference, allowed))


def of_another(whose: str, obstacle: str) -> str:
    """The same obstacle as that of ``the reference``, or of ``the earlier result``; ``whose`` may be empty."""
    return f"{whose}: {obstacle}" if obstacle and whose else obstacle
