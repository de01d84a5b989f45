"""``evaltools capture``: what a run that goes on does now."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from evaltools.cli.shared.interrupts import interrupts_restored
from evaltools.cli.shared.streams import complain, say
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_WRITTEN, OK
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags
from evaltools.result.capture import LONGEST_S

DESCRIPTION: Final = """\
Looks for some seconds at the run in a folder, which another process carries out: examples per second, work by stage,
and processor, memory and threads of each of its processes. Its figures stay as they are.
stdout: what was found. A folder gets trace.json, for ui.perfetto.dev and chrome://tracing, and summary.json."""
PARAMETERS: Final = (
    Parameter(
        "run_dir",
        "The folder of the run, its --run_dir. Required.",
        role="input_folder",
        required=True,
        positional=True,
    ),
    Parameter("secs", f"How long to look, in seconds, up to {LONGEST_S:g}.", default=5.0),
    Parameter(
        "output_folder",
        "Folder for trace.json and summary.json, made if missing; files of these names are replaced.",
        default="capture",
        role="output_folder",
        short="output",
    ),
)
EXIT_CODES: Final = """\
exit codes:
  0    the run was looked at; what could not be seen is said
  2    a flag is wrong, or no run goes on in the folder
  5    a file, or stdout, could not be written
  130  interrupted; nothing is written, and the run goes on"""


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    flags = parse_flags("capture RUN_DIR", DESCRIPTION, EXIT_CODES, {"flags": PARAMETERS}, arguments)
    if flags.missing:
        raise UsageError(f"missing: {' '.join(flags.missing)}. See evaltools capture --help")
    seconds = flags.real("secs")
    if not 0 < seconds <= LONGEST_S:
        raise UsageError(f"--secs={seconds:g}: give a number of seconds above 0, up to {LONGEST_S:g}")
    return _capture(Path(flags.text("run_dir")), seconds, Path(flags.text("output_folder")))


def _capture(run_dir: Path, seconds: float, output: Path) -> int:
    from evaltools.capture.files import TRACE, make_folder, write_summary
    from evaltools.capture.run import capture_run
    from evaltools.capture.running import process_of_run
    from evaltools.engine.trace import whole_trace
    from evaltools.report.files.output_file import require_writable, write_file
    from evaltools.report.words.capture import run_in_words

    process_of_run(run_dir)
    with interrupts_restored():
        make_folder(output)
        require_writable(output / TRACE, "--output_folder")
        captured = capture_run(run_dir, seconds)
        write_file(output / TRACE, whole_trace(captured.events))
        write_summary(output, captured.found)
    is_written = say("\n".join(run_in_words(captured.found)))
    complain(f"{output / TRACE}: open it at https://ui.perfetto.dev")
    return OK if is_written else NOT_WRITTEN
