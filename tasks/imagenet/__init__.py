"""ImageNet classification."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from evaltools.command import Accuracy
from evaltools.parameter import NotNative, Parameter
from evaltools.tasks.framework import comes_with_evaltools
from evaltools.tasks.framework.common_options import IMAGES_PATH, NORMALIZATION, NUM_IMAGES, ExampleOrder, Seed
from evaltools.tasks.framework.definition import Setting, Task, task

_LABELS: Final = Parameter(
    "model_output_labels",
    "Label file: line i names output i of the model; a .tflite file: the labels in its metadata. If the model's have "
    "none, and no MODEL.txt, MODEL_labels.txt, labels.txt or labelmap.txt is beside it: Required.",
    role="input_file",
    short="labels",
)
_TRUTHS: Final = Parameter(
    "ground_truth_labels", "Label file: line i is the label of picture i.", role="input_file", short="ground_truth"
)
_OFFSET: Final = Parameter(
    "label_offset",
    "Line i (from 0) of the labels belongs to output i + offset; their number need not fit then.",
    default=0,
    given_counts=True,
    not_native=NotNative("line i of the labels is output i for the native tool", (0,)),
)
_CHECK: Final = Parameter(
    "label_check",
    "Try a few pictures first, and stop where another reading of the labels fits far better.",
    for_records=False,
)


@task
def imagenet(
    ground_truth_images_path: Annotated[Path, IMAGES_PATH],
    ground_truth_labels: Annotated[Path, _TRUTHS],
    model_output_labels: Annotated[Path, _LABELS],
    setting: Setting,
    denylist_file_path: Annotated[Path | None, "File of picture numbers (from 1) to leave out, one per line."] = None,
    num_images: Annotated[int, NUM_IMAGES] = 0,
    order: ExampleOrder = "native",
    seed: Seed = 1,
    normalization: Annotated[str, NORMALIZATION] = "auto",
    label_offset: Annotated[int | None, _OFFSET] = None,
    label_check: Annotated[bool, _CHECK] = True,
) -> Task:
    """Top-1..10 accuracy of a classifier on labelled pictures.

    Top-1..10 accuracy on labelled pictures, for a reference and any number of configurations in one pass.
    stdout: the lines of the native tool. stderr: what ran, progress, a table of reference and configurations.
    """
    from evaltools.tasks.imagenet.data import load_labelled_images
    from evaltools.tasks.imagenet.evaluation import classification

    images = load_labelled_images(
        ground_truth_images_path, ground_truth_labels, denylist_file_path, num_images, order, seed, setting.native
    )
    return classification(images, model_output_labels, label_offset, label_check, normalization, setting)


def _labels(stated: Mapping[str, Any], folder: Path) -> Mapping[str, str]:
    """The model's labels that fit the ground truth, where no labels were given."""
    if "model_output_labels" in stated or "model_file" not in stated:
        return {}
    from evaltools.datasets.labels import fitting_labels, labels_beside

    model, truths = Path(str(stated["model_file"])), str(stated.get("ground_truth_labels", ""))
    found = fitting_labels(labels_beside(folder / model), folder / truths)
    return {} if found is None else {"model_output_labels": str(model.parent / found.name)}


COMMAND: Final = comes_with_evaltools(
    imagenet,
    "evaltools.tasks.framework.topk_figures",
    Accuracy("top1", "top-1"),
    native="evaltools.tasks.imagenet.native",
    place=1,
    complete=_labels,
)
