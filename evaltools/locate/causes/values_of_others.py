"""Values that are right, but those of something else: an operand, or the run before."""

from __future__ import annotations

from typing import Final

import numpy as np

from evaltools.locate.causes.view import View, count
from evaltools.result.locate import Cause

_LITERT: Final = "https://github.com/google-ai-edge/LiteRT/issues/"
_TENSORFLOW: Final = "https://github.com/tensorflow/tensorflow/issues/"
_SHORTEST_GAP: Final = 8


def operand_returned(view: View) -> Cause | None:
    """What was given is an operand: ``given = operand``, and not ``operator(operands)``."""
    fed = [place for place, values in enumerate(view.operands) if values is not None and view.fed_to(place) is not None]
    for place, (tensor, values) in enumerate(zip(view.operand_tensors, view.operands, strict=True)):
        if tensor is None or values is None or not view.explained_by(values):
            continue
        shown = (
            f"all {view.given.size} values are those of operand {place}, {tensor.name!r}, while {view.share_wrong} of "
            f"them should be others, up to {view.off_by} away"
        )
        if len(fed) < 2:
            remedy = "keep this operator on the CPU, or write it in another way; the delegate skips it"
            return Cause("the operator was skipped", shown, remedy)
        return Cause(
            "an operand was returned",
            shown,
            "do not use the tensor as an output and as an operand of the next operator; a copy of it by RESHAPE as the "
            "output cures that",
            f"{_LITERT}8599",
        )
    return None


def stale(view: View) -> Cause | None:
    """What was given belongs to the inputs of the run before: ``given(n) = expected(n - 1)``."""
    if not view.explained_by(view.case.before):
        return None
    return Cause(
        "the output of the run before",
        f"all {view.given.size} values are what the CPU gives for the inputs of the run before; {view.share_wrong} of "
        "them should be others",
        "the output is read before it is written: wait for the delegate, or use another way to bind the output buffer",
    )


def not_written(view: View) -> Cause | None:
    """All values, or all of one stretch of memory, are the same, while others were expected there."""
    flat, wrong = view.given_numbers.ravel(), np.flatnonzero(view.wrong)
    if wrong.size < _SHORTEST_GAP or not view.has_kinds(view.numbers):
        return None
    first, last = int(wrong[0]), int(wrong[-1])
    value = flat[first]
    if value not in (0.0, view.zero_point) and np.unique(flat).size > 1:
        return None
    if not np.all(flat[first : last + 1] == value):
        return None
    if np.all(flat == value):
        return Cause(
            "one value everywhere",
            f"all {flat.size} values are {value:g}; the CPU's are {_range(view)}",
            "the output is not written, or overwritten: try it without buffer reuse, or keep the operator on the CPU",
            f"{_TENSORFLOW}27240",
        )
    # Other elements may be equal by chance, but not half of a stretch.
    if wrong.size * 2 < last + 1 - first or last + 1 - first > 0.98 * flat.size:
        return None
    return Cause(
        "a part is not written",
        f"elements {first} to {last} of {flat.size} are {value:g} without exception, where {wrong.size} of them should "
        f"be others; {count(flat.size - (last + 1 - first), flat.size)} outside are right",
        "the delegate writes a part of the output alone: look at its tiling, or keep the operator on the CPU",
    )


def _range(view: View) -> str:
    return f"from {np.nanmin(view.numbers):.6g} to {np.nanmax(view.numbers):.6g}"
