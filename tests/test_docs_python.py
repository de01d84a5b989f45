"""The pages about Python, from top to bottom: files are written, programs run, commands give the exit code shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import evaltools

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("python.md", "tasks.md", "locate.md", "results.md")
_OF_NATIVE_CODE = "INFO: Created TensorFlow Lite XNNPACK delegate for CPU."
pytestmark = pytest.mark.once


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "program_of_the_page.py"
    file.write_text(program)
    return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=folder, timeout=300)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_every_example_of_a_page_runs(page: str, folder: Path) -> None:
    program = ""
    for kind, name, content in re.findall(r"```(\w+)(?: (\S+))?\n(.*?)```", (ROOT / "docs" / page).read_text(), re.S):
        if kind == "python" and name:
            (folder / name).write_text(content)
        elif kind == "python":
            program += content
        elif kind == "sh":
            _run_commands(content, folder)
        elif kind == "toml" and "[[gates]]" in content:
            (folder / "gates.toml").write_text(content)
            judged = evaltools("gate", "result.json", cwd=folder)
            assert judged.code == 0, judged.out + judged.err
    done = run(program, folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert [line for line in done.stderr.splitlines() if not line.startswith(_OF_NATIVE_CODE)] == []


def _run_commands(content: str, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    code = re.search(r"# exit code (\d+)", content)
    done = subprocess.run(
        content, shell=True, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == (int(code[1]) if code else 0), done.stderr
