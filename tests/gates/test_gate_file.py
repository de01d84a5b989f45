"""The file of gates: what is read from it. What is none is refused in ``tests/refusals/gates.txt``."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.errors import DataError, UsageError
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.evidence import IN_GATE, Allowed
from evaltools.gates.gate_file import Gate, RunSource, read_gate_file

GOOD = """\
[runs.mobilenet]
command = "evaltools imagenet --model_file=m.tflite --config 'fast: use_xnnpack=true'"

[runs.detector]
result = "results/detector.json"

[[gates]]
run = "mobilenet"
configuration = "fast"
limits = ["top1 >= 70 %", "top1 drop <= 0.5 points at 95 %"]

[[gates]]
task = "coco"
model = "*.tflite"
limits = ["mAP >= 30 %"]
allow_failed_examples = 3
"""


def written(folder: Path, text: str, name: str = "gates.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_runs_and_gates_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    file = read_gate_file(path)
    assert file.path == path
    assert file.runs == (
        RunSource("mobilenet", ("imagenet", "--model_file=m.tflite", "--config", "fast: use_xnnpack=true")),
        RunSource("detector", (), tmp_path / "results" / "detector.json"),
    )
    accuracy = (parse_criterion("top1 >= 70 %"), parse_criterion("top1 drop <= 0.5 points at 95 %"))
    assert file.gates == (
        Gate("mobilenet", "", "", "fast", accuracy, Allowed(any_load_by=IN_GATE)),
        Gate(
            "",
            "coco",
            "*.tflite",
            "*",
            (parse_criterion("mAP >= 30 %"),),
            Allowed(failed_examples=3, any_load_by=IN_GATE),
        ),
    )


def test_a_load_is_allowed_by_number(tmp_path: Path) -> None:
    gates = read_gate_file(written(tmp_path, GOOD + LOAD)).gates
    assert [gate.allowed.load for gate in gates] == [1.0, 1.0, 4.5]


def test_paths_are_those_of_the_files_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ci").mkdir()
    text = '[runs.a]\nresult = "../a.json"\n[runs.b]\nresult = "/b.json"\n[[gates]]\nlimits = ["top1 >= 70 %"]\n'
    written(tmp_path / "ci", text)
    first, second = read_gate_file(Path("ci/gates.toml")).runs
    assert (first.result, second.result) == (Path("ci/../a.json"), Path("/b.json"))


def test_a_result_may_be_of_any_task_of_ones_own(tmp_path: Path) -> None:
    text = '[runs.a]\nresult = "a.json"\n[[gates]]\ntask = "sure"\nlimits = ["certainty >= 0.7"]\n'
    (gate,) = read_gate_file(written(tmp_path, text)).gates
    assert (gate.task, [criterion.text for criterion in gate.criteria]) == ("sure", ["certainty >= 0.7"])


def test_pyproject_has_them_in_a_table_of_its_own(tmp_path: Path) -> None:
    text = """\
