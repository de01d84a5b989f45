"""Measures the noise floor of an inference diff after its pass."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, zip_longest
from typing import Final

from evaltools.engine.opening import Opened
from evaltools.engine.run import PassOutcome
from evaltools.errors import ImageError
from evaltools.gates.verdict import seen_boxes
from evaltools.metrics.output_difference import RunDifference
from evaltools.runtime import Open
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.judgement import OutputJudge, is_settled, judge, kernels_of
from evaltools.tasks.inference_diff.material import LOCAL_REFERENCE, DiffMaterial, DiffOptions, spread
from evaltools.tasks.inference_diff.noise_floor import (
    Repeat,
    RepeatOutcome,
    RepeatOutcomes,
    Runnable,
    Runs,
    Sample,
    base_configuration,
    plan_repeats,
    run_inputs,
    run_on_sample,
)
from evaltools.tasks.inference_diff.output_comparison import Difference, DiffObservation, DiffSummary
from evaltools.tasks.own.collecting import AfterPass, Beside
from evaltools.tasks.own.steps import ObservedScores
from evaltools.tasks.shared.observer import counted

_FARTHEST_OF_EACH: Final = 3
_SHORT_S: Final = 5.0
"""A noise floor that takes so many seconds is waited for without a first answer."""
_PHASE: Final = "noise floor"
Outcome = PassOutcome[ObservedScores[DiffObservation]]


def noise_floor_of(material: DiffMaterial, after: AfterPass) -> Beside:
    """The noise floor of a pass, a :class:`RepeatOutcomes`; nothing is measured where the pass was stopped.

    Where it takes long, the observer is told what the pass shows so far.
    """
    outcome: Outcome = after.outcome
    if outcome.stopped is not None:
        return Beside(RepeatOutcomes(interrupted=True))
    repeats = plan_repeats(material, after.opened, after.reference, after.are_recorded)
    seconds = expected_seconds(material.options, outcome, len(repeats))
    if seconds > _SHORT_S:
        after.observer.message(first_answer(material, outcome, seconds))
    with counted(after.observer, _PHASE, len(repeats)) as step:
        found = _measure(material, after.opened, repeats, outcome, after.open_with, step)
    return Beside(found, found.interrupted)


def _measure(
    material: DiffMaterial,
    opened: Sequence[Opened],
    repeats: Sequence[Repeat],
    outcome: Outcome,
    open_with: Open,
    on_step: Callable[[], None],
) -> RepeatOutcomes:
    """Do the repeats on the sampled runs whose inputs can be read; Ctrl-C keeps what was seen until then.

    Where the reference's outputs were loaded, the CPU here stands in for it.
    """
    options = material.options
    readable = _readable(material, choose_sample(material, outcome))
    if not readable:
        return RepeatOutcomes()
    sample, inputs = list(readable), list(readable.values())
    outputs: dict[str, Runs] = {name: _kept(outcome, name, sample) for name in outcome.records}
    problem = None
    try:
        if options.reference is None:
            base = Runnable(material.model, base_configuration(opened, None), material.side(of_reference=True))
            local = run_inputs(base, inputs, options.warmup_runs, options.invocations, open_with)
            outputs[LOCAL_REFERENCE] = [] if isinstance(local, str) else [run.outputs for run in local.inferences]
            problem = f"no noise floor, the CPU fails here: {local}" if isinstance(local, str) else None
        of_sample = Sample(sample, inputs, outputs, options.warmup_runs, options.invocations, material.stateful)
        is_enough = partial(_are_settled, material, _summaries(material, outcome))
        done = run_on_sample(repeats, of_sample, open_with, on_step, options.max_secs, is_enough)
    except KeyboardInterrupt:
        done = RepeatOutcomes(interrupted=True)
    kept = _of_kept_tensors(material, sample, outputs, done)
    return RepeatOutcomes(done.seen, tuple(sample), done.interrupted, done.left_out, problem, kept)


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


def _are_settled(
    material: DiffMaterial,
    summaries: Mapping[str, DiffSummary],
    seen: Sequence[RepeatOutcome],
) -> bool:
    """Whether what was measured so far is enough for every verdict."""
    kernels = {test.name: kernels_of(test) for test in material.options.tests}
    measured = RepeatOutcomes(tuple(seen))
    for name, summary in summaries.items():
        judge_by = OutputJudge(material.model, measured, kernels.get(name, ""), material.compares_models)
        if not is_settled(judge(name, judge_by, summary, ())):
            return False
    return True


def _of_kept_tensors(
    material: DiffMaterial,
    sample: Sequence[int],
    outputs: Mapping[str, Runs],
    done: RepeatOutcomes,
) -> dict[str, DiffSummary]:
    """The difference of each test from the variant that keeps all tensors, where that differs from the reference.

    This is where the reference itself may be wrong.
    """
    kept = done.kept_tensors
    if kept is None or kept.summary is None or all(found.identical for found in kept.summary.outputs):
        return {}
    found = {}
    for test in material.options.tests:
        pairs = zip(sample, outputs.get(test.name, ()), kept.outputs, strict=False)
        differences = {run: material.comparison.compare(given, wanted) for run, given, wanted in pairs}
        if differences:
            found[test.name] = material.comparison.summarise(differences)
    return found


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
            for figure in (_changed, _size):
                moved = {run: figure(runs[run]) for run in material.kept if run in runs and figure(runs[run])}
                rankings.append(sorted(moved, key=moved.__getitem__, reverse=True))
    return rankings


def _changed(run: RunDifference) -> float:
    return run.changed


def _size(run: RunDifference) -> float:
    return run.size


def _readable(material: DiffMaterial, sample: Sequence[int]) -> dict[int, tuple[Array, ...]]:
    """The inputs of the sampled runs by run; for a model with a state, up to the first that cannot be read."""
    inputs: dict[int, tuple[Array, ...]] = {}
    for index in sample:
        try:
            inputs[index] = material.source.inputs(index)
        except ImageError:
            if material.stateful:
                break
    return inputs


def _kept(outcome: Outcome, name: str, sample: Sequence[int]) -> list[tuple[Array, ...]]:
    """The remembered outputs of a configuration, up to the first failure."""
    wanted = set(sample)
    kept: list[tuple[Array, ...]] = []
    for record in outcome.records[name]:
        if record.example not in wanted:
            continue
        seen = None if record.observation is None else record.observation.whole
        if seen is None or seen.outputs is None:
            break
        kept.append(seen.outputs)
    return kept
