"""Fixtures for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.example_delegate import CompilerMissing, build_rounding_delegate

pytest_plugins = "pytester"


@pytest.fixture(scope="session")
def rounding_delegate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example external delegate, compiled."""
    try:
        return build_rounding_delegate(tmp_path_factory.mktemp("rounding_delegate"))
    except CompilerMissing as error:
        pytest.skip(str(error))
