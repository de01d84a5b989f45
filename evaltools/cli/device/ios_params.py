"""``evaltools device ios-params``: the file of flags for TensorFlow's benchmark app on iPhones and iPads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.command import GROUPS, request_of_flags
from evaltools.cli.shared.streams import complain
from evaltools.exit_codes import OK
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags

DESCRIPTION: Final = """\
Writes benchmark_params.json for TensorFlow's benchmark app for iOS, which has no command line: one model with one
configuration, in the flags of evaltools benchmark; those that the app does not know are refused by name. It starts
nothing and needs no phone.
What the app prints is read by evaltools convert ios-log."""
OUTPUT: Final = Parameter(
    "output_file_path",
    "The file to write; the app looks for the name benchmark_params.json.",
    default="benchmark_params.json",
    role="output_file",
    about="result",
    short="output",
)
EXIT_CODES: Final = """\
exit codes:
  0  the file is written
  2  a flag is wrong, or one that the app does not know
  5  the file could not be written"""


def run(arguments: list[str]) -> int:
    """Write the file; returns the exit code."""
    benchmark_flags.refuse_native_flags(arguments)
    from evaltools.benchmark.ios import ios_params
    from evaltools.model import read_model

    groups = {title: _without_output(group) for title, group in GROUPS.items()}
    given = parse_flags(
        "device ios-params MODEL.tflite", DESCRIPTION, EXIT_CODES, {"the file": (OUTPUT,), **groups}, arguments
    )
    request = request_of_flags(given, ["evaltools", "device", "ios-params", *arguments])
    params, model = ios_params(request), Path(request.options.texts("graph")[0])
    read_model(model)
    from evaltools.report.files.output_file import require_output_file, write_file

    output = Path(given.text("output_file_path"))
    require_output_file(output, "--output_file_path", [model])
    write_file(output, json.dumps(params, indent=2).encode() + b"\n")
    complain(
        f"{output}: {len(params)} flags. Put it and {params['graph']} into benchmark_data of the app's project, and "
        "the model into Copy Bundle Resources; run it in Xcode, press its button, keep the console's text as FILE\n"
        f"next: evaltools convert ios-log FILE --graph={model} --output=result.json"
    )
    return OK


def _without_output(group: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    return tuple(parameter for parameter in group if parameter.name != OUTPUT.name)
