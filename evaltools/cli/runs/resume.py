"""``evaltools resume``: goes on with a run that was interrupted or killed, from the request in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from evaltools.cli.runs.run_folders import read_given, run_folder_parser

DESCRIPTION: Final = """\
Goes on with a run that was given --run_dir: examples that were finished are not run again, nor parts that were done on
devices, and the result is that of an uninterrupted run. It is refused where the model, the data, the flags or what runs
the model have changed since.
A search (evaltools locate) goes on with the parts that it has not run. Flags that change no figure, such as --workers
or --max_compiles, may be given anew."""


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    parser = run_folder_parser("resume RUN_DIR", DESCRIPTION, "those of the run that goes on")
    parser.add_argument("run_dir", metavar="RUN_DIR", type=Path, help="The folder of the run.")
    known, words = parser.parse_known_args(arguments)
    from evaltools.device.run.flags import BY_NAME
    from evaltools.runs.stored import changed, stored_request

    stored = stored_request(known.run_dir, BY_NAME, known.trust)
    request = changed(stored, read_given(stored, words), lambda parameter: parameter.may_differ)
    from evaltools.cli.runs.handed_over import carry_out

    return carry_out(request)
