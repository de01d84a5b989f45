"""``evaltools inspect``: what is in a model, of which kind it is, which delegates fit, and what they take of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from evaltools.cli.shared.outputs import planned_outputs
from evaltools.cli.shared.streams import say
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_WRITTEN, OK
from evaltools.parameter import Parameter
from evaltools.report.files.output_file import write_file
from evaltools.request.flags import parse_flags
from evaltools.tasks.shared.options import MODEL_FILE

DESCRIPTION: Final = """\
What is in a model, which kind of quantisation it has, which delegates are made for that kind, what XNNPACK and the GPU
take of it here, and what is known to go wrong on GPUs and in fp16. Every claim says what it rests on.
The model is given as the first word or as --model_file. stdout: the findings."""
PARAMETERS: Final = (
    MODEL_FILE,
    Parameter("run", "Open the model with XNNPACK and the GPU, to see what they take of it.", default=True),
    Parameter(
        "output_file_path",
        "JSON file with everything that was found.",
        role="output_file",
        about="result",
        short="output",
    ),
)
EXIT_CODES: Final = """\
exit codes:
  0  the model was inspected; a delegate that could not be tried is named as such
  2  a flag or the model is wrong
  5  the findings could not be written"""


def run(arguments: list[str]) -> int:
    """Inspect the model, print what was found to stdout, write the JSON file; returns the exit code."""
    flags = parse_flags("inspect", DESCRIPTION, EXIT_CODES, {"flags": PARAMETERS}, arguments).options()
    if not flags.text("model_file"):
        raise UsageError("missing: the model. Give evaltools inspect MODEL.tflite; see evaltools inspect --help")
    from evaltools.cli.shared.terminal import text_for_stdout
    from evaltools.report.tables.inspection import print_inspection
    from evaltools.result.json_file import encode_json
    from evaltools.tasks.inspection.task import inspect_model

    model = Path(flags.text("model_file"))
    files = planned_outputs(flags, ["output_file_path"], [model], "the findings are")
    inspection = inspect_model(model, flags.is_on("run"))
    for path in files.values():
        write_file(path, encode_json(inspection))
    return OK if say(text_for_stdout(partial(print_inspection, inspection))) else NOT_WRITTEN
