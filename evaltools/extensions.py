"""Entry points of other packages, in the groups ``evaltools.delegates``, ``.runtimes``, ``.metrics`` and ``.tasks``.

Each is one object; the modules that list evaltools' own objects say what it must have. One that cannot be used is left
out, and does not disturb the others; ``evaltools doctor`` says why.
"""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

from evaltools.errors import UsageError

DELEGATES: Final = "evaltools.delegates"
RUNTIMES: Final = "evaltools.runtimes"
METRICS: Final = "evaltools.metrics"
TASKS: Final = "evaltools.tasks"
_IMPORTLIB: Final = str(Path(importlib.__file__).parent)
_STATED_AS: Final = "Version:"
Extension = TypeVar("Extension")


class Installed(Struct, Generic[Extension], frozen=True):
    """The extensions of a group by name, and for each that cannot be used a sentence that says why."""

    usable: dict[str, Extension]
    problems: tuple[str, ...]


def entries(group: str) -> list[EntryPoint]:
    """The entry points of a group; none of them is imported yet."""
    found = _entries_on(tuple(sys.path)).get(group, ())
    return sorted(found, key=lambda entry: (entry.name, package_of(entry)))


@cache
def _entries_on(_search_path: tuple[str, ...]) -> dict[str, tuple[EntryPoint, ...]]:
    """Those of each group on a search path, kept, because a file of every installed package is read to find them."""
    found = entry_points()
    return {group: tuple(found.select(group=group)) for group in found.groups}


def package_of(entry: EntryPoint) -> str:
    """The distribution that an entry point comes from."""
    return entry.dist.name if entry.dist else "an unknown package"


def package_version(package: str) -> str:
    """The version of an installed package, empty where there is none.

    :func:`importlib.metadata.version` reads all that a package states of itself, its description too.

    >>> package_version("msgspec") > "0", package_version("no such package")
    (True, '')
    """
    try:
        found = distribution(package)
    except PackageNotFoundError:
        return ""
    stated = found.read_text("METADATA") or found.read_text("PKG-INFO") or ""
    lines = (line.removeprefix(_STATED_AS).strip() for line in stated.splitlines() if line.startswith(_STATED_AS))
    return next(lines, "")


def installed(
    group: str, kind: type[Extension], check: Callable[[Extension, dict[str, Extension]], str] = lambda *_: ""
) -> Installed[Extension]:
    """Import all entry points of a group.

    ``check`` returns what is wrong with one, given those before it; empty for nothing.
    """
    usable: dict[str, Extension] = {}
    problems = []
    for entry in entries(group):
        try:
            found = load(entry, kind)
            wrong = check(found, usable)
            if wrong:
                raise unusable(entry, wrong)
            usable[entry.name] = found
        except UsageError as error:
            problems.append(str(error))
    return Installed(usable, tuple(problems))


def load(entry: EntryPoint, kind: type[Extension]) -> Extension:
    """The object that an entry point names.

    Raises :class:`UsageError` where it cannot be imported or has another type.
    """
    found = imported(entry)
    if not isinstance(found, kind):
        raise unusable(entry, f"is a {type(found).__name__} and no {kind.__name__}")
    return found


def imported(entry: EntryPoint) -> Any:
    """The object that an entry point names, of any type; raises :class:`UsageError` where it cannot be imported."""
    try:
        return entry.load()
    except (Exception, SystemExit) as error:
        raise unusable(entry, f"cannot be loaded: {reason_and_place(error)}") from error


def named(address: str) -> Any:
    """The object at ``MODULE:NAME``, or the module itself.

    >>> named("evaltools.extensions:named").__name__, named("evaltools.extensions").__name__
    ('named', 'evaltools.extensions')
    """
    module, _, name = address.partition(":")
    found = importlib.import_module(module)
    return getattr(found, name) if name else found


def reason_and_place(error: BaseException) -> str:
    """An exception in words, with the place in the code of a package where it was raised, if it was there."""
    reason = " ".join("".join(traceback.format_exception_only(type(error), error)).split())
    files = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    theirs = [frame for frame in files if not frame.filename.startswith(("<", _IMPORTLIB))]
    return f"{reason} ({theirs[-1].filename}, line {theirs[-1].lineno})" if theirs else reason


def unusable(entry: EntryPoint, problem: str) -> UsageError:
    """A message on an entry point that cannot be used: what is wrong, where it comes from, and the next step."""
    return UsageError(
        f"{entry.group}: {entry.name} ({entry.value}) of the package {package_of(entry)} {problem}; mend or update it, "
        f"or pip uninstall {package_of(entry)}"
    )
