"""The options of an inference diff."""

from __future__ import annotations

from typing import Final

from evaltools.parameter import Parameter

_EVALUATION: Final = (
    Parameter("model_file", "string", "", "The .tflite model. Required."),
    Parameter(
        "output_file_path",
        "string",
        "",
        "Result file: *.json is ours, anything else the native tool's binary protobuf.",
    ),
    Parameter(
        "num_runs", "int32", 50, "Runs, each with inputs of its own; with files or pictures: as many as they hold."
    ),
    Parameter("warmup_runs", "int32", 1, "Runs of each configuration before those that count; --compat=native: 0."),
    Parameter("reference_model_file", "string", "", "Another model for the reference, such as the float one."),
    Parameter("signature", "string", "", "Run the function of this signature instead of the main one."),
    Parameter("max_failed_examples", "int32", -1, "Stop once more than this many runs have failed; -1: no limit."),
)
_INPUTS: Final = (
    Parameter("seed", "int32", 1, "Seed of the random inputs; 1 gives those of the native tool."),
    Parameter(
        "input_range",
        "string",
        "",
        "NAME:LOW:HIGH, values of an input, both reached by whole numbers. May be repeated.",
        repeatable=True,
    ),
    Parameter(
        "input_files",
        "string",
        "",
        "NAME=PATH or PATH: .npy, .npz, raw bytes, or a folder of those, instead of random numbers. May be repeated.",
        repeatable=True,
    ),
    Parameter("input_images", "string", "", "Folder of pictures for the input [1,height,width,3]."),
    Parameter(
        "normalization",
        "string",
        "auto",
        "Values of pictures: auto (model metadata, else native), native (-1..1), unit (0..1), none (0..255), imagenet, "
        'or "mean=M[,M,M];std=S[,S,S]".',
    ),
    Parameter("input_shape", "string", "", "NAME:1,224,224,3 for a dynamic shape. May be repeated.", repeatable=True),
)
_JUDGEMENT: Final = (
    Parameter(
        "noise_floor_runs",
        "int32",
        10,
        "Runs over which CPU variants, precisions and repeatability are measured; 0: none. --compat=native: 0.",
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
    ),
    Parameter(
        "min_snr_db", "string", "", "Smallest SNR in dB, for all or as OUTPUT=VALUE. Repeatable.", repeatable=True
    ),
)
_TWO_MACHINES: Final = (
    Parameter("save_outputs", "string", "", "New folder for inputs and outputs of all runs."),
    Parameter(
        "load_reference", "string", "", "Folder of --save_outputs, perhaps of another machine, as the reference."
    ),
    Parameter("allow_model_mismatch", "bool", False, "Accept --load_reference of another model file."),
)

OPTIONS: Final = {
    "evaluation": _EVALUATION,
    "inputs": _INPUTS,
    "judgement": _JUDGEMENT,
    "two machines": _TWO_MACHINES,
}
DESCRIPTION: Final = """\
How far a delegate's outputs are from the CPU's, for any model and without labels: differences per output beside a noise
floor, latency, a verdict with its reason.
stdout: the lines of the native tool. stderr: what ran, progress, tables, verdicts."""
