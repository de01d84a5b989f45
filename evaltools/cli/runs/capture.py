"""``evaltools capture``: what a run that goes on does now."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from evaltools.cli.shared.streams import complain
from evaltools.errors import UsageError
from evaltools.exit_codes import INTERRUPTED, NOT_WRITTEN, OK, USAGE, in_words
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags

DESCRIPTION: Final = """\
Asks the run in a folder, which another process carries out, for a trace of its work in the next seconds. Its figures
stay as they are. The file is for ui.perfetto.dev and chrome://tracing; --trace of the run itself writes all of it."""
_LONGEST_S: Final = 600.0
PARAMETERS: Final = (
    Parameter(
        "run_dir",
        "The folder of the run, its --run_dir. Required.",
        role="input_folder",
        required=True,
        positional=True,
    ),
    Parameter("secs", f"How long to look, in seconds, up to {_LONGEST_S:g}.", default=5.0),
    Parameter("output_file_path", "The trace.", default="trace.json", role="output_file", short="output"),
)
EXIT_CODES: Final = in_words(
    {
        OK: "the trace is written",
        USAGE: "a flag is wrong, or no run answers in the folder",
        NOT_WRITTEN: "",
        INTERRUPTED: "interrupted; nothing is written, and the run goes on",
    }
)


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    flags = parse_flags("capture RUN_DIR", DESCRIPTION, EXIT_CODES, {"flags": PARAMETERS}, arguments)
    if flags.missing:
        raise UsageError(f"missing: {' '.join(flags.missing)}. See evaltools capture --help")
    seconds, output = flags.real("secs"), Path(flags.text("output_file_path"))
    if not 0 < seconds <= _LONGEST_S:
        raise UsageError(f"--secs={seconds:g}: give a number of seconds above 0, up to {_LONGEST_S:g}")
    from evaltools.engine.trace import capture
    from evaltools.report.files.output_file import require_output_file, write_file

    require_output_file(output, "--output_file_path", [])
    write_file(output, capture(Path(flags.text("run_dir")), seconds))
    complain(f"{output}: open it at https://ui.perfetto.dev")
    return OK
