"""What ``evaltools gate`` tells GitHub Actions: errors at the lines of limits, a summary, the output of the step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from evaltools.cli.judge.github import line_of_limit
from evaltools.gates.gate_file import read_gate_file
from tests.cli.evaluate.sample_runs import imagenet
from tests.command import Completed, evaltools_here

GATES = """\
# limits = ["top1 >= 99 %"]
[[gates]]
limits = ["top1  >=  50 %",
  'top1 >= 99 %',
  "top1 drop <= 0.1 points at 95 %"]
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("measured") / "nightly.json"
    done = evaltools_here(*imagenet("--config=fast, 50 %: use_xnnpack=true", f"--output={output}", pictures=20))
    assert done.code == 0, done.err
    return output


def gate(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> Completed:
    """In a checkout with the gates in a folder of it."""
    (folder / "ci").mkdir(exist_ok=True)
    (folder / "ci" / "gates.toml").write_text(GATES)
    settings = {"ACTIONS": "true", "WORKSPACE": folder, "STEP_SUMMARY": folder / "summary", "OUTPUT": folder / "output"}
    for name, value in settings.items():
        monkeypatch.setenv(f"GITHUB_{name}", str(value))
    return evaltools_here("gate", "--gates=gates.toml", *words, cwd=folder / "ci")


def errors(done: Completed) -> list[tuple[str, Mapping[str, str], str]]:
    """The level, properties and message of each line for GitHub."""
    found = re.findall(r"^::(\w+) (.*?)::(.*)$", done.err, re.MULTILINE)
    return [(level, dict(part.split("=", 1) for part in stated.split(",")), text) for level, stated, text in found]


def test_limits_that_are_not_kept_are_errors_where_they_stand(
    result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = gate(tmp_path, monkeypatch, str(result))
    assert done.code == 1
    [broken, left_open] = errors(done)
    assert (broken[0], broken[1]["file"], broken[1]["line"]) == ("error", "ci/gates.toml", "4")
    assert broken[2].startswith("nightly, fast, 50 %25, top1 >= 99 %25: found top1 ")
    assert (left_open[0], left_open[1]["line"]) == ("error", "5")


def test_what_is_left_open_may_be_a_warning(result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = gate(tmp_path, monkeypatch, str(result), "--allow_inconclusive")
    assert [level for level, _, _ in errors(done)] == ["error", "warning"]


def test_the_summary_is_appended_and_the_step_has_the_verdict(
    result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "summary").write_text("before\n")
    gate(tmp_path, monkeypatch, str(result), "--markdown=gate.md")
    assert (tmp_path / "summary").read_text() == "before\n" + (tmp_path / "ci" / "gate.md").read_text()
    assert (tmp_path / "output").read_text() == "verdict=fail\n"


def test_a_command_that_judges_nothing_is_an_error_and_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = gate(tmp_path, monkeypatch, "missing.json")
    assert done.code == 2
    [(level, _, text)] = errors(done)
    assert level == "error"
    assert "missing.json" in text
    assert (tmp_path / "output").read_text() == "verdict=not measured\n"


def test_a_summary_that_cannot_be_written_is_told(
    result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "summary").mkdir()
    assert gate(tmp_path, monkeypatch, str(result)).code == 5


@pytest.mark.parametrize(
    ("run", "configuration", "limit", "expected"),
    [
        ("a", "gpu", "top1 >= 50 %", 7),
        ("b", "gpu", "top1 >= 50 %", 10),
        ("b", "npu", "top1 >= 50 %", None),
        ("b", "gpu", "no worse than before", 3),
    ],
)
def test_equal_limits_are_distinguished_by_what_they_are_about(
    run: str, configuration: str, limit: str, expected: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "gates.toml"
    path.write_text(
        '[runs.a]\nresult = "a.json"\n[runs."b"]\nresult = "b.json"\n[[gates]]\nrun = "a"\nlimits = ["top1 >= 50 %"]\n'
        '[[gates]]\nrun = "b"\nlimits = ["top1 >= 50 %"]\nconfiguration = "gpu"\n'
    )
    found = line_of_limit(path.read_text(), read_gate_file(path).gates, limit, run, configuration, "m.tflite")
    assert found == expected
