"""What the commands about run folders have in common."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from evaltools.errors import UsageError
from evaltools.exit_codes import EXIT_CODE_HELP
from evaltools.parameter import Parameter
from evaltools.request import Options, Request
from evaltools.request.flags import parse_flags

TRUST: Final = Parameter(
    "trust",
    "Load the code and write the files that the folder names, even where you did not begin its run on this computer.",
    default=False,
)


class RunFolderWords(NamedTuple):
    """The words of a command about run folders; ``others`` are the flags that its request may have."""

    folders: list[Path]
    trusted: bool
    others: list[str]


def read_words(
    usage: str, description: str, exit_codes: str, run_dir: Parameter, arguments: Sequence[str]
) -> RunFolderWords:
    """Read ``RUN_DIR... [--trust] [--flag=value ...]``; raises :class:`UsageError` where no folder is given."""
    known = (run_dir, TRUST)
    own = [word for word in arguments if not word.startswith("--") or _is_one_of(word, known)]
    epilog = f"exit codes: {exit_codes}\n{EXIT_CODE_HELP}"
    flags = parse_flags(usage, description, epilog, {"flags": known}, own)
    folders = list(map(Path, flags.texts(run_dir.name)))
    command = usage.split()[0]
    if not folders:
        raise UsageError(f"missing: the run folder. Give evaltools {usage}; see evaltools {command} --help")
    if len(folders) > 1 and not run_dir.repeatable:
        raise UsageError(f"'{folders[1]}': give one folder, and flags as --name=value")
    return RunFolderWords(folders, flags.is_on("trust"), [word for word in arguments if word not in own])


def _is_one_of(word: str, parameters: Sequence[Parameter]) -> bool:
    name = word.removeprefix("--").partition("=")[0].replace("-", "_")
    return name == "help" or any(name in (each.name, f"no{each.name}") for each in parameters)


def read_given(request: Request, words: Sequence[str]) -> Options:
    """The flags that are given in addition to those of ``request``; raises :class:`UsageError` for unknown ones."""
    known = [*request.options.parameters.values()]
    if request.devices is not None:
        known += request.devices.parameters.values()
    return parse_flags("resume", "", "", {"flags": known}, words, is_whole=False).options()
