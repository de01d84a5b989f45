"""How far other CPU kernels change the agreement with the reference; a delegate may change it as much."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from evaltools.configuration import Configuration
from evaltools.engine.opening import NotMeasured, open_configuration
from evaltools.engine.steps import Steps
from evaltools.errors import ImageError, InferenceError, TaskError
from evaltools.model import ModelFile
from evaltools.runtime import Open, Session
from evaltools.tasks.own.collecting import AfterPass, Beside
from evaltools.tasks.own.definition import Task
from evaltools.tasks.own.figures import FigureTable, ScoresSeen
from evaltools.tasks.own.result import MetricComparison
from evaltools.tasks.own.steps import ObservedScores
from evaltools.tasks.shared.observer import counted

OTHER_KERNELS: Final = "plain C++ kernels"
ALLOWED: Final = 2.0
"""So many times the change of other kernels counts as no change, since a few examples show less than all of them."""
_EXAMPLES: Final = 10
_SECONDS: Final = 5.0
"""After so long no further example is run: plain kernels may take a hundred times as long as others."""


def changes_of_other_kernels(after: AfterPass) -> Beside:
    """The change of each metric of agreement between the reference and :data:`OTHER_KERNELS`, over a few examples.

    It is a list of :class:`MetricComparison`. There are none where nothing agrees with a reference, where that is not
    only on the CPU, where either cannot run, and where the pass was stopped. Ctrl-C ends it.
    """
    task, reference = after.task, after.reference
    if task.agree is None or after.of_reference.keeps_state or reference is None or reference.delegates.requested:
        return Beside([])
    if after.outcome.stopped is not None:
        return Beside([])
    kernels = "builtin" if reference.kernel_set == "reference" else "reference"
    other = Configuration(OTHER_KERNELS, runtime=reference.runtime, kernels=kernels)
    with_sessions = _Sessions(after.model, (reference, other), after.open_with)
    try:
        if len(with_sessions.opened) < 2:
            return Beside([])
        base, changed = with_sessions.opened
        examples = _spread(len(task.examples))
        with counted(after.observer, OTHER_KERNELS, len(examples)) as step:
            return Beside(_compared(task, after.of_reference, examples, reference.name, base, changed, step))
    finally:
        with_sessions.close()


class _Sessions:
    """The sessions of configurations that can run a model."""

    def __init__(self, model: ModelFile, configurations: Sequence[Configuration], open_with: Open) -> None:
        found = [open_configuration(model, each, open_with, allow_fallback=False) for each in configurations]
        self.opened: Final = [each.session for each in found if not isinstance(each, NotMeasured)]

    def close(self) -> None:
        """Close them."""
        for session in self.opened:
            session.close()


def _compared(
    task: Task,
    steps: Steps[ObservedScores[Any]],
    examples: Sequence[int],
    name: str,
    base: Session,
    changed: Session,
    step: Callable[[], None],
) -> list[MetricComparison]:
    seen = {name: ScoresSeen(), OTHER_KERNELS: ScoresSeen()}
    started = time.monotonic()
    for example in examples:
        step()
        if time.monotonic() - started > _SECONDS:
            continue
        try:
            prepared = steps.prepare(example)
            reference = base.run(prepared.inputs).outputs
            outputs = changed.run(prepared.inputs).outputs
            seen[name].add(example, steps.observe(prepared, reference, reference, name))
            seen[OTHER_KERNELS].add(example, steps.observe(prepared, outputs, reference, OTHER_KERNELS))
        except (ImageError, InferenceError, TaskError):
            continue
        except KeyboardInterrupt:
            break
    table = FigureTable(task.means, {each: found.rows for each, found in seen.items()})
    return [found for found in table.comparisons(name, OTHER_KERNELS) if found.metric in seen[name].certain]


def _spread(examples: int) -> list[int]:
    """A few of so many examples, evenly among them."""
    count = min(_EXAMPLES, examples)
    return [place * examples // count for place in range(count)]


def allowed_changes(found: Sequence[MetricComparison]) -> Mapping[str, float]:
    """By metric, the change that counts as none."""
    return {each.metric: ALLOWED * abs(each.change.change) for each in found}
