"""The metrics of a COCO detection evaluation."""

from __future__ import annotations

from typing import Final

from msgspec.structs import fields

from evaltools.metrics.coco_stats import CocoStats
from evaltools.metrics.metric import Metric

_HEADINGS: Final = {
    "ap": "mAP",
    "ap50": "AP50",
    "ap75": "AP75",
    "ap_small": "small",
    "ap_medium": "medium",
    "ap_large": "large",
    "ar_1": "AR@1",
    "ar_10": "AR@10",
    "ar_100": "AR@100",
}
OF_COCO: Final = tuple(
    Metric(
        field.name,
        "COCO figure of that name, 0..1; ap is mAP",
        better="higher",
        is_share=True,
        heading=_HEADINGS.get(field.name, ""),
        aliases=("map", "mAP") if field.name == "ap" else (),
        bounds="draws",
    )
    for field in fields(CocoStats)
)
MATCHED_BOXES: Final = Metric(
    "matched_boxes",
    "coco: share of the reference's boxes that were found again, 0..1",
    better="higher",
    is_share=True,
    of_reference=True,
)
METRICS: Final = (*OF_COCO, MATCHED_BOXES)
