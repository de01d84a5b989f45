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
from evaltools.tasks.inference_diff.noise_floor import (
    LOCAL_REFERENCE,
    Repeat,
    RepeatOutcome,
    RepeatOutcomes,
    Runnable,
    Runs,
    Sample,
    base_configuration,
    run_inputs,
    run_on_sample,
    session_wrapper,
)
from evaltools.tasks.inference_diff.request import DiffMaterial, DiffRequest, spread
from evaltools.tasks.inference_diff.task import Difference, DiffObservation, DiffSummary

_FARTHEST_OF_EACH: Final = 3


def measure_noise_floor(
    request: DiffRequest,
    material: DiffMaterial,
    opened: Sequence[Opened],
    repeats: Sequence[Repeat],
    outcome: PassOutcome[DiffObservation],
    open_with: Open,
    on_step: Callable[[], None],
) -> RepeatOutcomes:
    """Do the repeats on the sampled runs whose inputs can be read; Ctrl-C keeps what was seen until then.

    Where the reference's outputs were loaded, the CPU here stands in for it.
    """
    readable = _readable(material, choose_sample(request, material, outcome))
    if not readable:
        return RepeatOutcomes()
    sample, inputs = list(readable), list(readable.values())
    outputs: dict[str, Runs] = {name: _kept(outcome, name, sample) for name in outcome.records}
    problem = None
    try:
        if request.reference is None:
            base = Runnable(
                material.model, base_configuration(opened, None), session_wrapper(material, is_reference=True)
            )
            local = run_inputs(base, inputs, request.warmup_runs, request.invocations, open_with)
            outputs[LOCAL_REFERENCE] = [] if isinstance(local, str) else [run.outputs for run in local.inferences]
            problem = f"no noise floor, the CPU fails here: {local}" if isinstance(local, str) else None
        of_sample = Sample(sample, inputs, outputs, request.warmup_runs, request.invocations, material.stateful)
        is_enough = partial(_are_settled, request, material, _summaries(request, material, outcome))
        done = run_on_sample(repeats, of_sample, open_with, on_step, request.max_secs, is_enough)
    except KeyboardInterrupt:
        done = RepeatOutcomes(interrupted=True)
    kept = _of_kept_tensors(request, material, sample, outputs, done)
    return RepeatOutcomes(done.seen, tuple(sample), done.interrupted, done.left_out, problem, kept)


def expected_seconds(request: DiffRequest, outcome: PassOutcome[DiffObservation], repeats: int) -> float:
    """How long so many repeats take at the pace of the pass; plain C++ kernels take longer."""
    times_us = [
        statistics.median(times)
        for records in outcome.records.values()
        if (times := [sum(record.invokes_us) for record in records if record.invokes_us])
    ]
    runs = min(request.noise_floor_runs, max(map(len, outcome.records.values()), default=0)) + request.warmup_runs
    return max(times_us, default=0.0) / 1e6 * runs * repeats


def first_answer(
    request: DiffRequest, material: DiffMaterial, outcome: PassOutcome[DiffObservation], seconds: float
) -> str:
    """What the runs show before anything is measured to compare it with, and how long that will take."""
    lines = []
    for name, summary in _summaries(request, material, outcome).items():
        sizes = [summary.seen(position).size for position in range(len(summary.outputs))]
        runs = [run for by_number in summary.by_run for run in by_number.values()]
        answers = sum(run.answers for run in runs)
        is_identical = all(output.identical for output in summary.outputs)
        found = ["identical in every run" if is_identical else f"off by {max(sizes):.2g} in the worst run"]
        found += [f"answers changed: {sum(run.changed for run in runs)} of {answers}"] if answers else []
        lines.append(f"so far: {name}: {'; '.join(found)}")
    limit = f", {request.max_secs:.0f} s at most (--max_secs)" if request.max_secs else ""
    return "\n".join([*lines, f"now what CPU kernels and rounding change: about {seconds:.0f} s{limit}"])


def _summaries(
    request: DiffRequest, material: DiffMaterial, outcome: PassOutcome[DiffObservation]
) -> dict[str, DiffSummary]:
    """The differences of each test, of those that have any."""
    found = {name: differences_of(outcome, name) for name in outcome.records if name != request.reference_name}
    return {name: material.comparison.summarise(differences) for name, differences in found.items() if differences}


def _are_settled(
    request: DiffRequest,
    material: DiffMaterial,
    summaries: Mapping[str, DiffSummary],
    seen: Sequence[RepeatOutcome],
) -> bool:
    """Whether what was measured so far is enough for every verdict."""
    kernels = {test.name: kernels_of(test) for test in request.tests}
    measured = RepeatOutcomes(tuple(seen))
    for name, summary in summaries.items():
        judge_by = OutputJudge(material.model, measured, kernels.get(name, ""), material.compares_models)
        if not is_settled(judge(name, judge_by, summary, ())):
            return False
    return True


def _of_kept_tensors(
    request: DiffRequest,
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
    for test in request.tests:
        pairs = zip(sample, outputs.get(test.name, ()), kept.outputs, strict=False)
        differences = {run: material.comparison.compare(given, wanted) for run, given, wanted in pairs}
        if differences:
            found[test.name] = material.comparison.summarise(differences)
    return found


def choose_sample(
    request: DiffRequest, material: DiffMaterial, outcome: PassOutcome[DiffObservation]
) -> tuple[int, ...]:
    """The numbers of the runs for the noise floor, ascending.

    Half of ``noise_floor_runs`` are spread evenly. The others are those where differences are largest, in turn of each
    configuration, and of many configurations three each: so the effect of a rare input on a test is compared with its
    effect on the CPU. For a model with a state they are the first runs.
    """
    farthest = request.noise_floor_runs // 2
    evenly_spread = request.noise_floor_runs - farthest
    if len(request.tests) > 1:
        farthest = max(farthest, _FARTHEST_OF_EACH * len(request.tests))
    count = evenly_spread + farthest
    if material.stateful or len(material.kept) <= request.noise_floor_runs:
        return material.kept[: request.noise_floor_runs]
    chosen = {material.kept[place] for place in spread(len(material.kept), evenly_spread)}
    evenly = [material.kept[place] for place in spread(len(material.kept), count)]
    in_turn = chain.from_iterable(zip_longest(*_rankings(request, material, outcome)))
    for index in chain(in_turn, evenly):
        if index is not None and len(chosen) < count:
            chosen.add(index)
    return tuple(sorted(chosen))


def differences_of(outcome: PassOutcome[DiffObservation], name: str) -> dict[int, Difference]:
    """The differences of one configuration by run, read once."""
    return {
        record.example: record.observation.difference
        for record in outcome.records.get(name, [])
        if record.observation is not None and record.observation.difference is not None
    }


def _rankings(request: DiffRequest, material: DiffMaterial, outcome: PassOutcome[DiffObservation]) -> list[list[int]]:
    """Per test configuration, of boxes and of each output, the kept runs that differ, the farthest first.

    Before these come the runs with most other answers.
    """
    rankings = []
    for configuration in request.tests:
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


def _kept(outcome: PassOutcome[DiffObservation], name: str, sample: Sequence[int]) -> list[tuple[Array, ...]]:
    """The remembered outputs of a configuration, up to the first failure."""
    wanted = set(sample)
    kept: list[tuple[Array, ...]] = []
    for record in outcome.records[name]:
        if record.example not in wanted:
            continue
        if record.observation is None or record.observation.outputs is None:
            break
        kept.append(record.observation.outputs)
    return kept
