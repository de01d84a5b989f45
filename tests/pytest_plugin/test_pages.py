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
    [gates] = blocks("toml")
    (tmp_path / "gates.toml").write_text(gates)
    return tmp_path


@pytest.mark.once
def test_commands_tests_and_settings_of_the_page_run_as_shown(project: Path) -> None:
    """Those of the tests and settings with the last of the commands."""
    [tests], [settings] = blocks("python"), blocks("ini")
    commands = [line.partition("#") for block in blocks("sh") for line in block.splitlines()]
    assert len(commands) == 3
    for command, _, remark in commands:
        program, *words = shlex.split(command)
        assert program == "pytest"
        if "-n" in words:
            (project / "test_own.py").write_text(tests)
            (project / "pytest.ini").write_text(settings)
            words = ["--strict-markers", *words]
        completed = run([sys.executable, "-m", "pytest", *words], project)
        assert f" exit code {completed.returncode}" == remark, completed.stdout
        if len(words) == 2:
            [shown] = [block for block in blocks("") if "inconclusive" in block]
            assert "2 passed" not in shown
            assert "1 failed, 2 passed, 1 skipped" in completed.stdout
            assert shown.partition("  result")[0] in completed.stdout
        if "-n" in words:
            assert "5 passed, 1 skipped, 1 xfailed" in completed.stdout, completed.stdout
