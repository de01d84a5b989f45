"""One evaluation for all tests that only compare limits with a result."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command import evaltools_here
from tests.pytest_plugin.projects import sample_command


@pytest.fixture(scope="session")
def sample_result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """XNNPACK, NNAPI, which cannot exist here, and a library that is not a delegate; Top-1 is 0.95 on 20 pictures."""
    folder = tmp_path_factory.mktemp("sample_result")
    broken = folder / "broken.so"
    broken.write_text("no library")
    output = folder / "result.json"
    words = sample_command(
        "xnnpack: use_xnnpack=true", "nnapi: use_nnapi=true", f"broken: external_delegate_path={broken}"
    )
    completed = evaltools_here(*words, f"--output_file_path={output}")
    assert completed.code == 3, completed.err
    assert "Top-1 Accuracy: 0.95" in completed.out
    return output
