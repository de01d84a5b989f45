"""``evaltools imagenet``: flags in, pictures through every configuration, figures out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evaltools.cli import configurations, execution_flags
from evaltools.cli.evaluation_flags import (
    IMAGES_PATH,
    MARGIN,
    MAX_FAILED_EXAMPLES,
    NORMALIZATION,
    NUM_IMAGES,
    OUTPUT_FILE_PATH,
)
from evaltools.cli.exit_codes import EXIT_CODE_HELP
from evaltools.cli.flags import GivenFlags, parse_flags
from evaltools.configuration import OWN_PARAMETERS
from evaltools.delegates import COMMON, DELEGATES
from evaltools.parameter import NotNative, Parameter

if TYPE_CHECKING:
    from evaltools.cli.finished_shards import FinishedShards

_NO_ANSWERS: Final = NotNative("the native tool tells no answers of single pictures")

TASK_PARAMETERS: Final = (
    Parameter("model_file", "string", "", "The .tflite model. Required.", role="input_file", required=True),
    Parameter(
        "model_output_labels",
        "string",
        "",
        "Label file: line i names output i of the model. Required.",
        role="input_file",
        required=True,
    ),
    IMAGES_PATH,
    Parameter(
        "ground_truth_labels",
        "string",
        "",
        "Label file: line i is the label of picture i. Required.",
        role="input_file",
        required=True,
    ),
    Parameter(
        "denylist_file_path",
        "string",
        "",
        "File of picture numbers (from 1) to leave out, one per line.",
        role="input_file",
    ),
    OUTPUT_FILE_PATH,
    NUM_IMAGES,
    NORMALIZATION,
    Parameter(
        "label_offset",
        "int32",
        0,
        "Line i (from 0) of the labels belongs to output i + offset; their number need not fit then.",
        given_counts=True,
        not_native=NotNative("line i of the labels is output i for the native tool", (0,)),
    ),
    Parameter(
        "label_check",
        "bool",
        True,
        "Try a few pictures first, and stop where another reading of the labels fits far better.",
        in_parts=False,
    ),
    MAX_FAILED_EXAMPLES,
    replace(MARGIN, not_native=_NO_ANSWERS),
    Parameter(
        "record_examples",
        "bool",
        False,
        "Write the best classes of every picture to the JSON result.",
        about="result",
        not_native=_NO_ANSWERS,
    ),
)

GROUPS: Final = {
    "evaluation": TASK_PARAMETERS,
    "execution": execution_flags.PARAMETERS,
    "configurations": (*configurations.PARAMETERS, *OWN_PARAMETERS),
    **{f"delegate {delegate.name}": delegate.parameters for delegate in DELEGATES},
    "delegates, common": COMMON,
}
DESCRIPTION: Final = """\
Top-1..10 accuracy on labelled pictures, for a reference and any number of configurations in one pass.
stdout: the lines of the native tool. stderr: what ran, progress, a table of reference and configurations."""


def run(arguments: list[str], shards: FinishedShards | None = None) -> int:
    """Run the command, or take the records from its finished ``shards``; returns the exit code."""
    flags = parse_flags("imagenet", DESCRIPTION, f"exit codes:\n{EXIT_CODE_HELP}", GROUPS, arguments)
    require(flags)
    if flags.text("executor") == "ray" and not shards:
        from evaltools.cli.on_ray import run_on_ray

        return run_on_ray("imagenet", flags, arguments)
    from evaltools.cli.imagenet_run import evaluate_imagenet

    return evaluate_imagenet(flags, ["evaltools", "imagenet", *arguments], shards)


def require(flags: GivenFlags) -> None:
    """Raise :class:`UsageError` where a flag that the task needs is missing."""
    flags.require("imagenet")
