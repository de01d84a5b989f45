"""How far other CPU kernels change the agreement with the reference; a delegate may change it as much."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from evaltools.configuration import Configuration
from evaltools.engine.steps import Prepared
from evaltools.errors import ImageError, TaskError
from evaltools.metrics.means import MeanChange
from evaltools.tasks.framework.collecting import AfterPass, Beside
from evaltools.tasks.framework.figures import FigureTable, ScoresSeen
from evaltools.tasks.framework.observer import counted
from evaltools.tasks.framework.roles import RunInRole, run_role

OTHER_KERNELS: Final = "plain C++ kernels"
ALLOWED: Final = 2.0
"""So many times the change of other kernels counts as no change, since a few examples show less than all of them."""
_EXAMPLES: Final = 10
_SECONDS: Final = 5.0
"""After so long no further example is run: plain kernels may take a hundred times as long as others."""


Found = dict[str, MeanChange]


def changes_of_other_kernels(after: AfterPass) -> Beside:
    """The change of each metric of agreement between the reference and :data:`OTHER_KERNELS`, over a few examples.

    By the metric's name. There are none where nothing agrees with a reference, where that is not
    only on the CPU, where either cannot run, where the pass was stopped, and after Ctrl-C.
    """
    task, reference = after.task, after.reference
    if task.agree is None or after.of_reference.keeps_state or reference is None or reference.delegates.requested:
        return Beside()
    if after.outcome.stopped is not None:
        return Beside()
    kernels = "builtin" if reference.kernel_set == "reference" else "reference"
    other = Configuration(OTHER_KERNELS, runtime=reference.runtime, kernels=kernels)
    try:
        prepared = _readable(after)
        inputs = [each.inputs for each in prepared.values()]
        until = time.monotonic() + _SECONDS
        with counted(after.observer, OTHER_KERNELS, len(inputs)) as step:
            base = run_role(after.model, reference, inputs, after.open_with, until=until)
            changed = run_role(after.model, other, inputs, after.open_with, until=until, on_step=step)
    except KeyboardInterrupt:
        return Beside()
    if isinstance(base, str) or isinstance(changed, str):
        return Beside()
    return Beside(_compared(after, reference.name, prepared, base, changed))


def _compared(
    after: AfterPass, name: str, prepared: Mapping[int, Prepared], base: RunInRole, changed: RunInRole
) -> dict[str, MeanChange]:
    seen = {name: ScoresSeen(), OTHER_KERNELS: ScoresSeen()}
    runs = zip(prepared.items(), base.inferences, changed.inferences, strict=False)
    for (example, made), reference, other in runs:
        with suppress(TaskError):
            own = after.of_reference.observe(made, reference.outputs, reference.outputs, name)
            others = after.of_reference.observe(made, other.outputs, reference.outputs, OTHER_KERNELS)
            seen[name].add(example, own)
            seen[OTHER_KERNELS].add(example, others)
    table = FigureTable(after.task.means, {each: found.rows for each, found in seen.items()})
    changes = table.changes(name, OTHER_KERNELS)
    return {metric: found for metric, found in changes.items() if metric in seen[name].certain}


def _readable(after: AfterPass) -> dict[int, Prepared]:
    """A few examples that can be read, evenly among all."""
    total = len(after.task.examples)
    count = min(_EXAMPLES, total)
    found = {}
    for place in range(count):
        with suppress(ImageError, TaskError):
            found[place * total // count] = after.of_reference.prepare(place * total // count)
    return found


def allowed_changes(found: Mapping[str, MeanChange]) -> Mapping[str, float]:
    """By metric, the change that counts as none."""
    return {metric: ALLOWED * abs(each.change) for metric, each in found.items()}
