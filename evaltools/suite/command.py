"""The command of a suite: its options, and the request that its flags make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.command import Command
from evaltools.configuration import Configuration
from evaltools.errors import UsageError
from evaltools.parameter import Parameter
from evaltools.request import Options, Request
from evaltools.request.flags import GivenFlags, configurations_of_files_and_texts
from evaltools.tasks.framework.common_options import CANDIDATES, EXECUTION

_SHARED: Final = {parameter.name: parameter for parameter in EXECUTION}
_MODELS: Final = (
    Parameter(
        "model_paths",
        "A folder, with all .tflite files below it; a model; or a file suite.toml (docs/results.md). May be repeated. "
        "Required.",
        repeatable=True,
        role="input_file",
        required=True,
        positional=True,
        in_python="give models",
    ),
    *CANDIDATES[:2],
    Parameter(
        "job",
        'What is done with each model, "NAME: command" without model and configurations, as in "fast: benchmark '
        '--num_runs=20"; without one "diff: diff". May be repeated.',
        repeatable=True,
        in_python="give jobs=",
    ),
    Parameter(
        "job_folder",
        "Folder from which paths in --job are meant; this one unless stated.",
        role="input_folder",
        in_python="paths in jobs are meant from this folder",
    ),
)
_EXECUTION: Final = (
    replace(
        _SHARED["run_dir"],
        help="Folder for the runs: the same command, or evaltools resume, goes on where it ended.",
    ),
    _SHARED["progress"],
)
_RESULT: Final = (
    Parameter(
        "output_file_path",
        "JSON file with the result of the suite.",
        role="output_file",
        about="result",
        short="output",
        in_python="call .save() of the result",
    ),
    Parameter("csv", "CSV file with a row for each configuration of each model.", role="output_file", about="result"),
    Parameter("junit", "JUnit XML file with a test case for each of them.", role="output_file", about="result"),
    replace(_SHARED["report"], help="One page to forward: FILE.html, or FILE.md for its first screen."),
)
GROUPS: Final = {"suite": _MODELS, "execution": _EXECUTION, "result": _RESULT}
COMMAND: Final = Command("suite", "suite", lambda: GROUPS)


def request_of_flags(flags: GivenFlags, command: Sequence[str] = ()) -> Request:
    """What flags ask for; raises :class:`UsageError` for those that are wrong."""
    options = flags.options(leave_out=("config", "configs"))
    return request_of_options(options, configurations_of_files_and_texts(flags), command)


def request_of_options(options: Options, tests: Sequence[Configuration], command: Sequence[str] = ()) -> Request:
    """The request with these options and configurations; raises :class:`UsageError` where no model is named."""
    if not any(options.texts("model_paths")):
        raise UsageError(
            "which models? Give a folder, models, or a file suite.toml, as in evaltools suite models/ "
            "--config='xnnpack: use_xnnpack=true'"
        )
    if "job" in options and "job_folder" not in options:
        options = options.stating({"job_folder": "."})
    return Request(COMMAND.name, options, None, tuple(tests), command=tuple(command))
