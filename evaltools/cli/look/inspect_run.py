"""``evaltools inspect`` behind its flags: inspect, print, write."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Final

from evaltools.cli.shared.streams import say
from evaltools.cli.shared.terminal import text_for_stdout
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_WRITTEN, OK
from evaltools.report.files.output_file import require_writable, write_file
from evaltools.report.tables.inspection import print_inspection
from evaltools.request.flags import GivenFlags
from evaltools.result.json_file import encode_json
from evaltools.tasks.inspection.task import inspect_model

_FLAG: Final = "--output_file_path"


def inspect(flags: GivenFlags) -> int:
    """Inspect the model, print what was found to stdout, write the JSON file; returns the exit code."""
    model = Path(flags.text("model_file"))
    output = flags.path("output_file_path")
    if output is not None:
        _require_output(output, model)
    inspection = inspect_model(model, flags.is_on("run"))
    if output is not None:
        write_file(output, encode_json(inspection))
    return OK if say(text_for_stdout(partial(print_inspection, inspection))) else NOT_WRITTEN


def _require_output(output: Path, model: Path) -> None:
    if output.suffix.lower() != ".json":
        raise UsageError(f"{_FLAG}={output}: the findings are JSON; give a name that ends in .json")
    require_writable(output, _FLAG)
    if os.path.realpath(output) == os.path.realpath(model):
        raise UsageError(f"{_FLAG}={output} would overwrite the model; give another name")
