"""Runs the command line in this process with sessions that are not there."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

from evaltools.configuration import Configuration
from evaltools.model import ModelFile
from evaltools.runtime import Session


@contextlib.contextmanager
def answered_by(open_with: Callable[[ModelFile, Configuration], Session]) -> Iterator[None]:
    """Sessions that are opened like this, in this process, in place of real ones."""

    def opened(model: ModelFile, configuration: Configuration, timeout_s: float, timeout_flag: str) -> Session:
        assert (timeout_s, timeout_flag) == (300, "--example_timeout"), "the default of --example_timeout"
        return open_with(model, configuration)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaltools.tasks.shared.run.open_isolated", opened)
        yield
