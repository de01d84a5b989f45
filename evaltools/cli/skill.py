"""``evaltools skill``: what a coding agent should know of evaltools, in Markdown."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from evaltools.cli.shared.streams import say
from evaltools.exit_codes import NOT_WRITTEN, OK
from evaltools.request.flags import parse_flags

DESCRIPTION: Final = """\
Prints SKILL.md, with which a coding agent can use evaltools: when to use which command, how to read a verdict, what to
do on each exit code, and examples that run anywhere. Write it where your agent looks for skills:
  evaltools skill > SKILL.md"""


def run(arguments: list[str]) -> int:
    """Print it; returns the exit code."""
    parse_flags("skill", DESCRIPTION, "", {}, arguments)
    return OK if say(skill_text().rstrip("\n")) else NOT_WRITTEN


def skill_text() -> str:
    """The file as it is installed."""
    return files("evaltools").joinpath("skill", "SKILL.md").read_text(encoding="utf-8")
