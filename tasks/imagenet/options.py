"""The options of an ImageNet evaluation."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from evaltools.parameter import NotNative, Parameter
from evaltools.tasks.shared.options.model import MODEL_FILE
from evaltools.tasks.shared.options.pictures import (
    IMAGES_PATH,
    MARGIN,
    MAX_FAILED_EXAMPLES,
    NORMALIZATION,
    NUM_IMAGES,
    ORDER,
    OUTPUT_FILE_PATH,
    SEED,
)

_NO_ANSWERS: Final = NotNative("the native tool tells no answers of single pictures")

_EVALUATION: Final = (
    MODEL_FILE,
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
        in_parts=False,
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

OPTIONS: Final = {"evaluation": _EVALUATION}
DESCRIPTION: Final = """\
Top-1..10 accuracy on labelled pictures, for a reference and any number of configurations in one pass.
stdout: the lines of the native tool. stderr: what ran, progress, a table of reference and configurations."""
