"""The command of a search for the operator: its options, and the request that its flags make."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from evaltools.command import Command
from evaltools.configuration import CONFIGURATION_PARAMETERS, OWN_PARAMETERS, Configuration
from evaltools.delegates import COMMON, COMPILED, DELEGATES, LITERT
from evaltools.errors import UsageError
from evaltools.known_tasks import GIVEN_TO_A_SEARCH
from evaltools.parameter import Parameter
from evaltools.request import Options, Request
from evaltools.request.flags import GivenFlags, read_tests
from evaltools.tasks.framework.common_options import CANDIDATES, EXECUTION, MODEL_FILE
from evaltools.tasks.inference_diff.options import OF_INPUTS, SIGNATURE

if TYPE_CHECKING:
    from evaltools.result.result import Result

REFERENCE: Final = "kernels=builtin num_threads=1"
_NOTHING_TO_FIND: Final = (
    "identical",
    "unchanged",
    "equivalent",
    "better",
    "not compared",
    "not measured",
    "not judged",
)
_AT: Final = "Search at another place on this computer: arm64, or arm64:CORE; see evaltools diff --help=all."
_TAKEN_OVER: Final = ("model_file", *GIVEN_TO_A_SEARCH, "example_timeout")
_SHARED: Final = {parameter.name: parameter for parameter in EXECUTION}
_SEARCH: Final = (
    replace(MODEL_FILE, help="The .tflite model; it may also stand without a flag, as MODEL.tflite. Required."),
    SIGNATURE,
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
    replace(_SHARED["at"], repeatable=False, only_with=(), help=_AT),
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
    "inputs": OF_INPUTS,
    "files and execution": _FILES,
    "configurations": (*_CONFIGURATION, *OWN_PARAMETERS),
    **{f"delegate {delegate.name}": delegate.parameters for delegate in DELEGATES},
    "delegates, common": COMMON,
}
COMMAND: Final = Command("locate", "locate", lambda: GROUPS)


def request_of_flags(flags: GivenFlags, command: Sequence[str], folder: Path | None = None) -> Request:
    """What a command line asks for; raises :class:`UsageError` for flags that are wrong."""
    folder = folder or Path.cwd()
    if not flags.text("model_file"):
        raise UsageError("missing: --model_file, the model; give it, as in evaltools locate MODEL.tflite --use_gpu")
    tests = read_tests(flags, native=False, folder=folder)
    if len(tests) > 1:
        names = ", ".join(configuration.name for configuration in tests)
        raise UsageError(f"one configuration at a time is looked into, but there are {len(tests)}: {names}")
    options = flags.options(leave_out=("config", "configs", *CONFIGURATION_PARAMETERS))
    return search_request(options, tests[0], folder, tuple(command))


def search_request(options: Options, tested: Configuration, folder: Path, command: tuple[str, ...] = ()) -> Request:
    """The request for a search that looks into one configuration.

    The reference is of the same version of the runtime's package, for one process runs both.
    """
    reference = Configuration.from_text("reference", REFERENCE)
    if tested.runtime_version:
        runtime = LITERT if tested.runtime == COMPILED else tested.runtime
        reference = replace(reference, runtime=runtime, runtime_version=tested.runtime_version)
    return Request(COMMAND.name, options, reference, (tested,), folder, None, command)


def searches_after(request: Request, result: Result) -> dict[str, Request]:
    """The searches that a result calls for, by configuration: those that are not equivalent to the reference.

    They have the model and the inputs of the evaluation, and the flags of that configuration.
    """
    differing = [
        entry.name
        for entry in result.rows
        if entry.role == "test" and entry.verdict is not None and entry.verdict.kind not in _NOTHING_TO_FIND
    ]
    tests = {configuration.name: configuration for configuration in request.tests}
    return {name: _search(request, tests[name]) for name in differing if name in tests}


def _search(request: Request, tested: Configuration) -> Request:
    stated = {name: value for name, value in request.options.stated.items() if name in _TAKEN_OVER}
    if len(places := request.options.texts("at")) == 1:
        stated["at"] = places[0]
    return search_request(Options(stated, COMMAND.parameters), tested, request.folder, request.command)
