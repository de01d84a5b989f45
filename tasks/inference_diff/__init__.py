"""The same inputs through a reference and other configurations, then how far apart the outputs are."""

from __future__ import annotations

from functools import partial
from typing import Final

from evaltools.command import TaskCommand
from evaltools.tasks.inference_diff.options import DESCRIPTION, OPTIONS
from evaltools.tasks.own import all_options
from evaltools.tasks.shared.options import EXECUTION_WITH_ONE_WORKER

COMMAND: Final = TaskCommand(
    "inference_diff",
    "inference-diff",
    partial(all_options, OPTIONS, EXECUTION_WITH_ONE_WORKER),
    ("evaltools.tasks.inference_diff.evaluation", "scipy.special"),
    alias="diff",
    place=3,
    summary="How far a delegate's outputs are from the CPU's, any model",
    description=DESCRIPTION,
    evaluation_at="evaltools.tasks.inference_diff.evaluation:DiffEvaluation",
    part_at="evaltools.tasks.inference_diff.result:InferenceDiff",
    native_at="evaltools.tasks.inference_diff.report",
    stated_metrics="evaltools.tasks.inference_diff.metrics",
    more_than_records=True,
    has_limits=True,
    compares_models=False,
    native_reference="default",
)
