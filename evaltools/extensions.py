"""What other packages add to evaltools: entry points of ``evaltools.delegates``, ``.runtimes`` and ``.metrics``.

Each is one object; what it has to be stands where evaltools' own are listed. One that cannot be used costs itself
alone: it is left out, and ``evaltools doctor`` says why.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Generic, TypeVar

from evaltools.errors import UsageError

DELEGATES: Final = "evaltools.delegates"
RUNTIMES: Final = "evaltools.runtimes"
METRICS: Final = "evaltools.metrics"
Extension = TypeVar("Extension")


@dataclass(frozen=True)
class Installed(Generic[Extension]):
    """The extensions of a group by name, and for each that cannot be used a sentence that says why."""

    usable: dict[str, Extension]
    problems: tuple[str, ...]


def entries(group: str) -> list[EntryPoint]:
    """The entry points of a group; none of them is imported yet."""
    return sorted(entry_points(group=group), key=lambda entry: (entry.name, package_of(entry)))


def package_of(entry: EntryPoint) -> str:
    """The distribution that an entry point comes from."""
    return entry.dist.name if entry.dist else "an unknown package"


def installed(
    group: str, kind: type[Extension], check: Callable[[Extension, dict[str, Extension]], str] = lambda *_: ""
) -> Installed[Extension]:
    """Import all of a group; ``check`` says what is wrong with one beside those before it, empty for nothing."""
    usable: dict[str, Extension] = {}
    problems = []
    for entry in entries(group):
        try:
            found = load(entry, kind)
            wrong = check(found, usable)
            if wrong:
                raise _unusable(entry, wrong)
            usable[entry.name] = found
        except UsageError as error:
            problems.append(str(error))
    return Installed(usable, tuple(problems))


def load(entry: EntryPoint, kind: type[Extension]) -> Extension:
    """What an entry point names; raises :class:`UsageError` where it cannot be imported or is something else."""
    try:
        found: Any = entry.load()
    except (Exception, SystemExit) as error:
        reason = " ".join("".join(traceback.format_exception_only(type(error), error)).split())
        raise _unusable(entry, f"cannot be loaded: {reason}") from error
    if not isinstance(found, kind):
        raise _unusable(entry, f"is a {type(found).__name__} and no {kind.__name__}")
    return found


def _unusable(entry: EntryPoint, problem: str) -> UsageError:
    return UsageError(
        f"{entry.group}: {entry.name} ({entry.value}) of the package {package_of(entry)} {problem}; mend or update it, "
        f"or pip uninstall {package_of(entry)}"
    )
