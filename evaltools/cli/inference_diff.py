"""``evaltools inference-diff``: the same inputs through a reference and other configurations, then how far apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evaltools.cli import configurations, execution_flags
from evaltools.cli.evaluation_flags import ENDS_AT_FAILURE
from evaltools.cli.exit_codes import EXIT_CODE_HELP
from evaltools.cli.flags import GivenFlags, parse_flags
from evaltools.configuration import OWN_PARAMETERS
from evaltools.delegates import COMMON, DELEGATES
from evaltools.parameter import NotNative, Parameter

if TYPE_CHECKING:
    from evaltools.cli.finished_shards import FinishedShards

_OWN_INPUTS: Final = NotNative("the native tool makes random inputs of its own")
_OWN_REFERENCE: Final = NotNative("the native tool runs its own reference")
_AVG_ERROR_ALONE: Final = NotNative("the native tool gives avg_error alone; --max_avg_error limits that")
RUN_PARAMETERS: Final = (
    Parameter("model_file", "string", "", "The .tflite model. Required.", role="input_file", required=True),
    Parameter(
        "output_file_path",
        "string",
        "",
        "Result file: *.json is ours, anything else the native tool's binary protobuf.",
        role="output_file",
        about="result",
    ),
    Parameter(
        "num_runs",
        "int32",
        50,
        "Runs, each with inputs of its own; with files or pictures: as many as they hold.",
        given_counts=True,
    ),
    Parameter(
        "warmup_runs",
        "int32",
        1,
        "Runs of each configuration before those that count; --compat=native: 0.",
        given_counts=True,
        not_native=NotNative("the native tool has no warm-up", (0,)),
    ),
    Parameter(
        "reference_model_file",
        "string",
        "",
        "Another model for the reference, such as the float one.",
        role="input_file",
        only_with=("load_reference=",),
        not_native=NotNative("the native tool compares a model with itself"),
    ),
    Parameter(
        "signature",
        "string",
        "",
        "Run the function of this signature instead of the main one.",
        not_native=NotNative("the native tool runs the main function"),
    ),
    Parameter(
        "max_failed_examples",
        "int32",
        -1,
        "Stop once more than this many runs have failed; -1: no limit.",
        not_native=ENDS_AT_FAILURE,
    ),
)
INPUT_PARAMETERS: Final = (
    Parameter(
        "seed",
        "int32",
        1,
        "Seed of the random inputs; 1 gives those of the native tool.",
        only_with=("load_reference=",),
        not_native=NotNative("the native tool has a seed of its own"),
    ),
    Parameter(
        "input_range",
        "string",
        "",
        "NAME:LOW:HIGH, values of an input, both reached by whole numbers. May be repeated.",
        repeatable=True,
        only_with=("load_reference=",),
        not_native=_OWN_INPUTS,
    ),
    Parameter(
        "input_files",
        "string",
        "",
        "NAME=PATH or PATH: .npy, .npz, raw bytes, or a folder of those, instead of random numbers. May be repeated.",
        repeatable=True,
        role="named_files",
        only_with=("load_reference=",),
        not_native=_OWN_INPUTS,
    ),
    Parameter(
        "input_images",
        "string",
        "",
        "Folder of pictures for the input [1,height,width,3].",
        role="pictures",
        only_with=("load_reference=",),
        not_native=_OWN_INPUTS,
    ),
    Parameter(
        "normalization",
        "string",
        "auto",
        "Values of pictures: auto (model metadata, else native), native (-1..1), unit (0..1), none (0..255), imagenet, "
        'or "mean=M[,M,M];std=S[,S,S]".',
        only_with=("input_images", "load_reference="),
        not_native=_OWN_INPUTS,
    ),
    Parameter(
        "input_shape",
        "string",
        "",
        "NAME:1,224,224,3 for a dynamic shape. May be repeated.",
        repeatable=True,
        not_native=_OWN_INPUTS,
    ),
)
JUDGEMENT_PARAMETERS: Final = (
    Parameter(
        "noise_floor_runs",
        "int32",
        10,
        "Runs over which CPU variants, precisions and repeatability are measured; 0: none. --compat=native: 0.",
        given_counts=True,
        in_parts=0,
        not_native=NotNative("the native tool compares the test with one reference alone", (0,)),
    ),
    Parameter(
        "max_avg_error", "string", "", "Largest avg_error, for all or as OUTPUT=VALUE. Repeatable.", repeatable=True
    ),
    Parameter(
        "max_quanta",
        "string",
        "",
        "Largest difference in quanta, for all or as OUTPUT=VALUE. Repeatable.",
        repeatable=True,
        not_native=_AVG_ERROR_ALONE,
    ),
    Parameter(
        "min_snr_db",
        "string",
        "",
        "Smallest SNR in dB, for all or as OUTPUT=VALUE. Repeatable.",
        repeatable=True,
        not_native=_AVG_ERROR_ALONE,
    ),
)
SAVING_PARAMETERS: Final = (
    Parameter(
        "save_outputs",
        "string",
        "",
        "New folder for inputs and outputs of all runs.",
        role="output_folder",
        refused_on_devices="outputs stay on the device; save those of this computer, and give the devices "
        "--load_reference",
    ),
    Parameter(
        "load_reference",
        "string",
        "",
        "Folder of --save_outputs, perhaps of another machine, as the reference.",
        role="input_folder",
        not_native=_OWN_REFERENCE,
    ),
    Parameter(
        "allow_model_mismatch",
        "bool",
        False,
        "Accept --load_reference of another model file.",
        only_with=("load_reference",),
        not_native=_OWN_REFERENCE,
    ),
)

GROUPS: Final = {
    "evaluation": RUN_PARAMETERS,
    "inputs": INPUT_PARAMETERS,
    "judgement": JUDGEMENT_PARAMETERS,
    "two machines": SAVING_PARAMETERS,
    "execution": execution_flags.PARAMETERS_WITH_ONE_WORKER,
    "configurations": (*configurations.PARAMETERS, *OWN_PARAMETERS),
    **{f"delegate {delegate.name}": delegate.parameters for delegate in DELEGATES},
    "delegates, common": COMMON,
}
DESCRIPTION: Final = """\
How far a delegate's outputs are from the CPU's, for any model and without labels: differences per output beside a noise
floor, latency, a verdict with its reason.
stdout: the lines of the native tool. stderr: what ran, progress, tables, verdicts."""


def run(arguments: list[str], shards: FinishedShards | None = None) -> int:
    """Run the command, or take the records from its finished ``shards``; returns the exit code."""
    flags = parse_flags("inference-diff", DESCRIPTION, f"exit codes:\n{EXIT_CODE_HELP}", GROUPS, arguments)
    require(flags)
    if flags.text("executor") == "ray" and not shards:
        from evaltools.cli.on_ray import run_on_ray

        return run_on_ray("inference-diff", flags, arguments)
    from evaltools.cli.inference_diff_run import evaluate_inference_diff

    return evaluate_inference_diff(flags, ["evaltools", "inference-diff", *arguments], shards)


def require(flags: GivenFlags) -> None:
    """Raise :class:`UsageError` where a flag that the task needs is missing."""
    flags.require("inference-diff")
