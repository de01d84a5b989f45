"""What docs/pytest.md and examples/ci show runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.command import evaltools_here
from tests.pytest_plugin.test_junit import properties, read_cases

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "pytest.md").read_text()
EXAMPLE = ROOT / "examples" / "ci"


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


@pytest.mark.once
def test_the_example_for_ci_passes_and_reports(tmp_path: Path) -> None:
    completed = run([str(EXAMPLE / "check.sh"), "report.xml"], tmp_path)
    assert completed.returncode == 0, completed.stdout
    assert "9 passed, 1 skipped" in completed.stdout
    drop = read_cases(tmp_path / "report.xml")["classifier/xnnpack: top1 drop <= 0.02 at 95 %"]
    assert properties(drop)["classifier/xnnpack.verdict"] == "pass"


@pytest.mark.once
def test_the_example_hands_further_arguments_to_pytest(tmp_path: Path) -> None:
    more = ["--evaltools-strict", "--collect-only", "-q", "-k", "drop"]
    completed = run([str(EXAMPLE / "check.sh"), str(tmp_path / "report.xml"), *more], tmp_path)
    assert completed.returncode == 0, completed.stdout
    assert completed.stdout.count("top1 drop <= 0.02") == 2
    assert "agreement" not in completed.stdout
    assert (tmp_path / "report.xml").exists()


def test_the_workflow_runs_what_the_readme_shows() -> None:
    workflow = yaml.safe_load((EXAMPLE / "accuracy.yml").read_text())
    commands = [step["run"] for step in workflow["jobs"]["gates"]["steps"] if "run" in step]
    [shown] = re.findall(r"^```sh\n(.*?)^```", (EXAMPLE / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    assert commands == [line.replace("examples/ci", "PYTHON=python examples/ci") for line in shown.splitlines()]


def test_the_summary_of_the_workflow_is_written(tmp_path: Path) -> None:
    workflow = yaml.safe_load((EXAMPLE / "accuracy.yml").read_text())
    [words] = [
        shlex.split(step["run"])
        for step in workflow["jobs"]["summary"]["steps"]
        if step.get("run", "").startswith("evaltools gate ")
    ]
    arguments = [word.replace("examples/ci", str(EXAMPLE)) for word in words[1:]]
    completed = evaltools_here(*arguments, cwd=tmp_path)
    assert completed.code == 3, completed.err
    assert (tmp_path / "gates.md").read_text().startswith("### evaltools gate: 1 not measured, 7 passed")
    badge = json.loads((tmp_path / "badge.json").read_text())
    assert (badge["message"], badge["color"]) == ("1 not measured, 7 passed", "orange")
