"""``evaltools gate``: compares results with the limits of a file, for CI."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.errors import EvaltoolsError, UsageError
from evaltools.exit_codes import INCONCLUSIVE, LIMIT_BROKEN, NOT_MEASURED, NOT_WRITTEN, OK, USAGE, in_words
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags
from evaltools.tasks.framework.common_options import MARGIN

DESCRIPTION: Final = """\
Compares results with limits, and says of each whether it is kept, broken, not decided by so few examples, or not
measured. The results are the words before or between the flags; without any they are those of the [runs.NAME] in the
file of gates: a result file is read, a command is run, so take the file only from people whose programs you would run.
With --against=OLD.json a result is compared with an earlier one: what was set up in another way, and whether anything
became worse. docs/gates.md says which limits there are.
stdout: the verdicts."""
FILES: Final = (
    Parameter("junit", "JUnit XML file with a test case for each verdict.", role="output_file", about="result"),
    Parameter(
        "markdown", "Markdown file with the verdicts, for the summary of a CI job.", role="output_file", about="result"
    ),
    Parameter(
        "badge",
        "JSON file for an endpoint badge: how many failed and passed, in a colour.",
        role="output_file",
        about="result",
    ),
    Parameter(
        "report",
        "One page with the verdicts and the results behind them: FILE.html, or FILE.md for its first screen.",
        role="output_file",
        about="result",
    ),
    Parameter("output_file_path", "JSON file with the verdicts.", role="output_file", about="result", short="output"),
    Parameter("json", "The same as --output_file_path.", role="output_file", about="result"),
)
"""The files in which verdicts are written."""
PARAMETERS: Final = (
    Parameter(
        "gates",
        "The file of gates. Without it, and without --limit and --against, gates.toml here, else tool.evaltools in "
        "pyproject.toml.",
        role="input_file",
    ),
    Parameter(
        "limit",
        "A limit on the results given, such as 'top1 >= 70 %', 'top1 drop <= 0.5 points at 95 %' (against the "
        "reference of the same run), or 'top1 drop vs old <= 0.5 points' (against --against). May be repeated.",
        repeatable=True,
    ),
    Parameter(
        "against",
        "An earlier result of the same command, or a folder of --keep_results: nothing may have become worse.",
        role="input_file",
    ),
    Parameter(
        "allow_other_examples",
        "The earlier result may be of other examples, labels or preprocessing; then two samples are compared.",
        default=False,
        only_with=("against",),
    ),
    replace(MARGIN, only_with=("against",)),
    Parameter(
        "allow_any_load",
        "Times that --limit and --against are about count whatever else ran, also where nobody knows what did.",
        default=False,
    ),
    *FILES,
    Parameter(
        "keep_results",
        "Folder for the results of the runs, FOLDER/NAME.json; it is made where there is none.",
        role="output_folder",
        about="result",
    ),
    Parameter("allow_inconclusive", "Limits that too few examples leave open do not count as an error.", default=False),
)
EXIT_CODES: Final = in_words(
    {
        USAGE: "a flag, the file of gates, a result or a command is wrong",
        NOT_WRITTEN: "the verdicts or the results could not be written",
        NOT_MEASURED: "something was not measured, so nothing was shown of it: a command that gives no result, a "
        "result that its own command would end with 3 or 4 for, a shard, other examples than --against",
        LIMIT_BROKEN: "a limit is broken, or something became worse than in --against",
        INCONCLUSIVE: "too few examples to decide whether a limit is kept (no reason with --allow_inconclusive=true)",
        OK: "every limit is kept",
    }
)
_USAGE: Final = "gate [RESULT.json ...]"
_BOOLEANS: Final = ("true", "false", "1", "0")


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    results, words = split_results(arguments)
    try:
        return _judged(results, words)
    except (EvaltoolsError, KeyboardInterrupt) as error:
        _write_failure(str(error) or "interrupted", words, results)
        raise


def _judged(results: list[str], words: list[str]) -> int:
    flags = parse_flags(_USAGE, DESCRIPTION, EXIT_CODES, {"flags": PARAMETERS}, words)
    limits = next((result for result in results if result.endswith(".toml")), None)
    if limits is not None:
        raise UsageError(
            f"{limits} is not a result, which is a .json file; a file of limits is given as --gates={limits}"
        )
    from evaltools.cli.judge.gate_run import gate

    return gate(flags, results)


def _write_failure(why: str, words: Sequence[str], results: Sequence[str]) -> None:
    """Write the files that are stated whatever is wrong, so that those of an earlier run do not stay.

    A file that is there is written only where it holds verdicts: it may be one that the run reads.
    """
    from evaltools.cli.judge.verdict_files import holds_verdicts, planned_files, write_failure

    names = {f"--{name}": parameter.name for parameter in FILES for name in parameter.names}
    split = [word.partition("=") for word in words]
    stated = {names[flag]: value for name, _, value in split if (flag := _plain(name)) in names}
    files = {name: path for name, text in stated.items() if holds_verdicts(path := Path(text))}
    with suppress(UsageError):
        flags = parse_flags(_USAGE, "", "", {"flags": FILES}, [f"--{name}={text}" for name, text in stated.items()])
        planned = planned_files(flags, list(map(Path, results)))
        files |= {name: path for name, path in planned.items() if not path.exists()}
    write_failure(why, files)


def _plain(flag: str) -> str:
    """A flag as it is declared: ``--output_file_path`` for ``--output-file-path``."""
    return flag.replace("-", "_").replace("__", "--", 1)


def split_results(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that are result files, and the flags, each with its value in one word.

    >>> split_results(["a.json", "--gates", "g.toml", "b.json", "--allow-inconclusive", "--", "--c.json"])
    (['a.json', 'b.json', '--c.json'], ['--gates=g.toml', '--allow-inconclusive'])
    """
    types = {name: parameter.type for parameter in PARAMETERS for name in parameter.names}
    results: list[str] = []
    flags: list[str] = []
    left = list(arguments)
    while left:
        word = left.pop(0)
        if word == "--":
            return results + left, flags
        if not word.startswith("-"):
            results.append(word)
            continue
        kind = types.get(word.removeprefix("--").replace("-", "_"))
        value_follows = bool(left) and (left[0] in _BOOLEANS if kind == "bool" else kind is not None)
        flags.append(f"{word}={left.pop(0)}" if value_follows else word)
    return results, flags
