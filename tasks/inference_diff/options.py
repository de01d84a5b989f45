"""The options of an inference diff."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from evaltools.parameter import NotNative, Parameter
from evaltools.tasks.framework.common_options import CHANNEL_ORDER, INPUT_LAYOUT

INPUT_KINDS: Final = ("auto", "noise", "photos", "both")
"""What ``--inputs`` may ask for."""
_OWN_INPUTS: Final = NotNative("the native tool makes random inputs of its own")
_OWN_REFERENCE: Final = NotNative("the native tool runs its own reference")
_ONLY_AVG_ERROR: Final = NotNative("the native tool gives only avg_error; --max_avg_error limits that")
NUM_RUNS: Final = Parameter(
    "num_runs",
    "Runs, each with inputs of its own; with files or pictures: as many as they hold.",
    default=50,
    given_counts=True,
)
WARMUP_RUNS: Final = Parameter(
    "warmup_runs",
    "Runs of each configuration before those that count; --compat=native: 0.",
    default=1,
    given_counts=True,
    not_native=NotNative("the native tool has no warm-up", (0,)),
)
OUTPUT_MAP: Final = Parameter(
    "output_map",
    "OUTPUT:REFERENCE_OUTPUT,... by number: with which output of --reference_model_file an output is compared. 0:2 "
    "compares output 0 with its output 2. Others are matched by name, shape and values.",
    only_with=("reference_model_file",),
    not_native=NotNative("the native tool compares a model with itself"),
)
SIGNATURE: Final = Parameter(
    "signature",
    "Run the function of this signature instead of the main one.",
    not_native=NotNative("the native tool runs the main function"),
)
SEED: Final = Parameter(
    "seed",
    "Seed of the random inputs; 1 gives those of the native tool.",
    default=1,
    only_with=("load_reference=",),
    not_native=NotNative("the native tool has a seed of its own"),
    heading="inputs",
)
INPUT_RANGE: Final = Parameter(
    "input_range",
    "NAME:LOW:HIGH, values of an input, both reached by whole numbers. May be repeated.",
    repeatable=True,
    only_with=("load_reference=",),
    not_native=_OWN_INPUTS,
    heading="inputs",
)
INPUT_FILES: Final = Parameter(
    "input_files",
    "NAME=PATH or PATH: .npy, .npz, raw bytes, or a folder of those, instead of random numbers. May be repeated.",
    repeatable=True,
    role="named_files",
    only_with=("load_reference=",),
    not_native=_OWN_INPUTS,
    heading="inputs",
)
INPUTS: Final = Parameter(
    "inputs",
    "noise, photos (of --input_images, else of the embedded sample), or both in turns; auto: photos with "
    "--input_images, else both for an input that is shaped like a picture.",
    default="auto",
    choices=INPUT_KINDS,
    only_with=("load_reference=",),
    not_native=NotNative(_OWN_INPUTS.reason, ("auto", "noise")),
    heading="inputs",
)
INPUT_IMAGES: Final = Parameter(
    "input_images",
    "Folder of pictures for the input [1,height,width,3 or 1] or [1,3 or 1,height,width].",
    role="pictures",
    only_with=("load_reference=",),
    not_native=_OWN_INPUTS,
    heading="inputs",
)
NORMALIZATION: Final = Parameter(
    "normalization",
    "Values of pictures: auto (what the model says, else native), native (-1..1), unit (0..1), none (0..255), "
    'imagenet, or "mean=M[,M,M];std=S[,S,S]".',
    default="auto",
    only_with=("load_reference=",),
    not_native=_OWN_INPUTS,
    heading="inputs",
)
CHANNELS: Final = replace(CHANNEL_ORDER, only_with=("load_reference=",), heading="inputs")
LAYOUT: Final = replace(INPUT_LAYOUT, only_with=("load_reference=",), heading="inputs")
INPUT_SHAPE: Final = Parameter(
    "input_shape",
    "NAME:1,224,224,3 for a dynamic shape. May be repeated.",
    repeatable=True,
    not_native=_OWN_INPUTS,
    heading="inputs",
)
OF_INPUTS: Final = (
    SEED, INPUT_RANGE, INPUT_FILES, INPUTS, INPUT_IMAGES, NORMALIZATION, CHANNELS, LAYOUT, INPUT_SHAPE,
)  # fmt: skip
NOISE_FLOOR_RUNS: Final = Parameter(
    "noise_floor_runs",
    "Runs over which CPU variants, precisions and repeatability are measured, more for many configurations; 0: "
    "none. --compat=native: 0.",
    default=10,
    given_counts=True,
    not_native=NotNative("the native tool compares the test with only one reference", (0,)),
    heading="judgement",
)
MAX_SECS: Final = Parameter(
    "max_secs",
    "Seconds for what is measured after the runs; what is not done then is named. 0: no limit.",
    default=60.0,
    not_native=NotNative("the native tool measures nothing after the runs"),
    heading="judgement",
)
OUTPUT_KIND: Final = Parameter(
    "output_kind",
    "What an output is, for all or as OUTPUT=KIND: values, scores, vector, keypoints, yolo, "
    "segmentation or embedding; else known by shape and operators. Repeatable.",
    repeatable=True,
    not_native=NotNative("the native tool knows only numbers"),
    heading="judgement",
)
MAX_AVG_ERROR: Final = Parameter(
    "max_avg_error",
    "Largest avg_error, for all or as OUTPUT=VALUE. Repeatable.",
    repeatable=True,
    limit="avg_error",
    heading="judgement",
)
MAX_QUANTA: Final = Parameter(
    "max_quanta",
    "Largest difference in quanta, for all or as OUTPUT=VALUE. Repeatable.",
    repeatable=True,
    limit="max_quanta",
    not_native=_ONLY_AVG_ERROR,
    heading="judgement",
)
MIN_SNR_DB: Final = Parameter(
    "min_snr_db",
    "Smallest SNR in dB, for all or as OUTPUT=VALUE. Repeatable.",
    repeatable=True,
    limit="snr_db",
    not_native=_ONLY_AVG_ERROR,
    heading="judgement",
)
LOCATE: Final = Parameter(
    "locate",
    "Where a configuration is not equivalent, look for the operator at fault, as evaltools locate does; with a JSON "
    "result file, what is found is written beside it, as NAME.locate.json.",
    default=False,
    about="result",
    only_with=("load_reference=",),
    refused_on_devices="run evaltools locate on the board itself",
    not_native=NotNative("the native tool looks no further", (False,)),
    heading="judgement",
)
SAVE_OUTPUTS: Final = Parameter(
    "save_outputs",
    "New folder for inputs and outputs of all runs.",
    role="output_folder",
    only_with=("run_dir=",),
    refused_on_devices="outputs stay on the device; save those of this computer, and give the devices --load_reference",
    heading="two machines",
)
LOAD_REFERENCE: Final = Parameter(
    "load_reference",
    "Folder of --save_outputs, perhaps of another machine, as the reference.",
    role="input_folder",
    not_native=_OWN_REFERENCE,
    heading="two machines",
)
ALLOW_MODEL_MISMATCH: Final = Parameter(
    "allow_model_mismatch",
    "Accept --load_reference of another model file.",
    default=False,
    only_with=("load_reference",),
    not_native=_OWN_REFERENCE,
    heading="two machines",
)
LIMITS: Final = (MAX_AVG_ERROR, MAX_QUANTA, MIN_SNR_DB)
