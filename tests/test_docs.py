"""Every command that the docs show runs, gives the exit code shown, and prints the native lines shown."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from evaltools.cli.main import COMMANDS
from evaltools.delegates import PARAMETERS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


class Shown(NamedTuple):
    """A command of a page, its exit code, and lines that its output must hold."""

    page: str
    command: str
    code: int
    native_lines: list[str]


def shown_commands() -> list[Shown]:
    found = []
    for page in PAGES:
        for block in re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                code = re.search(r"# exit code (\d+)", command)
                lines = [line for line in output.splitlines() if line.startswith("INFO: ")]
                found.append(Shown(page.name, command, int(code[1]) if code else 0, lines))
    return found


@pytest.mark.parametrize("shown", shown_commands(), ids=lambda shown: f"{shown.page}: {shown.command[-40:]}")
def test_command_runs_as_shown(shown: Shown, tmp_path: Path) -> None:
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    completed = subprocess.run(
        shown.command,
        shell=True,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert completed.returncode == shown.code, completed.stderr
    printed = completed.stdout.splitlines()
    assert [line for line in shown.native_lines if line not in printed] == []


def test_the_docs_show_commands() -> None:
    assert len(shown_commands()) >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_command_is_in_the_docs() -> None:
    text = "".join(page.read_text() for page in PAGES)
    for name in COMMANDS:
        assert f"evaltools {name}" in text, name


def test_flags_in_the_docs_exist() -> None:
    from evaltools.cli import demo, imagenet, inference_diff

    groups = [*imagenet.GROUPS.values(), *inference_diff.GROUPS.values()]
    known = {parameter.name for group in groups for parameter in group} | set(PARAMETERS)
    known |= {parameter.name for parameter in demo.PARAMETERS} | {"help", "version", "flags"}
    for page in PAGES:
        for flag in re.findall(r"(?<![\w-])--([a-z][a-z0-9_]+)", page.read_text()):
            assert flag in known or flag in ("nouse_gpu", "flag", "use", "use_"), f"{page.name}: --{flag}"
