"""``evaltools gate``: holds results against the limits of a file, for CI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.cli.judge.flags import FILES
from evaltools.errors import UsageError
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags

DESCRIPTION: Final = """\
Holds results against the limits in a file of gates, and says of each limit whether it is kept, broken, or not decided
by so few examples. The results are the words before or between the flags; without any they are those of the file's
[runs.NAME]: a result file is read, a command is run, so take the file from those alone whose programs you would run.
docs/gates.md says which limits there are.
stdout: the verdicts."""
PARAMETERS: Final = (
    Parameter(
        "gates",
        "The file of gates. Without it gates.toml here, else tool.evaltools in pyproject.toml.",
        role="input_file",
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
EXIT_CODES: Final = """\
exit codes, of several the one that stands first:
  2  a flag, the file of gates, a result or a command is wrong
  5  the verdicts or the results could not be written
  3  something was not measured, so nothing was shown of it; a command that gives no result is that, too
  1  a limit is broken
  6  too few examples to tell whether a limit is kept (no reason with --allow_inconclusive=true)
  4  every limit is kept, but a process that ran a configuration crashed or hung
  0  every limit is kept"""
_USAGE: Final = "gate [RESULT.json ...]"
_BOOLEANS: Final = ("true", "false", "1", "0")


def run(arguments: list[str]) -> int:
    """Run the command; returns the exit code."""
    results, words = split_results(arguments)
    flags = parse_flags(_USAGE, DESCRIPTION, EXIT_CODES, {"flags": PARAMETERS}, words)
    limits = next((result for result in results if result.endswith(".toml")), None)
    if limits is not None:
        raise UsageError(f"{limits} is no result, which is a .json file; a file of limits is given as --gates={limits}")
    from evaltools.cli.judge.gate_run import gate

    return gate(flags, results)


def split_results(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that are result files, and the flags, each with its value in one word.

    >>> split_results(["a.json", "--gates", "g.toml", "b.json", "--allow-inconclusive", "--", "--c.json"])
    (['a.json', 'b.json', '--c.json'], ['--gates=g.toml', '--allow-inconclusive'])
    """
    types = {parameter.name: parameter.type for parameter in PARAMETERS}
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
