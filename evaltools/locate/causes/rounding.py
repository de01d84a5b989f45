"""Values that are a little off everywhere: whole numbers rounded in another way, and floats of fewer digits."""

from __future__ import annotations

from typing import Final

import numpy as np

from evaltools.locate.causes.view import View, count
from evaltools.locate.parts.difference import is_rounded
from evaltools.model.rounding import UNIT_ROUNDOFF
from evaltools.result.locate import Cause

_FEW_STEPS: Final = 3
_FEWEST: Final = 16
_BIAS: Final = 0.8
_MANY: Final = 0.2
_ROUNDINGS: Final = 8.0
_PRECISIONS: Final = {"bf16": "8 binary digits", "fp16": "11 binary digits"}
"""The one of fewer digits first, whose numbers are mostly numbers of the other one, too."""


def biased_rounding(view: View) -> Cause | None:
    """Whole numbers that are a few steps off, nearly all to the same side: ``mean of sign(error)`` near -1 or 1."""
    if not view.is_whole or view.case.unit != "steps":
        return None
    off = view.error[view.error != 0]
    if off.size < _FEWEST or np.isnan(off).any() or np.abs(off).max() > _FEW_STEPS:
        return None
    bias, share = float(np.mean(np.sign(off))), off.size / view.error.size
    if abs(bias) < _BIAS:
        return None
    how = "cut off" if share >= _MANY else "rounded another way where a value lies in the middle, or rounded twice"
    return Cause(
        "another rounding of whole numbers",
        f"{count(off.size, view.error.size)} values ({100 * share:.0f} %) are off by at most {np.abs(off).max():g} "
        f"step{'s' if np.abs(off).max() > 1 else ''}, {100 * np.mean(off > 0):.0f} % of them upwards; on average "
        f"{np.mean(view.error):+.3g}: results seem to be {how}",
        "round results to nearest as the CPU's kernels do; where the delegate cannot, take it for its precision and "
        "judge the task's score",
        "https://github.com/google-ai-edge/LiteRT/issues/7441",
    )


def fewer_digits(view: View) -> Cause | None:
    """All values can be written in a lower precision, those of the reference cannot, and the errors are as small."""
    if view.expected.dtype != np.float32 or view.given.dtype != np.float32:
        return None
    error = np.abs(view.error)
    for precision, digits in _PRECISIONS.items():
        limit = _ROUNDINGS * UNIT_ROUNDOFF[precision] * view.largest
        if is_rounded(view.given, precision) and not is_rounded(view.expected, precision) and np.all(error <= limit):
            return Cause(
                f"computed in {precision}",
                f"all {error.size} values are {precision} numbers ({digits}), and the error of at most "
                f"{error.max():.3g} is {error.max() / view.largest / UNIT_ROUNDOFF[precision]:.1f} roundings of the "
                "largest value: a matter of precision, no fault",
                "take it, or ask for fp32: --gpu_precision_loss_allowed=false, no xnnpack_force_fp16",
                "https://ai.google.dev/edge/litert/performance/gpu",
            )
    return None
