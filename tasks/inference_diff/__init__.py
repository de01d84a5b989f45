"""The same inputs through a reference and other configurations, then how far apart the outputs are."""

from __future__ import annotations

from typing import Final

from evaltools.tasks.inference_diff.options import DESCRIPTION, OPTIONS
from evaltools.tasks.shared.declared import DeclaredTask

KIND: Final = DeclaredTask(
    "inference_diff",
    alias="diff",
    place=3,
    summary="How far a delegate's outputs are from the CPU's, any model",
    description=DESCRIPTION,
    options=OPTIONS,
    evaluation="evaltools.tasks.inference_diff.evaluation:DiffEvaluation",
    part="evaltools.tasks.inference_diff.result:InferenceDiff",
    report="evaltools.tasks.inference_diff.report",
    metrics="evaltools.tasks.inference_diff.metrics",
    needs=("scipy.special",),
    one_worker=True,
    more_than_records=True,
    has_limits=True,
    compares_models=False,
    native_reference="default",
)
