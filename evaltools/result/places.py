"""Configurations of a result that were measured at several places."""

from __future__ import annotations

from collections.abc import Sequence

from evaltools.result.evaluation import ConfigurationResult


def reference_of(
    configuration: ConfigurationResult, configurations: Sequence[ConfigurationResult]
) -> ConfigurationResult | None:
    """The reference that a configuration is held against: that of its own place, else the first one."""
    references = [entry for entry in configurations if entry.role == "reference"]
    own = [entry for entry in references if entry.place == configuration.place]
    return next(iter(own + references), None)
