"""Runs the command line in this process, with real sessions or with ones that are not there."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator

import pytest

from evaltools.cli import coco_run
from evaltools.cli.main import main
from evaltools.configuration import Configuration
from evaltools.model import ModelFile
from evaltools.runtime import Session
from tests.command import Completed


def run_here(*arguments: str) -> Completed:
    """Exit code and what was printed; an error that is no message is raised."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return Completed(code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def answered_by(open_with: Callable[[ModelFile, Configuration], Session]) -> Iterator[None]:
    """Sessions that are opened like this, in this process, in place of real ones."""

    def opened(model: ModelFile, configuration: Configuration, timeout_s: float) -> Session:
        assert timeout_s == 300, "the default of --example_timeout"
        return open_with(model, configuration)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coco_run, "open_isolated", opened)
        yield
