"""Semantic segmentation: how well does a model's classification of pixels match masks?"""

from pathlib import Path
from typing import Annotated

import numpy as np
from PIL import Image

import evaltools as et

UNLABELLED = 255


def mean_iou(found: np.ndarray, truth: np.ndarray) -> float:
    """Mean over the classes in either of intersection by union; pixels without a label do not count."""
    labelled = truth != UNLABELLED
    classes = np.union1d(found[labelled], truth[labelled])
    both = [(labelled & (found == index) & (truth == index)).sum() for index in classes]
    either = [(labelled & ((found == index) | (truth == index))).sum() for index in classes]
    return float(np.divide(both, either).mean()) if classes.size else 1.0


@et.task
def segmentation(
    images: Annotated[Path, "Folder of pictures."],
    masks: Annotated[Path, "Folder of masks of the same names: PNG, a pixel's value is its class."],
) -> et.Task:
    """Mean intersection over union against masks."""

    def score(outputs, mask):
        found = outputs[0][0].argmax(-1) if outputs[0].ndim == 4 else outputs[0][0]
        truth = Image.open(mask).resize(found.shape[::-1], Image.Resampling.NEAREST)
        return {"iou": mean_iou(found, np.asarray(truth))}

    return et.Task(
        examples=et.pairs(images, masks),
        prepare=et.image_input,
        score=score,
        metrics=[et.mean("iou", better="higher")],
    )
