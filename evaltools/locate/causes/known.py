"""Faults of GPUs that were measured before, for what no signature explains."""

from __future__ import annotations

from evaltools.delegates.gpu import GPU
from evaltools.locate.causes.view import View
from evaltools.model.gpu_faults import GPU_FAULTS
from evaltools.result.locate import Cause


def fault_of_gpu(view: View) -> Cause | None:
    """The GPU was asked for, and the operator is one of those that it is known to compute wrongly."""
    asked_for = {delegate.name for delegate in view.case.configuration.delegates.requested}
    if GPU.name not in asked_for or view.node is None or not view.wrong.any():
        return None
    fault = next((fault for fault in GPU_FAULTS if fault.is_in(view.graph, view.node)), None)
    if fault is None:
        return None
    return Cause("a known fault of the GPU", f"{fault.wrong}: {fault.source}", fault.way_round)
