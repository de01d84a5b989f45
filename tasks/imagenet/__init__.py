"""ImageNet classification: its options, and where its other parts are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from evaltools.parameter import NotNative, Parameter
from evaltools.task_kind import Accuracy
from evaltools.tasks.shared.declared import DeclaredTask
from evaltools.tasks.shared.options import (
    CHANNEL_ORDER,
    IMAGES_PATH,
    INPUT_LAYOUT,
    MARGIN,
    MAX_FAILED_EXAMPLES,
    MODEL_FILE,
    NORMALIZATION,
    NUM_IMAGES,
    ORDER,
    OUTPUT_FILE_PATH,
    REFERENCE_MODEL_FILE,
    SEED,
)

if TYPE_CHECKING:
    from evaltools.request import Options

_NO_ANSWERS: Final = NotNative("the native tool gives no answers of single pictures")

_EVALUATION: Final = (
    MODEL_FILE,
    REFERENCE_MODEL_FILE,
    Parameter(
        "model_output_labels",
        "Label file: line i names output i of the model; a .tflite file: the labels in its metadata. If the model's "
        "have none, and no MODEL.txt, MODEL_labels.txt, labels.txt or labelmap.txt is beside it: Required.",
        role="input_file",
        required=True,
        short="labels",
    ),
    IMAGES_PATH,
    Parameter(
        "ground_truth_labels",
        "Label file: line i is the label of picture i. Required.",
        role="input_file",
        required=True,
        short="ground_truth",
    ),
    Parameter("denylist_file_path", "File of picture numbers (from 1) to leave out, one per line.", role="input_file"),
    OUTPUT_FILE_PATH,
    NUM_IMAGES,
    ORDER,
    SEED,
    NORMALIZATION,
    CHANNEL_ORDER,
    INPUT_LAYOUT,
    Parameter(
        "label_offset",
        "Line i (from 0) of the labels belongs to output i + offset; their number need not fit then.",
        default=0,
        given_counts=True,
        not_native=NotNative("line i of the labels is output i for the native tool", (0,)),
    ),
    Parameter(
        "label_check",
        "Try a few pictures first, and stop where another reading of the labels fits far better.",
        default=True,
        for_records=False,
    ),
    MAX_FAILED_EXAMPLES,
    replace(MARGIN, not_native=_NO_ANSWERS),
    Parameter(
        "record_examples",
        "Write the best classes of every picture to the JSON result.",
        default=False,
        about="result",
        not_native=_NO_ANSWERS,
    ),
)

DESCRIPTION: Final = """\
Top-1..10 accuracy on labelled pictures, for a reference and any number of configurations in one pass.
stdout: the lines of the native tool. stderr: what ran, progress, a table of reference and configurations."""


def _with_labels(options: Options, folder: Path) -> Options:
    """The options with the model's labels that fit the ground truth, where no labels were given."""
    if "model_output_labels" in options or "model_file" not in options:
        return options
    from evaltools.datasets.labels import fitting_labels, labels_beside

    model = Path(options.text("model_file"))
    found = fitting_labels(labels_beside(folder / model), folder / options.text("ground_truth_labels"))
    return options if found is None else options.stating({"model_output_labels": str(model.parent / found.name)})


KIND: Final = DeclaredTask(
    "imagenet",
    place=1,
    summary="Top-1..10 accuracy of a classifier on labelled pictures",
    description=DESCRIPTION,
    options={"evaluation": _EVALUATION},
    evaluation="evaltools.tasks.imagenet.evaluation:ImagenetEvaluation",
    part="evaltools.tasks.imagenet.result:ImagenetPart",
    report="evaltools.tasks.imagenet.report",
    evidence="evaltools.tasks.imagenet.metrics",
    accuracy=Accuracy("top1", "top-1"),
    complete=_with_labels,
)
