"""``evaltools delegates``: which delegates there are, and where each one runs."""

from __future__ import annotations

import sys
from typing import Final

from evaltools.cli.shared.streams import tell
from evaltools.delegates import DELEGATES, Delegate
from evaltools.exit_codes import NOT_WRITTEN, OK
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags
from evaltools.text import columns_of

DESCRIPTION: Final = "Delegates, their flags, and where each one runs."
PARAMETERS: Final = (Parameter("flags", "List every flag with type, default and meaning.", default=False),)


def run(arguments: list[str]) -> int:
    """Print the list, or with ``--flags`` the whole reference."""
    given = parse_flags("delegates", DESCRIPTION, "", {"flags": PARAMETERS}, arguments)
    if given.is_on("flags"):
        from evaltools.cli.look.reference import reference_page

        text = reference_page().rstrip()
    else:
        columns = columns_of(sys.stdout)
        lines = [_line(entry) for entry in DELEGATES]
        if columns is not None and columns < max(map(len, lines)):
            lines = [line for entry in DELEGATES for line in _narrow_lines(entry)]
        text = "\n".join([*lines, "evaltools doctor tries those of Python here"])
    return OK if tell(text) else NOT_WRITTEN


def _line(delegate: Delegate) -> str:
    """A delegate's name, switch, installed Python runtimes that can create it, and where it runs."""
    return f"{delegate.name:<16} --{delegate.enabled_by:<30} {_here(delegate):<44} {delegate.works_in}"


def _narrow_lines(delegate: Delegate) -> list[str]:
    """The same facts, each on a line of its own."""
    return [f"{delegate.name:<16} --{delegate.enabled_by}", f"    {_here(delegate)}", f"    {delegate.works_in}"]


def _here(delegate: Delegate) -> str:
    from evaltools.runtime.registry import installed_runtimes

    installed = [name for name in installed_runtimes() if name in delegate.runtimes]
    return f"--runtime={', '.join(installed)}" if installed else "not from Python here"
