"""The known ways to be wrong, in the order in which they are believed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from evaltools.delegates.gpu import GPU
from evaltools.errors import EvaltoolsError
from evaltools.locate.causes import limits, places, scale
from evaltools.locate.causes.view import View
from evaltools.locate.parts.part import Case
from evaltools.model.gpu_faults import GPU_FAULTS
from evaltools.result.locate import Cause

Signature = Callable[[View], Cause | None]
WHERE: Final[Sequence[Signature]] = (
    limits.some_not_finite,
    places.at_the_border,
    places.last_lanes,
    places.few_channels,
)
"""What is asked where no cause is known: which values are wrong. Several of these can hold at once."""


def fault_of_gpu(view: View) -> Cause | None:
    """The GPU was asked for, and the operator is one of those that it is known to compute wrongly."""
    asked_for = {delegate.name for delegate in view.case.configuration.delegates.requested}
    if GPU.name not in asked_for or view.node is None or not view.wrong.any():
        return None
    fault = next((fault for fault in GPU_FAULTS if fault.is_in(view.graph, view.node)), None)
    if fault is None:
        return None
    return Cause("a known fault of the GPU", f"{fault.wrong}: {fault.source}", fault.way_round)


TABLE: Final[Sequence[Signature]] = (
    places.another_shape,
    limits.division_by_zero,
    limits.fp16_overflow,
    limits.not_a_number,
    places.operand_returned,
    places.stale,
    places.not_written,
    places.moved,
    places.padded_otherwise,
    scale.bias_left_out,
    limits.wrapped_around,
    limits.pinned_at_a_bound,
    scale.multiplied_or_moved,
    scale.biased_rounding,
    scale.fewer_digits,
    fault_of_gpu,
)
"""Each explains all values by itself; the first that fits is the cause.

First those that say where each value comes from, with nothing that was fitted, then the one that runs the operator
without its bias, then those with fitted numbers: a constant that gives every value comes before a rounding, which only
says to which side they are off. What is known of an operator comes last: that it was wrong before does not show that it
is now.
"""


def find_causes(case: Case) -> tuple[Cause, ...]:
    """The cause that explains the numbers of a case, else what is known of the values that are wrong; may be nothing.

    A signature that cannot read or run the part, or whose arrays have other shapes than it takes, has nothing to say.
    """
    view = View(case)
    cause = next((found for found in (_ask(signature, view) for signature in TABLE) if found is not None), None)
    if cause is not None:
        return (cause,)
    return tuple(found for found in (_ask(signature, view) for signature in WHERE) if found is not None)


def _ask(signature: Signature, view: View) -> Cause | None:
    with suppress(EvaltoolsError, ValueError), np.errstate(all="ignore"):
        return signature(view)
    return None
