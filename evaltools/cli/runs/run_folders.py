"""What the commands about run folders have in common."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from evaltools.errors import UsageError
from evaltools.exit_codes import EXIT_CODE_HELP
from evaltools.request import Options, Request
from evaltools.request.flags import parse_flags


def run_folder_parser(usage: str, description: str, exit_codes: str) -> argparse.ArgumentParser:
    """A parser for a command about run folders, ``COMMAND RUN_DIR... [--flag=value ...]``."""
    parser = argparse.ArgumentParser(
        prog=f"evaltools {usage.split()[0]}",
        usage=f"evaltools {usage} [--flag=value ...]",
        description=description,
        epilog=f"exit codes: {exit_codes}\n{EXIT_CODE_HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="Do what the maker of the folder wrote, even where that was not you on this computer.",
    )
    return parser


def read_given(request: Request, words: Sequence[str]) -> Options:
    """The flags that are given in addition to those of ``request``; raises :class:`UsageError` for unknown ones."""
    bare = next((word for word in words if not word.startswith("--")), None)
    if bare is not None:
        raise UsageError(f"{bare!r}: give flags as --name=value")
    known = [*request.options.parameters.values()]
    if request.devices is not None:
        known += request.devices.parameters.values()
    return parse_flags("resume", "", "", {"flags": known}, words).options()
