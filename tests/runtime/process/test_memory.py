"""The memory that a session's process takes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.model import ModelFile, read_model
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.process.restarting import RestartingSession
from tests import tiny_models


@pytest.fixture
def additions(tmp_path: Path) -> ModelFile:
    (tmp_path / "add.tflite").write_bytes(tiny_models.add_chain())
    return read_model(tmp_path / "add.tflite")


@pytest.mark.skipif(sys.platform == "win32", reason="not known on Windows")
def test_it_is_that_of_the_process_of_the_session(additions: ModelFile) -> None:
    configuration = Configuration.from_text("x", "")
    session = open_isolated(additions, configuration)
    again = RestartingSession(session, lambda: open_isolated(additions, configuration))
    again.run([np.zeros(spec.shape, spec.dtype) for spec in session.inputs])
    running = again.peak_memory_kb
    assert 5_000 < running < 2_000_000
    again.close()
    assert again.peak_memory_kb == running, "it is remembered"
