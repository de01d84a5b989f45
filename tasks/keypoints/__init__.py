"""Keypoints of people."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from evaltools.command import Accuracy
from evaltools.tasks.framework import comes_with_evaltools
from evaltools.tasks.framework.common_options import ExampleOrder, Images, Normalized, NumImages, Seed
from evaltools.tasks.framework.definition import Setting, Task, task


@task
def keypoints(
    images: Images,
    setting: Setting,
    annotations: Annotated[Path | None, "COCO person keypoints, a JSON file."] = None,
    people: Annotated[
        Literal["picture", "boxes"],
        "picture: the model finds one person in the whole picture; boxes: it gets the box of each annotated person.",
    ] = "picture",
    pck_share: Annotated[float, "A keypoint is found within this share of the longer side of the person's box."] = 0.2,
    min_score: Annotated[
        float, "Keypoints to which the reference gives a lower score do not count in same_keypoints and keypoint_shift."
    ] = 0.3,
    normalization: Normalized = "auto",
    num_images: NumImages = 0,
    order: ExampleOrder = "native",
    seed: Seed = 1,
) -> Task:
    """OKS AP and PCK of a model that finds the 17 keypoints of a person.

    Outputs are y, x and score of each keypoint, [1,1,17,3] in shares of the input (MoveNet), heat maps
    [1,height,width,17], or the head of a YOLO, of which the best box counts, [1,56,N]. Pictures keep their aspect
    ratio: a border fills the input. Without annotations: how far the keypoints are from the reference's, those that the
    reference is not sure of apart.
    """
    from evaltools.tasks.keypoints import examples, pose_head, scoring

    model = setting.models[0]
    is_yolo = any(pose_head.is_pose_head(output.shape) for output in model.outputs)
    is_stated = normalization != "auto" or model.normalization is not None
    if is_yolo and not is_stated:
        normalization = pose_head.NORMALIZATION
    return Task(
        examples=examples.listed(images, annotations, people == "boxes", num_images, order, seed),
        prepare=partial(
            examples.model_input, normalization=normalization, fill=pose_head.FILL if is_yolo else examples.BLACK
        ),
        score=partial(scoring.score, pck_share) if annotations else None,
        agree=partial(scoring.agree, min_score),
        metrics=scoring.metrics(has_truth=annotations is not None),
        draw=partial(scoring.draw, min_score),
    )


COMMAND: Final = comes_with_evaltools(
    keypoints,
    "evaltools.tasks.keypoints.scoring",
    Accuracy("oks_ap", "OKS AP"),
)
