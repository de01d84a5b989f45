"""The options of a search."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from evaltools.configuration import OWN_PARAMETERS
from evaltools.delegates import COMMON, DELEGATES
from evaltools.parameter import Parameter
from evaltools.tasks.inference_diff.options import OPTIONS as DIFF
from evaltools.tasks.shared.options import CANDIDATES, EXECUTION, MODEL_FILE

_SHARED: Final = {parameter.name: parameter for parameter in EXECUTION}
_SIGNATURE: Final = next(parameter for parameter in DIFF["evaluation"] if parameter.name == "signature")
_SEARCH: Final = (
    replace(MODEL_FILE, help="The .tflite model; it may also stand without a flag, as MODEL.tflite. Required."),
    _SIGNATURE,
    Parameter(
        "operators",
        "Look only at these: FIRST-LAST by number, or TENSOR:TENSOR, from the operator that reads the first to the "
        "one that makes the second.",
    ),
    Parameter(
        "reference_model_file",
        "Another model of the same graph (float, another converter): its tensors are matched by name and compared in "
        "real numbers, layer by layer; says which layers of a quantised model to keep in float.",
        role="input_file",
        only_with=("reference_tensors=",),
    ),
    Parameter(
        "reference_tensors",
        "The same with tensors by name in an .npz file, saved from PyTorch or Keras; inputs by their names in it, else "
        "--input_files.",
        role="input_file",
        only_with=("reference_model_file=", "bundle="),
    ),
    Parameter("num_inputs", "Different inputs; 5, or as many as are given.", default=5, given_counts=True),
    Parameter("num_runs", "Runs of each part at least, for faults that come now and then.", default=60),
    Parameter("part_secs", "Seconds after which the runs of a part end, once each input was run.", default=2.0),
    Parameter(
        "delegate_precision",
        "The precision in which the delegate computes floats; auto: what the flags state, else what each operator's "
        "values show.",
        default="auto",
        choices=("auto", "fp32", "fp16", "bf16"),
    ),
    Parameter(
        "max_compiles",
        "Stop after so many compiles, with what is known by then; 0: no limit.",
        default=0,
        about="execution",
    ),
    Parameter(
        "max_secs",
        "Stop after so many seconds, with what is known by then; 0: no limit.",
        default=0.0,
        about="execution",
    ),
)
_FILES: Final = (
    Parameter(
        "bundle",
        "New folder for a reproduction: smallest model that fails, inputs, a script that needs only the runtime, a "
        "README for an issue. Of two models: a copy with the best layer in float.",
        role="output_folder",
        about="result",
    ),
    Parameter(
        "output_file_path",
        "JSON file with everything that was found.",
        role="output_file",
        about="result",
        short="output",
    ),
    replace(
        _SHARED["run_dir"],
        help="Folder for what was measured: the same command, or evaltools resume, goes on where it ended.",
    ),
    replace(_SHARED["report"], help="One page to forward: FILE.html, or FILE.md for its first screen."),
    _SHARED["example_timeout"],
    _SHARED["progress"],
    _SHARED["quiet"],
)
_CONFIGURATION: Final = (
    replace(CANDIDATES[0], help='The configuration with a name, "NAME: flag=value flag=value".'),
    replace(CANDIDATES[1], help="YAML file that maps the configuration's name to flags."),
)
GROUPS: Final = {
    "search": _SEARCH,
    "inputs": tuple(DIFF["inputs"]),
    "files and execution": _FILES,
    "configurations": (*_CONFIGURATION, *OWN_PARAMETERS),
    **{f"delegate {delegate.name}": delegate.parameters for delegate in DELEGATES},
    "delegates, common": COMMON,
}
PARAMETERS: Final = {parameter.name: parameter for group in GROUPS.values() for parameter in group}
