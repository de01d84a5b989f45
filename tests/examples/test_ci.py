"""The action of this repository, and what examples/ci has to be copied."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command import evaltools_here

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "ci"
MODEL = "datasets/sample/models/float32.tflite"
ACTION: Any = yaml.safe_load((ROOT / "action.yml").read_text())


def step(name: str) -> Any:
    [found] = [each for each in ACTION["runs"]["steps"] if each.get("id") == name]
    return found


def test_every_input_of_the_action_is_used_and_every_output_given() -> None:
    text = (ROOT / "action.yml").read_text()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    ids = {each.get("id") for each in ACTION["runs"]["steps"]}
    assert {re.findall(r"steps\.(\w+)\.", output["value"])[0] for output in ACTION["outputs"].values()} <= ids
    assert ACTION["outputs"]["verdict"]["value"].endswith(" || 'not measured' }}"), "also where the step was killed"
    assert all("${{" not in each.get("run", "") for each in ACTION["runs"]["steps"])


def test_actions_of_others_are_pinned_by_commit() -> None:
    files = [ROOT / "action.yml", EXAMPLE / "github.yml", *(ROOT / ".github" / "workflows").glob("*.yml")]
    used = {name for file in files for name in re.findall(r"uses: (\S+)", file.read_text())}
    assert "./" in used
    assert all(re.search(r"@[0-9a-f]{40}$", name) for name in used - {"./"}), used


def test_extras_that_are_installed_by_default_exist() -> None:
    assert f"\n{ACTION['inputs']['extras']['default']} = [" in (ROOT / "pyproject.toml").read_text()


@pytest.mark.once
@pytest.mark.parametrize(
    ("given", "code", "verdict"),
    [
        (
            {"MODEL": MODEL, "CONFIG": "fast: use_xnnpack=true", "LIMITS": "max_error <= 1e-3\nsnr_db >= 60\n"},
            0,
            "pass",
        ),
        ({"MODEL": MODEL, "CONFIG": "phone: use_nnapi=true", "LIMITS": "max_error <= 1"}, 3, "not measured"),
        ({"GATES": "datasets/sample/gates.toml", "REPORT": "page.html"}, 6, "inconclusive"),
        ({"MODEL": "missing.tflite", "LIMITS": "max_error <= 1"}, 2, "not measured"),
    ],
)
def test_the_step_of_the_action_gives_the_verdict(
    given: dict[str, str], code: int, verdict: str, tmp_path: Path
) -> None:
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    output = tmp_path / "output"
    own = {name: given.get(name, "") for name in step("gate")["env"]}
    github = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", step("gate")["run"]],
        env={**os.environ, **own, **github, "PATH": path, "RUNNER_TEMP": str(tmp_path)},
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    written = dict(line.split("=", 1) for line in (output.read_text() if output.exists() else "").splitlines())
    assert written.get("verdict", "") == verdict
    assert written.get("report", "") == given.get("REPORT", "")
    assert (tmp_path / "page.html").exists() == ("REPORT" in given)


@pytest.mark.once
def test_the_limits_to_copy_are_kept_by_the_commands_to_copy(tmp_path: Path) -> None:
    [job] = yaml.safe_load((EXAMPLE / "gitlab.yml").read_text()).values()
    [hooks] = yaml.safe_load((EXAMPLE / "pre-commit.yml").read_text())["repos"]
    of_gitlab = next(command for command in job["script"] if command.startswith("evaltools "))
    of_hook = hooks["hooks"][0]["entry"]
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    words = shlex.split(of_gitlab)
    assert words[:3] == shlex.split(of_hook)
    completed = evaltools_here(*words[1:], cwd=tmp_path)
    assert completed.code == 0, completed.err
    written = [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]
    assert [name for name in written if not (tmp_path / name).exists()] == []


def test_the_workflow_to_copy_gives_inputs_and_reads_outputs_of_the_action() -> None:
    text = (EXAMPLE / "github.yml").read_text()
    [job] = yaml.safe_load(text)["jobs"].values()
    [used] = [each for each in job["steps"] if each.get("uses") == "./"]
    assert set(used["with"]) <= set(ACTION["inputs"])
    assert (ROOT / used["with"]["gates"]).is_file()
    assert set(re.findall(rf"steps\.{used['id']}\.outputs\.(\w+)", text)) <= set(ACTION["outputs"])
