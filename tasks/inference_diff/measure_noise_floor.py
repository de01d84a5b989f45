"""Measures the noise floor of an inference diff after its pass."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, zip_longest
from operator import attrgetter
from typing import Final

from evaltools.engine.ledger import PassOutcome
from evaltools.errors import ImageError
from evaltools.gates.verdict import seen_boxes
from evaltools.operators.decide import ByOperators, cuttable, decide
from evaltools.operators.state import expected_parts
from evaltools.runtime import OpenProcess
from evaltools.runtime.session import Array
from evaltools.tasks.framework.beside import AfterPass, Beside, RunInRole, run_role
from evaltools.tasks.framework.observer import counted
from evaltools.tasks.framework.steps import ObservedScores
from evaltools.tasks.inference_diff.judgement import is_settled, judge, judges_of, operators_may_decide
from evaltools.tasks.inference_diff.material import DiffMaterial, DiffOptions, spread
from evaltools.tasks.inference_diff.noise_floor import (
    FEW_ROUNDINGS,
    NOISE_FLOOR,
    SECOND_TIME,
    Role,
    RoleOutcome,
    RoleOutcomes,
    Runs,
    local_reference,
    plan_roles,
)
from evaltools.tasks.inference_diff.output_comparison import Difference, DiffObservation, DiffSummary
from evaltools.tasks.inference_diff.stored_ranges import remarks

_FARTHEST_OF_EACH: Final = 3
_RUNS_OF_OPERATORS: Final = 4
_SECONDS_OF_OPERATORS: Final = 20.0
"""The operators of a configuration are asked where that takes no longer."""
_SHORT_S: Final = 5.0
"""A noise floor that takes so many seconds is waited for without a first answer."""
_PHASE: Final = "noise floor"
Outcome = PassOutcome[ObservedScores[DiffObservation]]
ByRun = Mapping[int, tuple[Array, ...]]
"""Inputs or outputs by the number of the run."""


def noise_floor_of(material: DiffMaterial, after: AfterPass) -> Beside:
    """The noise floor of a pass, a :class:`RoleOutcomes`; nothing is measured where the pass was stopped.

    Where it takes long, the observer is told what the pass shows so far.
    """
    outcome: Outcome = after.outcome
    if outcome.stopped is not None:
        return Beside(RoleOutcomes(interrupted=True))
    roles = plan_roles(material, after.opened, after.reference, after.are_recorded)
    seconds = expected_seconds(material.options, outcome, len(roles))
    if seconds > _SHORT_S:
        after.observer.message(first_answer(material, outcome, seconds))
    with counted(after.observer, _PHASE, len(roles)) as step:
        found = _measure(material, roles, after, step)
    return Beside(found, found.interrupted)


def _measure(
    material: DiffMaterial, roles: Sequence[Role], after: AfterPass, on_step: Callable[[], None]
) -> RoleOutcomes:
    """Run the roles on the sampled runs whose inputs can be read; Ctrl-C keeps what was seen until then.

    It ends when the time is over, or when no verdict needs more; whether outputs come again is asked first. Roles
    without outputs to compare with are left out. Where the reference's outputs were loaded, the CPU here stands in for
    it.
    """
    options, outcome, start = material.options, after.outcome, time.monotonic()
    inputs = _readable(material, choose_sample(material, outcome))
    outputs: dict[str, ByRun] = {name: _kept(outcome, name, inputs) for name in outcome.records}
    seen: dict[int, RoleOutcome] = {}
    left_out: list[str] = []
    problem, is_interrupted = None, False
    operators: dict[str, ByOperators] = {}
    said: list[str] = []
    until = start + options.max_secs if options.max_secs else math.inf
    try:
        if options.reference is None and inputs:
            local = local_reference(material, after.opened)
            runs = _run(material, local, list(inputs.values()), after.open_with)
            outputs[local.name] = {} if isinstance(runs, str) else _read(local, inputs, runs)
            problem = f"no noise floor, the CPU fails here: {runs}" if isinstance(runs, str) else None
        said = _remarks(material, inputs, outputs)
        summaries = _summaries(material, outcome)
        for place, role in sorted(enumerate(roles), key=lambda found: (found[1].turn, found[1].kind != SECOND_TIME)):
            if role.turn and _are_settled(material, summaries, list(seen.values())):
                break
            expected = outputs.get(role.against)
            if expected and time.monotonic() < until:
                seen[place] = _look(material, role, inputs, outputs, after.open_with, until)
            if expected and not (place in seen and seen[place].is_over(expected)):
                left_out.append(role.name)
            on_step()
        found = RoleOutcomes([seen[place] for place in sorted(seen)], list(inputs), False, left_out, problem)
        operators = _ask_operators(material, found, summaries, after, inputs, until)
    except KeyboardInterrupt:
        is_interrupted = True
    return RoleOutcomes(
        [seen[place] for place in sorted(seen)], list(inputs), is_interrupted, left_out, problem, operators, said
    )


def _remarks(material: DiffMaterial, inputs: ByRun, outputs: Mapping[str, ByRun]) -> list[str]:
    """What is to be said of the inputs of two models."""
    reference = outputs.get(material.options.reference_name, {})
    if material.pair is None or not inputs:
        return []
    is_stated = material.options.inputs.normalization != "auto"
    return remarks(material.pair, list(inputs.values()), list(reference.values()), is_stated)


def _ask_operators(
    material: DiffMaterial,
    measured: RoleOutcomes,
    summaries: Mapping[str, DiffSummary],
    after: AfterPass,
    inputs: ByRun,
    until: float,
) -> dict[str, ByOperators]:
    """What the operators one by one show of each configuration whose outputs are open.

    They are asked where one model runs on this computer on both sides, and as long as there is time.
    """
    reference = after.reference
    if reference is None or material.pair is not None or not after.are_recorded or not inputs:
        return {}
    judges = judges_of(material, measured, summaries)
    running = {entry.configuration.name: entry.running for entry in after.opened}
    asked = {
        name: summary
        for name, summary in summaries.items()
        if {name, reference.name} <= running.keys() and operators_may_decide(judge(name, judges[name], summary, ()))
    }
    model, found = material.model, {}
    parts = cuttable(model) if asked else None
    for name, summary in asked.items():
        seconds = min(_SECONDS_OF_OPERATORS, until - time.monotonic())
        if parts is None or seconds <= 0:
            break
        fed = [material.side(of_reference=True).fed(inputs[run]) for run in _farthest(summary, inputs)]
        with counted(after.observer, f"operators of {name}", expected_parts(parts)) as step:
            found[name] = decide(model, parts, running[reference.name], running[name], fed, seconds, step)
    return found


def _farthest(summary: DiffSummary, runs: Collection[int]) -> list[int]:
    """The runs in which the outputs differ most."""
    sizes = {run: max((by_run[run].size for by_run in summary.by_run if run in by_run), default=0.0) for run in runs}
    return sorted(runs, key=lambda run: -sizes[run])[:_RUNS_OF_OPERATORS]


def _look(
    material: DiffMaterial,
    role: Role,
    inputs: ByRun,
    outputs: Mapping[str, ByRun],
    open_with: OpenProcess,
    until: float,
) -> RoleOutcome:
    expected = outputs[role.against]
    runs = _run(material, role, list(inputs.values())[: len(expected)], open_with, until)
    if isinstance(runs, str):
        return RoleOutcome.of(role, None, runs)
    found = _read(role, inputs, runs)
    differences = {run: role.comparison.compare(given, expected[run]) for run, given in found.items()}
    summary, with_first = role.comparison.summarise(differences), None
    if role.kind == SECOND_TIME and runs.first is not None and not material.stateful:
        start = next(iter(found))
        first = role.side.in_order(runs.first.outputs)
        if not _are_equal(first, found[start]):
            with_first = role.comparison.summarise(
                differences | {start: role.comparison.compare(first, expected[start])}
            )
    is_witness = role.kind == NOISE_FLOOR and role.name != FEW_ROUNDINGS
    differs = not all(output.identical for output in summary.outputs)
    tests = _tests_against(material, outputs, found) if is_witness and differs else {}
    largest = max(run.largest for run in runs.inferences)
    return RoleOutcome.of(role, summary, largest=largest, with_first=with_first, tests=tests)


def _run(
    material: DiffMaterial, role: Role, inputs: Runs, open_with: OpenProcess, until: float = math.inf
) -> RunInRole | str:
    """Run inputs as the pass drove its sessions: a model with a state gives the same outputs again only so."""
    changed = role.change(inputs) if role.change else inputs
    options = material.options
    return run_role(
        role.model,
        role.configuration,
        [role.side.fed(values) for values in changed],
        open_with,
        warmup_runs=options.warmup_runs,
        invocations=options.invocations,
        until=until,
    )


def _read(role: Role, inputs: ByRun, runs: RunInRole) -> ByRun:
    return {run: role.side.in_order(each.outputs) for run, each in zip(inputs, runs.inferences, strict=False)}


def _are_equal(some: Sequence[Array], others: Sequence[Array]) -> bool:
    return all(one.tobytes() == other.tobytes() for one, other in zip(some, others, strict=True))


def _tests_against(material: DiffMaterial, outputs: Mapping[str, ByRun], wanted: ByRun) -> dict[str, DiffSummary]:
    """The difference of each test from these outputs, of the runs that both have."""
    found = {}
    for test in material.options.tests:
        given = outputs.get(test.name, {})
        differences = {run: material.comparison.compare(given[run], wanted[run]) for run in wanted if run in given}
        if differences:
            found[test.name] = material.comparison.summarise(differences)
    return found


def expected_seconds(options: DiffOptions, outcome: Outcome, repeats: int) -> float:
    """How long so many repeats take at the pace of the pass; plain C++ kernels take longer."""
    times_us = [
        statistics.median(times)
        for records in outcome.records.values()
        if (times := [sum(record.invokes_us) for record in records if record.invokes_us])
    ]
    runs = min(options.noise_floor_runs, max(map(len, outcome.records.values()), default=0)) + options.warmup_runs
    return max(times_us, default=0.0) / 1e6 * runs * repeats


def first_answer(material: DiffMaterial, outcome: Outcome, seconds: float) -> str:
    """What the runs show before anything is measured to compare it with, and how long that will take."""
    lines = []
    for name, summary in _summaries(material, outcome).items():
        sizes = [summary.seen(position).size for position in range(len(summary.outputs))]
        runs = [run for by_number in summary.by_run for run in by_number.values()]
        answers = sum(run.answers for run in runs)
        is_identical = all(output.identical for output in summary.outputs)
        found = ["identical in every run" if is_identical else f"off by {max(sizes):.2g} in the worst run"]
        found += [f"answers changed: {sum(run.changed for run in runs)} of {answers}"] if answers else []
        lines.append(f"so far: {name}: {'; '.join(found)}")
    limit = f", {material.options.max_secs:.0f} s at most (--max_secs)" if material.options.max_secs else ""
    return "\n".join([*lines, f"now what CPU kernels and rounding change: about {seconds:.0f} s{limit}"])


def _summaries(material: DiffMaterial, outcome: Outcome) -> dict[str, DiffSummary]:
    """The differences of each test, of those that have any."""
    found = {name: differences_of(outcome, name) for name in outcome.records if name != material.options.reference_name}
    return {name: material.comparison.summarise(differences) for name, differences in found.items() if differences}


def _are_settled(material: DiffMaterial, summaries: Mapping[str, DiffSummary], seen: Sequence[RoleOutcome]) -> bool:
    """Whether what was measured so far is enough for every verdict."""
    judges = judges_of(material, RoleOutcomes(seen), summaries)
    return all(is_settled(judge(name, judges[name], summary, ())) for name, summary in summaries.items())


def choose_sample(material: DiffMaterial, outcome: Outcome) -> tuple[int, ...]:
    """The numbers of the runs for the noise floor, ascending.

    Half of ``noise_floor_runs`` are spread evenly. The others are those where differences are largest, in turn of each
    configuration, and of many configurations three each: so the effect of a rare input on a test is compared with its
    effect on the CPU. For a model with a state they are the first runs.
    """
    options = material.options
    farthest = options.noise_floor_runs // 2
    evenly_spread = options.noise_floor_runs - farthest
    if len(options.tests) > 1:
        farthest = max(farthest, _FARTHEST_OF_EACH * len(options.tests))
    count = evenly_spread + farthest
    if material.stateful or len(material.kept) <= options.noise_floor_runs:
        return material.kept[: options.noise_floor_runs]
    chosen = {material.kept[place] for place in spread(len(material.kept), evenly_spread)}
    evenly = [material.kept[place] for place in spread(len(material.kept), count)]
    in_turn = chain.from_iterable(zip_longest(*_rankings(material, outcome)))
    for index in chain(in_turn, evenly):
        if index is not None and len(chosen) < count:
            chosen.add(index)
    return tuple(sorted(chosen))


def differences_of(outcome: Outcome, name: str) -> dict[int, Difference]:
    """The differences of one configuration by run, read once."""
    return {
        record.example: record.observation.whole.difference
        for record in outcome.records.get(name, [])
        if record.observation is not None
        and record.observation.whole is not None
        and record.observation.whole.difference is not None
    }


def _rankings(material: DiffMaterial, outcome: Outcome) -> list[list[int]]:
    """Per test configuration, of boxes and of each output, the kept runs that differ, the farthest first.

    Before these come the runs with most other answers.
    """
    rankings = []
    for configuration in material.options.tests:
        differences = differences_of(outcome, configuration.name)
        if not differences:
            continue
        summary = material.comparison.summarise(differences)
        for runs in (seen_boxes(summary.boxes_by_run).runs, *summary.by_run):
            for figure in (attrgetter("changed"), attrgetter("size")):
                moved = {run: figure(runs[run]) for run in material.kept if run in runs and figure(runs[run])}
                rankings.append(sorted(moved, key=moved.__getitem__, reverse=True))
    return rankings


def _readable(material: DiffMaterial, sample: Sequence[int]) -> dict[int, tuple[Array, ...]]:
    """The inputs of the sampled runs; for a model with a state, up to the first that cannot be read."""
    inputs: dict[int, tuple[Array, ...]] = {}
    for index in sample:
        try:
            inputs[index] = material.plan.source.inputs(index)
        except ImageError:
            if material.stateful:
                break
    return inputs


def _kept(outcome: Outcome, name: str, sample: Collection[int]) -> dict[int, tuple[Array, ...]]:
    """The remembered outputs of a configuration, up to the first failure."""
    kept: dict[int, tuple[Array, ...]] = {}
    for record in outcome.records[name]:
        if record.example not in sample:
            continue
        seen = None if record.observation is None else record.observation.whole
        if seen is None or seen.outputs is None:
            break
        kept[record.example] = seen.outputs
    return kept
