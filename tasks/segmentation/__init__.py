"""Semantic segmentation."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from evaltools.command import Accuracy
from evaltools.tasks.framework import comes_with_evaltools
from evaltools.tasks.framework.common_options import ExampleOrder, Images, Normalized, NumImages, Seed
from evaltools.tasks.framework.definition import Task, task


@task
def segmentation(
    images: Images,
    masks: Annotated[Path | None, "Folder of PNG masks of the same stems, one channel or a palette."] = None,
    mask_values: Annotated[
        Literal["voc", "ade"],
        "voc: a pixel's value is its class, 255 does not count; ade: it is 1 more, 0 does not count.",
    ] = "voc",
    class_offset: Annotated[int, "Output i of the model is class i + offset."] = 0,
    normalization: Normalized = "auto",
    num_images: NumImages = 0,
    order: ExampleOrder = "native",
    seed: Seed = 1,
) -> Task:
    """Mean IoU and pixel accuracy of a model that gives each pixel its class.

    Outputs are scores [1,height,width,classes], a mask [1,height,width,1] (above 0.5), or classes [1,height,width].
    Scores are resized to the mask before the best class is taken. Without masks: how many pixels have the class that
    the reference gives them.
    """
    from evaltools.tasks.framework.pictures import image_input, pairs
    from evaltools.tasks.segmentation import pixels

    return Task(
        examples=pairs(images, masks, num_images, order, seed),
        prepare=partial(image_input, normalization=normalization),
        score=partial(pixels.score, mask_values, class_offset) if masks else None,
        agree=pixels.agree,
        metrics=pixels.metrics(has_truth=masks is not None),
        draw=partial(pixels.draw, mask_values, class_offset),
    )


COMMAND: Final = comes_with_evaltools(
    segmentation,
    "evaltools.tasks.segmentation.pixels",
    Accuracy("miou", "mIoU"),
)
