"""Every command that the docs show runs, gives the exit code shown, and prints the native lines shown."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from evaltools.benchmark import flags as benchmark_flags
from evaltools.commands.names import command_names
from evaltools.delegates import PARAMETERS
from evaltools.gates.gate_file import RunSource
from evaltools.result.result import Result
from evaltools.runs.gate_runs import Run, result_of
from tests.command import Completed, evaltools_here
from tests.test_parameters import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
SKILL = ROOT / "evaltools" / "skill" / "SKILL.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")), SKILL]
FURTHER_PAGES = (
    "CHANGELOG.md",
    "SECURITY.md",
    "benchmarks/README.md",
    "scripts/sample/README.md",
    "examples/ci/README.md",
    "examples/external_delegate/README.md",
)
LINKING_PAGES = [*PAGES, *(ROOT / name for name in FURTHER_PAGES)]


class Shown(NamedTuple):
    """A command of a page, its exit code, lines that its output must hold, and the device that it needs, if any."""

    page: str
    command: str
    code: int
    native_lines: list[str]
    needs: str


def shown_commands() -> list[Shown]:
    """The commands of all pages; one that several show is to print the lines of each."""
    found: dict[str, Shown] = {}
    for page in PAGES:
        for needs, block in re.findall(r"```console(?: (\w+))?\n(.*?)```", page.read_text(), re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                code = re.search(r"# exit code (\d+)", command)
                shown = Shown(page.name, command, int(code[1]) if code else 0, [], needs)
                lines = [line for line in output.splitlines() if line.startswith("INFO: ")]
                found.setdefault(command, shown).native_lines.extend(lines)
    return list(found.values())


@pytest.fixture(scope="module", autouse=True)
def the_same_run_of_gates_is_carried_out_once() -> Iterator[None]:
    """Several commands hold the same limits in the same runs, and say so in other words."""
    found: dict[tuple[RunSource, Path], Result] = {}

    def once(run: Run, output: Path) -> Result:
        asked = (run.source, run.folder.resolve())
        if asked not in found:
            found[asked] = result_of(run, output)
        return found[asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaltools.cli.judge.gate_run.result_of", once)
        yield


def name_of(shown: Shown) -> str:
    return f"{shown.page}: {shown.command[-40:]}"


@pytest.mark.once
@pytest.mark.parametrize("shown", [each for each in shown_commands() if not each.needs], ids=name_of)
def test_command_runs_as_shown(shown: Shown, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    require_as_shown(shown, tmp_path, request)


@pytest.mark.once
@pytest.mark.parametrize("shown", [each for each in shown_commands() if each.needs], ids=name_of)
def test_command_that_needs_more_runs_as_shown(shown: Shown, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A GPU, an emulated NPU, or ARM64."""
    if f"EVALTOOLS_EXPECT_{shown.needs.upper()}" not in os.environ:
        pytest.skip(f"this machine is not said to have what it needs: {shown.needs}")
    require_as_shown(shown, tmp_path, request)


def require_as_shown(shown: Shown, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    if "my.so" in shown.command:
        (tmp_path / "my.so").symlink_to(request.getfixturevalue("rounding_delegate"))
    done = run_shown(shown.command.replace("$SAMPLE/", "datasets/sample/"), tmp_path)
    assert done.code == shown.code, done.err
    printed = done.out.splitlines()
    assert [line for line in shown.native_lines if line not in printed] == []


def run_shown(command: str, folder: Path) -> Completed:
    """Commands, one or one after the other, run in this process, which takes half the time; what needs a shell, in one.

    Of several it is the end of the last that ran, as in a shell, and what all have printed.
    """
    if not re.search(r"[|&;<>$*`]|\\\n", command.replace(" && ", "")):
        out, err, code = "", "", 0
        for each in command.split(" && "):
            program, *words = shlex.split(each, comments=True)
            assert program == "evaltools"
            done = evaltools_here(*words, cwd=folder)
            out, err, code = out + done.out, err + done.err, done.code
            if code:
                break
        return Completed(code, out, err)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    completed = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return Completed(completed.returncode, completed.stdout, completed.stderr)


def anchors(text: str) -> list[str]:
    """The names that GitHub gives to the headings of a page; a repeated one gets a number."""
    found: list[str] = []
    seen: Counter[str] = Counter()
    for heading in re.findall(r"^#{1,6} +(.*?)[ #]*$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w -]", "", shown.lower()).replace(" ", "-")
        found.append(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


@pytest.mark.parametrize("page", LINKING_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    broken = []
    for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", page.read_text()):
        other = page.parent / target if target else page
        if not other.exists() or (anchor and anchor not in anchors(other.read_text())):
            broken.append(f"{target}#{anchor}" if anchor else target)
    assert broken == []


def test_files_that_the_page_about_the_tree_names_exist() -> None:
    named = re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9]+)+(?:\.[a-z]+)?)`", (ROOT / "docs" / "extend.md").read_text())
    assert named
    assert [name for name in named if not ((ROOT / name).exists() or (ROOT / "tests" / name).exists())] == []


def test_what_is_said_to_stand_in_a_file_is_there() -> None:
    said = re.findall(r"`(\w+)`,? \(?(?:in )?`([a-z_0-9/]+\.py)`", (ROOT / "docs" / "extend.md").read_text())
    assert said
    assert [(name, path) for name, path in said if "/" in path and name not in (ROOT / path).read_text()] == []


def test_one_version_is_that_of_the_package_the_citation_and_the_first_changes() -> None:
    package = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.M)
    changed = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert package is not None
    assert cited is not None
    assert changed is not None
    assert package[1] == cited[1] == changed[1]


def test_every_command_is_in_the_docs() -> None:
    text = "".join(page.read_text() for page in PAGES)
    for name in command_names():
        assert f"evaltools {name}" in text, name


def test_flags_in_the_docs_exist() -> None:
    known = {name for own in COMMANDS.values() for parameter in own for name in parameter.names}
    known |= {*PARAMETERS, *benchmark_flags.REFUSED, "help", "version", "flags"}
    foreign = {"platform", "dest", "nouse_gpu", "flag", "use", "use_"}
    foreign |= {"truths", "debug"}  # of the task in tasks.md, of every command
    foreign |= {"library", "strict"}  # of the script in a bundle, of twine
    foreign |= {"use_mine", "mine_precision"}  # of the delegate in extend.md
    for page in PAGES:
        for flag in re.findall(r"(?<![\w-])--([a-z][a-z0-9_]+)(?![\w-])", page.read_text()):
            assert flag in known | foreign, f"{page.name}: --{flag}"
