"""What docs/gates.md shows of pytest runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "gates.md").read_text().partition("\n## How does a limit become a test?\n")[2]


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": sys.executable, "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    return tmp_path


@pytest.mark.once
def test_commands_and_tests_of_the_page_run_as_shown(project: Path) -> None:
    """The tests with the last of the commands."""
    [tests] = blocks("python")
    commands = [line.partition("#") for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) == 3
    for command, _, remark in commands:
        program, *words = shlex.split(command)
        assert program == "pytest"
        if "-n" in words:
            (project / "test_own.py").write_text(tests)
            words = ["--strict-markers", *words]
        completed = run([sys.executable, "-m", "pytest", *words], project)
        assert f" exit code {completed.returncode}" == remark, completed.stdout
        if len(words) == 2:
            assert "1 failed, 5 passed" in completed.stdout
        if "-n" in words:
            assert "7 passed, 1 xfailed" in completed.stdout, completed.stdout
