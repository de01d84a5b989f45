"""The options of a suite."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from evaltools.parameter import Parameter
from evaltools.tasks.shared.options import CANDIDATES, EXECUTION, MARGIN

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
    Parameter(
        "workers",
        "Runs at a time. With more than one, times are given for benchmark jobs only, which then run one by one, after "
        "the others.",
        default=1,
        about="execution",
    ),
    _SHARED["progress"],
)
_COMPARED: Final = "call .against(earlier) of the result"
_RESULT: Final = (
    Parameter(
        "against",
        "The JSON result of an earlier suite: says what is worse since, slower, or not measured any more; then the "
        "exit code is only about that, as that of evaltools gate --against.",
        role="input_file",
        about="result",
        in_python=_COMPARED,
    ),
    replace(MARGIN, only_with=("against",), in_python=_COMPARED),
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
PARAMETERS: Final = {parameter.name: parameter for group in GROUPS.values() for parameter in group}
