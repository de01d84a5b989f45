"""The options of an ImageNet evaluation."""

from __future__ import annotations

from typing import Final

from evaltools.parameter import Parameter
from evaltools.tasks.shared.options.pictures import (
    IMAGES_PATH,
    MARGIN,
    MAX_FAILED_EXAMPLES,
    NORMALIZATION,
    NUM_IMAGES,
    OUTPUT_FILE_PATH,
)

_EVALUATION: Final = (
    Parameter("model_file", "string", "", "The .tflite model. Required."),
    Parameter("model_output_labels", "string", "", "Label file: line i names output i of the model. Required."),
    IMAGES_PATH,
    Parameter("ground_truth_labels", "string", "", "Label file: line i is the label of picture i. Required."),
    Parameter("denylist_file_path", "string", "", "File of picture numbers (from 1) to leave out, one per line."),
    OUTPUT_FILE_PATH,
    NUM_IMAGES,
    NORMALIZATION,
    Parameter(
        "label_offset",
        "int32",
        0,
        "Line i (from 0) of the labels belongs to output i + offset; their number need not fit then.",
    ),
    Parameter(
        "label_check",
        "bool",
        True,
        "Try a few pictures first, and stop where another reading of the labels fits far better.",
    ),
    MAX_FAILED_EXAMPLES,
    MARGIN,
    Parameter("record_examples", "bool", False, "Write the best classes of every picture to the JSON result."),
)

OPTIONS: Final = {"evaluation": _EVALUATION}
REQUIRED: Final = ("model_file", "ground_truth_images_path", "ground_truth_labels", "model_output_labels")
DESCRIPTION: Final = """\
Top-1..10 accuracy on labelled pictures, for a reference and any number of configurations in one pass.
stdout: the lines of the native tool. stderr: what ran, progress, a table of reference and configurations."""
