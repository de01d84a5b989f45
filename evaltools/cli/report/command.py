"""``evaltools report``: one page about results, to be forwarded."""

from __future__ import annotations

from typing import Final

from evaltools.errors import UsageError
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags

DESCRIPTION: Final = """\
One page about results: the same or not, how sure, how fast, did it run, what to do next; then proof, accuracy,
numerics, layers, speed, what changed, limits, the command. One file, no network: it can be mailed, printed, put on a
server. The results are the words without dashes: what --output_file_path of an evaluation, of benchmark, of locate or
of gate wrote, and baselines. Several are compared; baselines are told over time.
A name that ends in .md gives the answers and tables in Markdown, for a pull request."""
PARAMETERS: Final = (
    Parameter(
        "result",
        "File with a result, or a baseline. Required; may be repeated.",
        repeatable=True,
        role="input_file",
        positional=True,
    ),
    Parameter(
        "output_file_path",
        "The page: FILE.html, or FILE.md for the first screen in Markdown.",
        role="output_file",
        about="result",
        short="output",
    ),
    Parameter("images", "Folder with the pictures, where they no longer lie where the run read them."),
)
EXIT_CODES: Final = """\
exit codes:
  0  the page was written
  2  a flag or a file is wrong
  5  the page could not be written"""
_USAGE: Final = "report RESULT.json ... --output=FILE.html"


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    flags = parse_flags(_USAGE, DESCRIPTION, EXIT_CODES, {"flags": PARAMETERS}, arguments)
    results = flags.texts("result")
    output = flags.path("output_file_path")
    if not results:
        raise UsageError(f"which result? Write evaltools {_USAGE}")
    if output is None:
        raise UsageError(f"missing: where to write the page. Write evaltools {_USAGE}")
    from evaltools.cli.report.run import report

    return report(results, output, flags.path("images"))
