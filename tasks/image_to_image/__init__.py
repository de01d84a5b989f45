"""Pictures that become pictures."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from evaltools.command import Accuracy
from evaltools.tasks.framework import comes_with_evaltools
from evaltools.tasks.framework.common_options import ExampleOrder, Images, Normalized, NumImages, Seed
from evaltools.tasks.framework.definition import Task, task


@task
def image_to_image(
    images: Images,
    targets: Annotated[Path | None, "Folder of the pictures that the model should give, of the same stems."] = None,
    output_values: Annotated[
        Literal["unit", "native", "none"],
        "Values of black and white in the output: unit 0..1, native -1..1, none 0..255.",
    ] = "unit",
    normalization: Normalized = "auto",
    num_images: NumImages = 0,
    order: ExampleOrder = "native",
    seed: Seed = 1,
) -> Task:
    """PSNR and SSIM of a model that makes pictures of pictures, such as super-resolution or noise removal.

    The output is a picture, [1,height,width,3] or [1,height,width,1]. Without targets: how near it is to the
    reference's.
    """
    from evaltools.tasks.framework.pictures import image_input, pairs
    from evaltools.tasks.image_to_image import quality

    return Task(
        examples=pairs(images, targets, num_images, order, seed),
        prepare=partial(image_input, normalization=normalization),
        score=partial(quality.score, output_values) if targets else None,
        agree=partial(quality.agree, output_values),
        metrics=quality.metrics(has_truth=targets is not None),
    )


COMMAND: Final = comes_with_evaltools(
    image_to_image,
    "evaltools.tasks.image_to_image.quality",
    Accuracy("ssim", "SSIM"),
)
