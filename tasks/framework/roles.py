"""Configurations that run beside those of the user, in a role of their own, on a few examples after a pass."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.engine.opening import NotMeasured, open_configuration
from evaltools.errors import InferenceError
from evaltools.model import ModelFile
from evaltools.runtime import Inference, Open
from evaltools.runtime.session import Array
from evaltools.tasks.framework.trial import warm_up


class RunInRole(Struct, frozen=True):
    """The inferences of some inputs in order, and ``first``, the very first one of the warm-up, None without one."""

    first: Inference | None
    inferences: list[Inference]


def run_role(
    model: ModelFile,
    configuration: Configuration,
    inputs: Sequence[Sequence[Array]],
    open_with: Open,
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
