"""The known ways to be wrong, in the order in which they are believed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from evaltools.errors import EvaltoolsError
from evaltools.locate.causes import activation, broadcast, elsewhere, limits, places, rerun, rounding, scale
from evaltools.locate.causes.view import View
from evaltools.locate.parts.case import Case
from evaltools.result.locate import Cause

Signature = Callable[[View], Cause | None]

_MOST: Final = 3
TABLE: Final[Sequence[Sequence[Signature]]] = (
    (places.another_shape,),
    (
        limits.fp16_overflow,
        limits.not_a_number,
        elsewhere.operand_returned,
        elsewhere.stale,
        elsewhere.not_written,
        broadcast.swapped,
        broadcast.wrong_broadcast,
        activation.left_out,
        activation.added,
    ),
    (rerun.other_resize, rerun.other_padding, rerun.part_read, rerun.other_layout, scale.bias_left_out),
    (
        limits.wrapped_around,
        limits.pinned_at_a_bound,
        scale.multiplied_or_moved,
        rounding.biased_rounding,
        rounding.fewer_digits,
    ),
    (limits.some_not_finite, places.at_the_border, places.last_lanes, places.few_channels),
)
"""Groups of signatures: one is asked where those before know nothing.

The first say where each value comes from, at once; the second by running the operator in other ways; the third with
numbers that were fitted; the last only where values are wrong.
"""


def find_causes(case: Case) -> tuple[Cause, ...]:
    """What the numbers of a case show, best first and three at most; none where no signature fits.

    A signature that cannot read or run the part, or whose arrays have other shapes than it takes, has nothing to say.
    """
    view = View(case)
    for group in TABLE:
        found = [cause for cause in (_ask(signature, view) for signature in group) if cause is not None]
        if found:
            return tuple(found[:_MOST])
    return ()


def _ask(signature: Signature, view: View) -> Cause | None:
    with suppress(EvaltoolsError, ValueError), np.errstate(all="ignore"):
        return signature(view)
    return None
