"""The pages about Python, from top to bottom: files are written, programs run, commands give the exit code shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evaltools.documents import toml_values
from tests.command import evaltools

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("python.md", "tasks.md", "locate.md", "results.md", "extend.md")
_OF_NATIVE_CODE = "INFO: Created TensorFlow Lite XNNPACK delegate for CPU."
pytestmark = pytest.mark.once


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "program_of_the_page.py"
    file.write_text(program)
    return subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=folder, timeout=300)


def install(content: str, folder: Path) -> None:
    """The entry points of a ``pyproject.toml``, as those of an installed package whose modules lie in the folder."""
    facts = folder / "mine-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    groups = toml_values(content)["project"]["entry-points"]
    lines = [f"[{group}]\n" + "\n".join(map(" = ".join, named.items())) for group, named in groups.items()]
    (facts / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("datasets", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_every_example_of_a_page_runs(page: str, folder: Path, request: pytest.FixtureRequest) -> None:
    program, text = "", (ROOT / "docs" / page).read_text()
    if '"my.so"' in text:
        (folder / "my.so").symlink_to(request.getfixturevalue("rounding_delegate"))
    for kind, name, content in re.findall(r"```(\w+)(?: (\S+))?\n(.*?)```", text, re.S):
        if kind == "python" and name:
            with (folder / name).open("a") as file:  # a file may stand in several pieces
                file.write(content)
        elif kind == "python":
            program += content
        elif kind == "sh":
            _run_commands(content, folder)
        elif kind == "toml" and "entry-points" in content:
            install(content, folder)
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
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(folder)}
    code = re.search(r"# exit code (\d+)", content)
    done = subprocess.run(f"set -e\n{content}", shell=True, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == (int(code[1]) if code else 0), done.stderr
