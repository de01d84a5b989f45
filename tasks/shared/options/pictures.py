"""Flags that the evaluations over pictures share, so that one word means one thing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from evaltools.datasets.order import Order
from evaltools.errors import UsageError
from evaltools.parameter import NotNative, Parameter
from evaltools.request import Options

ENDS_AT_FAILURE: Final = NotNative("the native tool ends at the first example that fails", (0,))
IMAGES_PATH: Final = Parameter(
    "ground_truth_images_path",
    "Folder of pictures, taken in order of their names. Required.",
    role="pictures",
    required=True,
    short="images",
)
OUTPUT_FILE_PATH: Final = Parameter(
    "output_file_path",
    "Result file: .json, .html or .md (pages), .csv, or the native tool's protobuf: .pb, .bin, any with "
    "--compat=native.",
    role="output_file",
    about="result",
    short="output",
    in_python="call .save() of the result",
)
NUM_IMAGES: Final = Parameter("num_images", "Evaluate the first N pictures; 0: all.", default=0)
_IN_ORDER: Final = "the native tool runs all pictures in the order of their names"
ORDER: Final = Parameter(
    "order",
    "native: one after the other, as they are listed; random: shuffled, so that the first N are a fair sample.",
    default="native",
    choices=("native", "random"),
    not_native=NotNative(_IN_ORDER, ("native",)),
)
SEED: Final = Parameter(
    "seed",
    "Seed of the random order: the same one takes the same examples.",
    default=1,
    only_with=("order=random",),
    not_native=NotNative(_IN_ORDER),
)
NORMALIZATION: Final = Parameter(
    "normalization",
    "Input values: auto (model metadata, else native), native (-1..1), unit (0..1), none (0..255), imagenet, or "
    '"mean=M[,M,M];std=S[,S,S]".',
    default="auto",
    not_native=NotNative("the native tool feeds values of its own, -1..1 to float models"),
)
Images = Annotated[Path, "Folder of pictures, taken in order of their names."]
NumImages = Annotated[int, NUM_IMAGES.help]
ExampleOrder = Annotated[Order, ORDER]
Seed = Annotated[int, SEED]
Normalized = Annotated[str, NORMALIZATION.help]
"""The same options as parameters of a task's function."""
MARGIN: Final = Parameter(
    "margin",
    "Change of accuracy, 0..1, that counts as none in the verdict; 0.005 is half a point.",
    default=0.005,
    about="result",
)
MAX_FAILED_EXAMPLES: Final = Parameter(
    "max_failed_examples",
    "Stop once more than this many examples have failed; -1: no limit.",
    default=-1,
    not_native=ENDS_AT_FAILURE,
)


def read_margin(flags: Options) -> float:
    """The value of ``--margin``; raises :class:`UsageError` for what is no share."""
    margin = flags.real(MARGIN.name)
    if not 0 < margin < 1:
        raise UsageError(f"--{MARGIN.name}={margin:g}: use a share above 0 and below 1; 0.005 is half a point")
    return margin
