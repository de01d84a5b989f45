"""Activations that were left out or added."""

from __future__ import annotations

from typing import Final

from evaltools.locate.causes.view import View
from evaltools.result.locate import Cause

_NAMES: Final = {1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6"}


def left_out(view: View) -> Cause | None:
    """``activation(given) = expected``: what is built into the operator, or is the operator, was not done."""
    own = next((number for number, name in _NAMES.items() if name == view.operator), view.activation)
    changed = view.activated(view.given_numbers, own) if own in _NAMES else None
    if changed is None or not view.undone_by(changed):
        return None
    return Cause(
        "an activation was left out",
        f"{view.share_wrong} values lie outside the bounds of {_NAMES[own]}; cut there, all are what the CPU gives",
        f"put {_NAMES[own]} behind the operator as an operator of its own, or as MAXIMUM and MINIMUM",
    )


def added(view: View) -> Cause | None:
    """``given = activation(expected)``: one that the operator does not have."""
    for number, name in _NAMES.items():
        predicted = view.activated(view.numbers, number)
        if number != view.activation and predicted is not None and view.explained_by(predicted):
            return Cause(
                "an activation was added",
                f"all {view.given.size} values are the CPU's cut at the bounds of {name}; {view.share_wrong} lie "
                "outside of them",
                "keep the operator away from that activation, which the delegate merges into it: give the tensor "
                "between them as an output, or keep the operator on the CPU",
            )
    return None
