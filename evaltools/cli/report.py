"""``evaltools report``: one page about results, to be forwarded."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from evaltools.cli.shared.streams import complain
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_WRITTEN, OK, USAGE, in_words
from evaltools.parameter import Parameter
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.request.flags import parse_flags

DESCRIPTION: Final = """\
One page about results: the same or not, how sure, how fast, did it run, what to do next; then proof, accuracy,
numerics, layers, speed, what changed, limits, the command. One file, no network: it can be mailed, printed, put on a
server. The results are the words without dashes: what --output_file_path of an evaluation, of benchmark, of locate or
of gate wrote, or the folder of an evaluation's --run_dir. Several are compared.
A name that ends in .md gives the answers and tables in Markdown, for a pull request."""
PARAMETERS: Final = (
    Parameter(
        "result",
        "File with a result, or a run folder. Required; may be repeated.",
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
EXIT_CODES: Final = in_words({OK: "the page was written", USAGE: "a flag or a file is wrong", NOT_WRITTEN: ""})
_USAGE: Final = "report RESULT.json ... --output=FILE.html"


def run(arguments: list[str]) -> int:
    """Write a page about result files; returns the exit code."""
    flags = parse_flags(_USAGE, DESCRIPTION, EXIT_CODES, {"flags": PARAMETERS}, arguments)
    files = [Path(word) for word in flags.texts("result")]
    output, images = flags.path("output_file_path"), flags.path("images")
    if not files:
        raise UsageError(f"which result? Write evaltools {_USAGE}")
    if output is None:
        raise UsageError(f"missing: where to write the page. Write evaltools {_USAGE}")
    from evaltools.report.page.file import page_file, read_sources, require_page_file
    from evaltools.runs.folders import result_content

    require_page_file(output, "--output")
    require_output_file(output, "--output", files)
    if images is not None and not images.is_dir():
        raise UsageError(f"--images={images}: no such folder; give the one with the pictures, or leave it out")
    sources = read_sources(files, result_content)
    content = page_file(sources, output, images)
    write_file(output, content)
    complain(f"{output} written ({len(content) / 1e6:.2f} MB)")
    return OK
