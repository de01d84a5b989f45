"""``evaltools delegates``: which delegates there are, and where each one runs."""

from __future__ import annotations

from typing import Final

from evaltools.cli.exit_codes import NOT_WRITTEN, OK
from evaltools.cli.flags import parse_flags
from evaltools.cli.streams import say
from evaltools.delegates import DELEGATES
from evaltools.parameter import Parameter

DESCRIPTION: Final = "Delegates, their flags, and where each one runs."
PARAMETERS: Final = (Parameter("flags", "bool", False, "List every flag with type, default and meaning."),)


def run(arguments: list[str]) -> int:
    """Print the list, or with ``--flags`` the whole reference."""
    given = parse_flags("delegates", DESCRIPTION, "", {"flags": PARAMETERS}, arguments)
    if given.is_on("flags"):
        from evaltools.cli.reference import reference_page

        text = reference_page().rstrip()
    else:
        text = "\n".join(f"{entry.name:<16} --{entry.enabled_by:<30} {entry.works_in}" for entry in DELEGATES)
    return OK if say(text) else NOT_WRITTEN
