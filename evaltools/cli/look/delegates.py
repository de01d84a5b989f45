"""``evaltools delegates``: which delegates there are, and where each one runs."""

from __future__ import annotations

from typing import Final

from evaltools.cli.shared.streams import say
from evaltools.delegates import DELEGATES, Delegate
from evaltools.exit_codes import NOT_WRITTEN, OK
from evaltools.parameter import Parameter
from evaltools.request.flags import parse_flags

DESCRIPTION: Final = "Delegates, their flags, and where each one runs."
PARAMETERS: Final = (Parameter("flags", "List every flag with type, default and meaning.", default=False),)


def run(arguments: list[str]) -> int:
    """Print the list, or with ``--flags`` the whole reference."""
    given = parse_flags("delegates", DESCRIPTION, "", {"flags": PARAMETERS}, arguments)
    if given.is_on("flags"):
        from evaltools.cli.look.reference import reference_page

        text = reference_page().rstrip()
    else:
        text = "\n".join(_line(entry) for entry in DELEGATES) + "\nevaltools doctor tries those of Python here"
    return OK if say(text) else NOT_WRITTEN


def _line(delegate: Delegate) -> str:
    """Name, switch, where it runs, and the Python runtimes that are installed here and can create it."""
    from evaltools.runtime.registry import installed_runtimes

    installed = [name for name in installed_runtimes() if name in delegate.runtimes]
    here = f"--runtime={', '.join(installed)}" if installed else "not from Python here"
    return f"{delegate.name:<16} --{delegate.enabled_by:<30} {here:<44} {delegate.works_in}"
