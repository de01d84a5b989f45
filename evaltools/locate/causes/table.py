"""The known ways to be wrong, in the order in which they are believed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from evaltools.errors import EvaltoolsError
from evaltools.locate.causes import known, limits, places, rounding, scale, values_of_others
from evaltools.locate.causes.view import View
from evaltools.locate.parts.case import Case
from evaltools.result.locate import Cause

Signature = Callable[[View], Cause | None]

TABLE: Final[Sequence[Signature]] = (
    places.another_shape,
    limits.fp16_overflow,
    limits.not_a_number,
    values_of_others.operand_returned,
    values_of_others.stale,
    values_of_others.not_written,
    places.moved,
    scale.bias_left_out,
    limits.wrapped_around,
    limits.pinned_at_a_bound,
    scale.multiplied_or_moved,
    rounding.biased_rounding,
    rounding.fewer_digits,
    known.fault_of_gpu,
)
"""Each explains all values by itself; the first that fits is the cause.

First those that say where each value comes from, with nothing that was fitted, then the one that runs the operator
without its bias, then those with fitted numbers: a constant that gives every value comes before a rounding, which only
says to which side they are off. What is known of an operator comes last: that it was wrong before does not show that it
is now.
"""
WHERE: Final[Sequence[Signature]] = (
    limits.some_not_finite,
    places.at_the_border,
    places.last_lanes,
    places.few_channels,
)
"""What is asked where no cause is known: which values are wrong. Several of these can hold at once."""


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
