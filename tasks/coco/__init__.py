"""COCO detection."""

from __future__ import annotations

from typing import Final

from evaltools.task_kind import Accuracy
from evaltools.tasks.coco.options import DESCRIPTION, OPTIONS
from evaltools.tasks.shared.declared import DeclaredTask

KIND: Final = DeclaredTask(
    "coco",
    place=2,
    summary="mAP of a detector on annotated pictures; do the boxes agree",
    description=DESCRIPTION,
    options=OPTIONS,
    evaluation="evaltools.tasks.coco.evaluation:DetectionEvaluation",
    part="evaltools.tasks.coco.result:CocoDetection",
    report="evaltools.tasks.coco.report",
    evidence="evaltools.tasks.coco.metrics",
    needs=("pycocotools.cocoeval",),
    accuracy=Accuracy("ap", "mAP"),
)
