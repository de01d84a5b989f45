"""Detections in the COCO results format, which pycocotools' ``loadRes`` reads."""

from __future__ import annotations

from evaltools.result.json_file import encode_json
from evaltools.tasks.coco.result import CocoDetection


def coco_results(coco: CocoDetection, configuration: str) -> bytes:
    """A JSON list with image_id, category_id, bbox [x, y, width, height] in pixels, and score of each detection."""
    return encode_json(
        [
            {
                "image_id": picture.image_id,
                "category_id": found.category_id,
                "bbox": found.pixel_box(picture.width, picture.height),
                "score": found.score,
            }
            for picture in coco.pictures or []
            if picture.image_id is not None
            for found in picture.detections.get(configuration, [])
        ]
    )
