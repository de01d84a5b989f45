"""Runs sessions again on some inputs of a pass, to measure the yardsticks that differences are compared with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.engine.opening import NotMeasured, open_configuration
from evaltools.errors import InferenceError
from evaltools.model import ModelFile
from evaltools.runtime import Inference, Open, Session
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.task import DiffSummary, OutputComparison

RerunKind = Literal["noise floor", "precision", "repeat"]
NOISE_FLOOR: Final = "noise floor"
PRECISION: Final = "precision"
REPEAT: Final = "repeat"
Runs = Sequence[tuple[Array, ...]]


class Runnable(Struct, frozen=True):
    """What a session is opened from; ``fit`` wraps it as the pass does."""

    model: ModelFile
    configuration: Configuration
    fit: Callable[[Session], Session]


class Rerun(Struct, frozen=True):
    """A session to be run again on the sampled runs; ``expected_from`` names the outputs that it is compared with.

    ``change_inputs`` changes the inputs, if it is given.
    """

    kind: RerunKind
    name: str
    runnable: Runnable
    expected_from: str
    comparison: OutputComparison
    change_inputs: Callable[[Runs], Runs] | None = None


class RerunOutcome(Struct, frozen=True):
    """The outcome of a rerun; if it failed, ``summary`` is None and ``reason`` says why."""

    rerun: Rerun
    summary: DiffSummary | None
    reason: str | None


class RerunOutcomes(Struct, frozen=True):
    """The outcomes of all reruns over ``runs``, or of those before it was ``interrupted``.

    ``expected`` has the outputs of these runs that the CPU variants are compared with, as far as there are any.
    ``problem`` says what else went wrong.
    """

    seen: tuple[RerunOutcome, ...] = ()
    runs: tuple[int, ...] = ()
    expected: Runs = ()
    interrupted: bool = False
    problem: str | None = None

    def of_kind(self, kind: RerunKind) -> list[RerunOutcome]:
        """The outcomes of one kind, in order."""
        return [entry for entry in self.seen if entry.rerun.kind == kind]

    def repeated(self, name: str) -> RerunOutcome | None:
        """The outcome of running a configuration a second time."""
        return next((entry for entry in self.of_kind(REPEAT) if entry.rerun.name == name), None)


class Sample(Struct, frozen=True):
    """Numbers, inputs and expected outputs of the sampled runs, and how the pass drove its sessions through them.

    A model with a state gives the same outputs again only when it is driven in the same way from the start.
    ``outputs`` has the outputs by configuration, as far as all sampled runs up to there succeeded.
    """

    runs: Sequence[int]
    inputs: Runs
    outputs: Mapping[str, Runs]
    warmup_runs: int
    invocations: int


def warm_up(session: Session, inputs: Sequence[Array], runs: int, invocations: int) -> Inference | None:
    """Run a few times; returns what the very first run gave, None without one.

    Failures are left to the runs that count.
    """
    first = None
    try:
        for _ in range(runs):
            inference = session.run(inputs, invocations)
            first = inference if first is None else first
    except InferenceError:
        return first
    return first


def run_on_sample(
    reruns: Sequence[Rerun], sample: Sample, open_with: Open, on_step: Callable[[], None] = lambda: None
) -> RerunOutcomes:
    """Do the reruns one after the other; those without expected outputs are left out, and those after Ctrl-C."""
    seen = []
    try:
        for entry in reruns:
            expected = sample.outputs.get(entry.expected_from, ())
            if expected:
                seen.append(_look(entry, sample, expected, open_with))
            on_step()
    except KeyboardInterrupt:
        return RerunOutcomes(tuple(seen), interrupted=True)
    return RerunOutcomes(tuple(seen))


def _look(entry: Rerun, sample: Sample, expected: Runs, open_with: Open) -> RerunOutcome:
    inputs = entry.change_inputs(sample.inputs) if entry.change_inputs else sample.inputs
    outputs = run_inputs(entry.runnable, inputs[: len(expected)], sample.warmup_runs, sample.invocations, open_with)
    if isinstance(outputs, str):
        return RerunOutcome(entry, None, outputs)
    pairs = zip(sample.runs[: len(expected)], outputs, expected, strict=True)
    differences = {run: entry.comparison.compare(given, wanted) for run, given, wanted in pairs}
    return RerunOutcome(entry, entry.comparison.summarise(differences), None)


def run_inputs(
    runnable: Runnable, inputs: Runs, warmup_runs: int, invocations: int, open_with: Open
) -> list[tuple[Array, ...]] | str:
    """Open, warm up, run all inputs; returns the outputs of each run, or why there are none."""
    opened = open_configuration(runnable.model, runnable.configuration, open_with, allow_fallback=True)
    if isinstance(opened, NotMeasured):
        return opened.reason
    try:
        session = runnable.fit(opened.session)
        warm_up(session, inputs[0], warmup_runs, invocations)
        return [session.run(values, invocations).outputs for values in inputs]
    except InferenceError as error:
        return str(error)
    finally:
        opened.session.close()
