"""What is measured beside a pass, after it: configurations in a role of their own, on a few examples.

Without a ``beside`` of the task's own these are other CPU kernels: a delegate may change the agreement with the
reference as much as they do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.engine.ledger import PassOutcome
from evaltools.engine.opening import NotMeasured, Opened, open_configuration
from evaltools.engine.run_folder import Fact
from evaltools.engine.steps import Prepared, Steps
from evaltools.errors import ImageError, InferenceError, TaskError
from evaltools.extensions import named
from evaltools.metrics.means import MeanChange
from evaltools.model import ModelFile
from evaltools.runtime import Inference, OpenProcess
from evaltools.runtime.session import Array
from evaltools.tasks.framework.definition import Task, Whole
from evaltools.tasks.framework.figures import FigureTable, ScoresSeen
from evaltools.tasks.framework.observer import Observer, counted
from evaltools.tasks.framework.trial import warm_up

OTHER_KERNELS: Final = "plain C++ kernels"
ALLOWED: Final = 2.0
"""So many times the change of other kernels counts as no change, since a few examples show less than all of them."""
_EXAMPLES: Final = 10
_SECONDS: Final = 5.0
"""After so long no further example is run: plain kernels may take a hundred times as long as others."""


Found = dict[str, MeanChange]


class AfterPass(Struct, frozen=True):
    """A pass that is over, and what is needed to run more beside it.

    ``task`` is the one whose ``outcome`` it is, ``of_reference`` are its steps on the reference's ``model``. ``opened``
    are the configurations that can run on this computer; their sessions are closed. ``are_recorded``: their outputs are
    those of the records, not of another computer.
    """

    task: Task
    of_reference: Steps[Any]
    model: ModelFile
    reference: Configuration | None
    outcome: PassOutcome[Any]
    opened: Sequence[Opened]
    are_recorded: bool
    observer: Observer
    open_with: OpenProcess


class Beside(Struct, frozen=True):
    """What was measured beside a pass; ``interrupted``: Ctrl-C ended it."""

    found: Any = None
    interrupted: bool = False


def beside_fact(task: Task) -> Fact[Any]:
    """What the journal says of what was measured beside the pass of a task."""
    return Fact("beside", named(task.whole.found_beside if task.whole else Whole.found_beside))


class RunInRole(Struct, frozen=True):
    """The inferences of some inputs in order, and ``first``, the very first one of the warm-up, None without one."""

    first: Inference | None
    inferences: list[Inference]


def run_role(
    model: ModelFile,
    configuration: Configuration,
    inputs: Sequence[Sequence[Array]],
    open_with: OpenProcess,
    *,
    warmup_runs: int = 0,
    invocations: int = 1,
    until: float = math.inf,
    on_step: Callable[[], None] = lambda: None,
) -> RunInRole | str:
    """Open, warm up, run all inputs and close; returns why there is nothing if so.

    After the moment ``until`` of the monotonic clock no further run begins, but there is one.
    """
    if not inputs:
        return "there are no inputs"
    opened = open_configuration(model, configuration, open_with, allow_fallback=True)
    if isinstance(opened, NotMeasured):
        return opened.reason
    try:
        found = RunInRole(warm_up(opened.session, inputs[0], warmup_runs, invocations), [])
        for values in inputs:
            if not found.inferences or time.monotonic() < until:
                found.inferences.append(opened.session.run(values, invocations))
            on_step()
        return found
    except InferenceError as error:
        return str(error)
    finally:
        opened.session.close()


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
