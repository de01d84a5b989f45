"""Configurations as Python writes them: by keywords, or as the text of flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evaltools.api.options import with_options
from evaltools.configuration import CONFIGURATION_NAMES, CONFIGURATION_PARAMETERS
from evaltools.configuration import Configuration as NamedConfiguration
from evaltools.errors import UsageError
from evaltools.parameter import did_you_mean, format_value

TEST_NAME = "test"
_EXPECTED = 'give such as tests={"gpu": evaltools.Configuration(use_gpu=True)}, or leave it out'
AnyPath = str | Path


class Configuration:
    """What a model runs with, by the names of flags; ``name`` is needed only where no mapping gives one.

    >>> Configuration(use_xnnpack=True, num_threads=2)
    Configuration(use_xnnpack=True, num_threads=2)
    """

    @with_options(CONFIGURATION_PARAMETERS, of_configuration=True)
    def __init__(self, *, name: str = "", **flags: bool | int | float | str | Path) -> None:
        self.name = name
        self.flags = dict(flags)
        self.named(name or TEST_NAME)

    def named(self, name: str, native: bool = False, kernels: str = "default") -> NamedConfiguration:
        """The configuration under a name; raises :class:`~evaltools.errors.UsageError` for flags that are wrong.

        ``native``: of ``compat="native"``. ``kernels`` are its own where it states none.

        >>> Configuration(use_xnnpack=True).named("fast").to_flags()
        ['--use_xnnpack=true']
        """
        flags = [(flag, _text(flag, value)) for flag, value in self.flags.items()]
        return NamedConfiguration.from_flags(name, flags, native, kernels)

    def __repr__(self) -> str:
        stated = {"name": self.name} if self.name else {}
        return f"Configuration({', '.join(f'{flag}={value!r}' for flag, value in (stated | self.flags).items())})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and (self.name, self.flags) == (other.name, other.flags)

    def __hash__(self) -> int:
        return hash((self.name, *self.flags.items()))


OneConfiguration = Configuration | str | Mapping[str, Any]
"""Keywords, the text of flags (``"use_gpu=true"``), or flags by name."""
Tests = OneConfiguration | Mapping[str, OneConfiguration] | Iterable[Configuration] | None


def _text(flag: str, value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, bool | int | float | str):
        return format_value(value)
    raise UsageError(f"{flag}={value!r}: expected True, False, a number, a text or a path")


def read_tests(tests: Tests, native: bool = False) -> tuple[NamedConfiguration, ...]:
    """The test configurations, ``native`` those of ``compat="native"``; raises :class:`~evaltools.errors.UsageError`.

    >>> [entry.name for entry in read_tests({"one": "num_threads=1", "two": Configuration(num_threads=2)})]
    ['one', 'two']
    """
    if tests is None:
        return (NamedConfiguration(TEST_NAME),)
    if isinstance(tests, Mapping) and not _is_flags(tests):
        if not tests:
            raise UsageError(f"tests is empty; {_EXPECTED}")
        return tuple(_named(str(name), entry, native) for name, entry in tests.items())
    if isinstance(tests, str | Configuration | Mapping):
        name = tests.name if isinstance(tests, Configuration) and tests.name else TEST_NAME
        return (_named(name, tests, native),)
    if not isinstance(tests, Iterable):
        raise UsageError(f"tests={tests!r}: {_EXPECTED}")
    found = []
    for entry in tests:
        if not isinstance(entry, Configuration) or not entry.name:
            raise UsageError(f"tests: {entry!r} has no name; give evaltools.Configuration(name=..., ...), or a mapping")
        found.append(entry.named(entry.name, native))
    if not found:
        raise UsageError(f"tests is empty; {_EXPECTED}")
    return tuple(found)


def read_reference(reference: OneConfiguration, native: bool, kernels: str) -> NamedConfiguration | None:
    """The reference that is stated, None for the text "none"; ``kernels`` are its own where it states none.

    >>> read_reference(Configuration(runtime="litert"), native=False, kernels="builtin").to_flags()
    ['--runtime=litert', '--kernels=builtin']
    """
    is_none = isinstance(reference, str) and reference.strip() == "none"
    return None if is_none else _named("reference", reference, native, kernels, within="")


def _is_flags(tests: Mapping[str, Any]) -> bool:
    """Whether a mapping is of flags to values, and not of names to configurations."""
    return bool(tests) and all(name in CONFIGURATION_NAMES for name in tests)


def _named(
    name: str, entry: Any, native: bool, kernels: str = "default", within: str = "tests: "
) -> NamedConfiguration:
    if isinstance(entry, Configuration):
        return entry.named(name, native, kernels)
    if isinstance(entry, str):
        return NamedConfiguration.from_text(name, entry, native, kernels)
    if isinstance(entry, Mapping):
        for flag in entry:
            if flag not in CONFIGURATION_NAMES:
                raise UsageError(f"{within}{name}: no flag {flag!r}.{did_you_mean(str(flag), CONFIGURATION_NAMES)}")
        return Configuration(**entry).named(name, native, kernels)
    raise UsageError(f"{within}{name}: expected evaltools.Configuration(...) or the text of flags, got {entry!r}")
