"""Configurations of a result that were measured at several places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from evaltools.result.evaluation import ConfigurationResult


class Compared(Protocol):
    """One configuration held against another."""

    @property
    def baseline(self) -> str:
        """The one that it is held against."""

    @property
    def other(self) -> str:
        """The one that is held against it."""


Comparing = TypeVar("Comparing", bound=Compared)


def reference_of(
    configuration: ConfigurationResult, configurations: Sequence[ConfigurationResult]
) -> ConfigurationResult | None:
    """The reference that a configuration is held against: that of its own place, else the first one."""
    references = [entry for entry in configurations if entry.role == "reference"]
    own = [entry for entry in references if entry.place == configuration.place]
    return next(iter(own + references), None)


def against_reference(
    comparisons: Sequence[Comparing], configuration: ConfigurationResult, configurations: Sequence[ConfigurationResult]
) -> Comparing | None:
    """The comparison of a configuration with a reference, None where there is none."""
    references = {entry.name for entry in configurations if entry.role == "reference"}
    found = (entry for entry in comparisons if entry.other == configuration.name and entry.baseline in references)
    return next(found, None)
