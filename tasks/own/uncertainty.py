"""How near an answer is to another one, by the outputs alone."""

from __future__ import annotations

import numpy as np

from evaltools.tasks.own.outputs import Outputs


def uncertainty_of_scores(outputs: Outputs) -> float | None:
    """Minus the distance of the two best scores of the only output; None where that is no row of finite scores.

    >>> from evaltools.tasks.own.tensors import TaskTensor
    >>> scores = np.array([[0.25, 0.625, 0.125]], np.float32)
    >>> uncertainty_of_scores(Outputs([scores], [TaskTensor("scores", (1, 3), scores.dtype)]))
    -0.375
    """
    if len(outputs) != 1 or outputs[0].ndim == 0 or outputs[0].dtype.kind not in "fiu":
        return None
    scores = outputs.real(0)
    if scores.shape[-1] < 2 or scores.size != scores.shape[-1] or not np.isfinite(scores).all():
        return None
    second, best = np.partition(scores.ravel().astype(np.float64), -2)[-2:]
    return float(second - best)