[project]
name = "mine"
[tool.ruff]
line-length = 100
[tool.evaltools.runs.a]
result = "a.json"
[[tool.evaltools.gates]]
limits = ["top1 >= 70 %"]
"""
    file = read_gate_file(written(tmp_path, text, "pyproject.toml"))
    assert file.runs == (RunSource("a", (), tmp_path / "a.json"),)
    assert [gate.criteria for gate in file.gates] == [(parse_criterion("top1 >= 70 %"),)]


LOAD = """
[[gates]]
run = "mobilenet"
limits = ["latency_ms <= 9"]
allow_load = 4.5
"""
SHARED = """\
[variables]
data = "--images=a --labels='b c.txt'"
models = "m"
[runs.all]
models = ["{models}/v1.tflite", "{models}/v2.tflite"]
command = "imagenet {data} --config='x: external_delegate_options={{a}}'"
[runs.old]
result = "{models}/old.json"
[[gates]]
run = "all"
limits = ["top1 >= 70 %"]
[[gates]]
run = "old"
limits = ["top1 >= 70 %"]
"""


def test_variables_and_several_models_write_the_commands(tmp_path: Path) -> None:
    file = read_gate_file(written(tmp_path, SHARED))
    words = ("imagenet", "--images=a", "--labels=b c.txt", "--config=x: external_delegate_options={a}")
    assert file.runs == (
        RunSource("all/v1", (*words, "m/v1.tflite"), model="m/v1.tflite"),
        RunSource("all/v2", (*words, "m/v2.tflite"), model="m/v2.tflite"),
        RunSource("old", (), tmp_path / "m" / "old.json"),
    )


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("all", ["all/v1", "all/v2"]), ("all/*", ["all/v1", "all/v2"]), ("all/v2", ["all/v2"]), ("al", [])],
)
def test_a_gate_for_a_run_is_for_all_its_models(pattern: str, names: list[str], tmp_path: Path) -> None:
    runs = read_gate_file(written(tmp_path, SHARED)).runs
    asked = gate(run=pattern)
    assert [run.name for run in runs if asked.may_be_about(run) and run.command] == names
    assert [run.name for run in runs if asked.is_about(run.name, "imagenet", "imagenet", "v1.tflite")] == names


@pytest.mark.parametrize(("command", "may"), [("suite m", True), ("benchmark m", True), ("imagenet m", False)])
def test_a_gate_may_name_a_part_of_what_gives_several_results(command: str, may: bool, tmp_path: Path) -> None:
    text = f"[runs.a]\ncommand = '{command}'\n[[gates]]\nrun = 'a/v1'\nlimits = ['latency_ms <= 5']\n"
    path = written(tmp_path, text)
    if may:
        assert read_gate_file(path).runs[0].name == "a"
    else:
        with pytest.raises(UsageError, match="gate 1: there is no run 'a/v1'; there are a"):
            read_gate_file(path)


GATE = '[[gates]]\nlimits = ["top1 >= 70 %"]\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[[gates]", "is not TOML: "),
        (b"\xff\xfe", "cannot be read: it is not a text in UTF-8: "),
        (b"a = " + b"[" * 100_000, "is n"),
    ],
)
def test_what_is_no_toml(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "gates.toml"
    path.write_bytes(content)
    with pytest.raises(DataError) as error:
        read_gate_file(path)
    assert str(error.value).startswith(f"{path} {message}")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="gates.toml cannot be read: No such file or directory"):
        read_gate_file(tmp_path / "gates.toml")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        read_gate_file(tmp_path)


@pytest.mark.parametrize("text", ["", "tool = 3", "[tool.ruff]\nx = 1", GATE])
def test_a_pyproject_without_the_table(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text, "pyproject.toml")
    with pytest.raises(UsageError, match="has no table tool.evaltools"):
        read_gate_file(path)


def test_a_pyproject_with_a_table_that_has_no_gates(tmp_path: Path) -> None:
    path = written(tmp_path, "[tool.evaltools]\n", "pyproject.toml")
    with pytest.raises(UsageError, match=r"has no gates; add \[\[tool.evaltools.gates\]\] with limits"):
        read_gate_file(path)
    path = written(tmp_path, "[tool]\nevaltools = 3\n", "pyproject.toml")
    with pytest.raises(UsageError, match="Expected `object`, got `int`"):
        read_gate_file(path)


def gate(run: str = "", task: str = "", model: str = "", configuration: str = "*") -> Gate:
    return Gate(run, task, model, configuration, (parse_criterion("top1 >= 70 %"),))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (gate(), True),
        (gate(run="night*", task="imagenet", model="*.tflite"), True),
        (gate(run="nightly [arm]"), True),
        (gate(run="Night*"), False),
        (gate(task="coco"), False),
        (gate(model="*.lite"), False),
        (gate(run="nightly [arm]", model="other"), False),
    ],
)
def test_a_gate_is_about_what_fits_all_its_patterns(made: Gate, expected: bool) -> None:
    assert made.is_about("nightly [arm]", "imagenet", "imagenet", "m.tflite") == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("*", True), ("", True), ("plain *", True), ("plain C++ [x]", True), ("plain C++ [[]x]", True), ("plain", False)],
)
def test_configurations_are_named_by_pattern_or_as_they_are(pattern: str, expected: bool) -> None:
    assert gate(configuration=pattern).names("plain C++ [x]") == expected


@pytest.mark.parametrize(("task", "is_known"), [("confidence", True), ("imagnet", False), ("two words", False)])
def test_without_runs_a_gate_may_be_about_any_task_of_ones_own(task: str, is_known: bool, tmp_path: Path) -> None:
    path = tmp_path / "gates.toml"
    path.write_text(f'[[gates]]\ntask = "{task}"\nlimits = ["probability >= 0.5"]\n')
    if is_known:
        assert read_gate_file(path).gates[0].is_about("r", "own", task, "m.tflite")
    else:
        with pytest.raises(UsageError, match="there is no task"):
            read_gate_file(path)
