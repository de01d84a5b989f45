"""``evaltools gate`` as a user types it: real results compared with limits, the files it writes, what it refuses."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from junitparser import Error, Failure, JUnitXml

from evaltools.cli.judge.gate import split_results
from evaltools.commands.gates import problems, read_run
from evaltools.datasets import sample
from evaltools.gates.gate_file import GateFile, RunSource
from tests.cli.evaluate.sample_runs import imagenet
from tests.command import Completed, evaltools_here
from tests.limits import limits_in, worst_in

PICTURES = 20
FAST = "fast | <b>x</b>"


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result of 20 pictures: XNNPACK, which is right as often as the reference, and NNAPI, which is not there."""
    output = tmp_path_factory.mktemp("measured") / "nightly.json"
    configurations = [f"--config={FAST}: use_xnnpack=true", "--config=phone: use_nnapi=true"]
    completed = evaltools_here(*imagenet(*configurations, f"--output_file_path={output}", pictures=PICTURES))
    assert completed.code == 3, completed.err
    return output


@pytest.fixture
def folder(measured: Path, tmp_path: Path) -> Path:
    """A folder of one's own with the result in it."""
    shutil.copy(measured, tmp_path)
    return tmp_path


def write_gates(
    folder: Path, *limits: str, configuration: str = "fast*", more: str = "", name: str = "gates.toml"
) -> Path:
    path = folder / name
    listed = ", ".join(json.dumps(limit) for limit in limits)
    path.write_text(f"[[gates]]\nconfiguration = {json.dumps(configuration)}\nlimits = [{listed}]\n{more}")
    return path


def live_run(*words: str, name: str = "live") -> str:
    return f"[runs.{name}]\ncommand = {json.dumps(shlex.join(words))}\n"


def gate(folder: Path, *arguments: object) -> Completed:
    completed = evaltools_here("gate", *map(str, arguments), cwd=folder)
    assert "Traceback" not in completed.err
    return completed


KEPT = "top1 >= 50 %"
BROKEN = "top1 >= 99 %"
OPEN = "top1 drop <= 0.1 points at 95 %"


@pytest.mark.parametrize(
    ("limits", "configuration", "code", "allowed", "verdict"),
    [
        ([KEPT], "fast*", 0, 0, "pass"),
        ([KEPT, BROKEN], "fast*", 1, 1, "fail"),
        ([KEPT, OPEN], "fast*", 6, 0, "inconclusive"),
        ([OPEN, BROKEN], "fast*", 1, 1, "fail"),
        ([KEPT], "*", 3, 3, "not measured"),
        ([BROKEN, OPEN], "*", 3, 3, "not measured"),
    ],
)
def test_the_exit_code_is_that_of_the_worst_and_inconclusive_alone_may_be_allowed(
    folder: Path, limits: list[str], configuration: str, code: int, allowed: int, verdict: str
) -> None:
    write_gates(folder, *limits, configuration=configuration)
    completed = gate(folder, "nightly.json", "--output_file_path=out.json")
    assert (completed.code, completed.err) == (code, "")
    assert worst_in(folder / "out.json") == verdict
    assert gate(folder, "nightly.json", "--allow_inconclusive=true").code == allowed


def test_all_files_are_written_and_can_be_read(folder: Path) -> None:
    write_gates(folder, KEPT, BROKEN, OPEN, configuration="*")
    files = ["--junit=j.xml", "--markdown=m.md", "--json=o.json"]
    assert gate(folder, "nightly.json", *files).code == 3
    (suite,) = JUnitXml.fromfile(str(folder / "j.xml"))
    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == ("nightly", 6, 2, 3, 0)
    kinds = {case.name: [type(entry) for entry in case.result] for case in suite}
    assert kinds == {
        f"{FAST}: {KEPT}": [],
        f"{FAST}: {BROKEN}": [Failure],
        f"{FAST}: {OPEN}": [Failure],
        f"phone: {KEPT}": [Error],
        f"phone: {BROKEN}": [Error],
        f"phone: {OPEN}": [Error],
    }
    markdown = (folder / "m.md").read_text().splitlines()
    assert markdown[2] == "**1 of 6 limits is kept: 1 failed, 3 not measured, 1 inconclusive, 1 passed.**"
    assert [line.count("|") for line in markdown if line.startswith("|")] == [6] * 8
    assert "fast &#124; &lt;b&gt;x&lt;/b&gt;" in markdown[6]
    decisions = limits_in(folder / "o.json")
    assert [entry["verdict"] for entry in decisions] == ["pass", "fail", "inconclusive"] + ["not measured"] * 3
    assert decisions[2]["examples_needed"] > PICTURES


def test_a_result_that_no_gate_is_about_is_no_pass(folder: Path) -> None:
    write_gates(folder, KEPT, more='run = "nightly"\n')
    shutil.copy(folder / "nightly.json", folder / "other.json")
    assert gate(folder, "nightly.json").code == 0
    completed = gate(folder, "nightly.json", "other.json")
    assert completed.code == 3
    assert "no gate is about other (imagenet of float32.tflite); add one, or leave the result out" in completed.out


def test_a_result_is_named_by_the_run_whose_file_it_is_or_by_its_own_name(folder: Path) -> None:
    (folder / "ci").mkdir()
    shutil.copy(folder / "nightly.json", folder / "weekly.json")
    runs = '[runs.night]\nresult = "../nightly.json"\n'
    write_gates(folder / "ci", KEPT, more=runs)
    completed = gate(folder / "ci", "--gates=gates.toml", "../nightly.json", "../weekly.json")
    assert completed.code == 0
    assert [line.split()[0] for line in completed.out.splitlines()[2:4]] == ["night", "weekly"]


def test_without_words_the_runs_of_the_file_are_read_and_run(folder: Path) -> None:
    live = live_run(*imagenet(f"--config={FAST}: use_xnnpack=true", pictures=6))
    runs = f'[runs.night]\nresult = "nightly.json"\n{live}'
    path = write_gates(folder, KEPT, more=runs)
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    start = time.perf_counter()
    completed = gate(elsewhere, f"--gates={path}", "--output_file_path=o.json")
    assert completed.code == 0, completed.err
    took = time.perf_counter() - start
    assert completed.err.startswith("run 1 of 1: live ..., ")
    assert completed.out.splitlines()[-1] == "2 limits, 2 measured, 2 kept"
    assert [(each["run"], each["model"]) for each in limits_in(elsewhere / "o.json")] == [
        ("night", "float32.tflite"),
        ("live", "float32.tflite"),
    ]
    written = json.loads((elsewhere / "o.json").read_text())
    times = {name: each["value"] for name, each in written["rows"][1]["figures"].items()}
    assert 0 < times["inference_s"] < times["elapsed_s"] < took, "the whole command, its start included"
    assert sorted(entry.name for entry in folder.iterdir()) == ["elsewhere", "gates.toml", "nightly.json"]
    assert [entry.name for entry in elsewhere.iterdir()] == ["o.json"]


def test_a_command_that_gives_no_result_stops_no_other_run(folder: Path) -> None:
    shutil.copy(sample.labels_file(), folder / "labels.txt")
    runs = '[runs.broken]\ncommand = "diff --model_file=labels.txt"\n[runs.night]\nresult = "nightly.json"\n'
    write_gates(folder, "latency_ms <= 999", configuration="*t*", more=runs)
    completed = gate(folder, "--junit=j.xml", "--markdown=m.md", "--json=o.json", "--keep_results=kept")
    assert completed.code == 3
    decision, night = limits_in(folder / "o.json")
    assert (decision["run"], decision["configuration"], decision["verdict"]) == ("broken", "test", "not measured")
    assert night["verdict"] == "pass"
    why = "no result (exit code 2): labels.txt "
    assert why in completed.err
    assert why in decision["reason"]
    assert all(why in text for text in (completed.out, *((folder / name).read_text() for name in ("j.xml", "m.md"))))
    assert completed.out.splitlines()[-1] == "2 limits, 1 measured, 1 kept"
    assert [entry.name for entry in (folder / "kept").iterdir()] == ["night.json"]


def test_everything_that_is_wrong_is_told_at_once_and_nothing_is_run(folder: Path) -> None:
    words = imagenet("--config=v1q: use_xnnpack=true", pictures=2)
    words[1:3] = ["--model_file=none.tflite", "--ground_truth_images_path=nowhere"]
    runs = live_run(*words)
    runs += '[runs.old]\nresult = "gone.json"\n[runs.typo]\ncommand = "diff --num_run=2"\n'
    runs += live_run("diff", f"--model_file={sample.model_file('int8')}", name="good")
    gates = '[[gates]]\nrun = "good"\nmodel = "v2*"\nlimits = ["max_error <= 1"]\n'
    gates += '[[gates]]\nrun = "[ot]*"\nlimits = ["max_error <= 1"]\n'
    write_gates(folder, KEPT, configuration="v1p", more=f'run = "live"\n{gates}{runs}')
    completed = gate(folder, "--json=o.json")
    assert (completed.code, completed.out) == (2, "")
    heading, *problems = completed.err.splitlines()
    assert heading == f"evaltools: {len(problems)} mistakes, so nothing was run:"
    expected = [
        "gone.json cannot be read",
        "run typo: --num_run=2: no such flag. Did you mean --num_runs?",
        "run live: --model_file=none.tflite: no such file or folder",
        "run live: --ground_truth_images_path=nowhere: no such file or folder",
        "gate 1: run live has no configuration 'v1p'; there are v1q. Did you mean v1q?",
        "gate 2: no run is of model 'v2*'; there are int8.tflite.",
    ]
    assert [text for text in expected if not any(text in problem for problem in problems)] == []
    assert len(problems) == len(expected)
    assert worst_in(folder / "o.json") == "not measured"


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("diff there --input_files=gone.npy", ["--input_files=gone.npy"]),
        ("diff there --input_files=x=there --input_images=gone", ["--input_images=gone"]),
        ("diff there --external_delegate_path=gone.so --report=gone/page.html", []),
        (
            "benchmark there gone --input_layer_value_files=a:there,b:lost",
            ["--graph=gone", "--input_layer_value_files=lost"],
        ),
        ("suite gone --job='d: diff'", ["--model_paths=gone"]),
        ("device run diff gone --device_wheels=lost --serials=A", ["--model_file=gone", "--device_wheels=lost"]),
        ("merge gone", []),
    ],
)
def test_files_that_commands_read_are_looked_for(command: str, missing: list[str], tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    source = RunSource("r", tuple(shlex.split(command)))
    found = problems(GateFile(tmp_path / "gates.toml", (source,), ()), [read_run(source, tmp_path)])
    assert [text.removeprefix("run r: ").partition(": ")[0] for text in found] == missing


def test_one_command_is_run_for_several_models(tmp_path: Path) -> None:
    for name in ("float32", "int8"):
        shutil.copy(sample.model_file(name), tmp_path)
    (tmp_path / "gates.toml").write_text(
        """
        [variables]
        inputs = "--num_runs=1 --seed=3"
        [runs.all]
        models = ["float32.tflite", "int8.tflite"]
        command = "diff {inputs} --config='xnnpack: use_xnnpack=true'"
        [[gates]]
        run = "all"
        limits = ["failed_examples <= 0"]
        [[gates]]
        run = "all/*"
        model = "int8.tflite"
        limits = ["max_quanta <= 255"]
        """
    )
    completed = gate(tmp_path, "--json=o.json", "--keep_results=kept")
    assert completed.code == 0, completed.err
    limits = limits_in(tmp_path / "o.json")
    assert [(each["run"], each["model"]) for each in limits] == [
        ("all/float32", "float32.tflite"),
        ("all/int8", "int8.tflite"),
        ("all/int8", "int8.tflite"),
    ]
    assert [line.partition(" ...")[0] for line in completed.err.splitlines()] == [
        "run 1 of 2: all/float32",
        "run 2 of 2: all/int8",
    ]
    kept = json.loads((tmp_path / "kept" / "all_int8.json").read_text())
    assert kept["environment"]["command"][1:4] == ["inference-diff", "--num_runs=1", "--seed=3"]
    assert evaltools_here("gate", "kept/all_int8.json", "--gates=only.toml", cwd=tmp_path).code == 2
    (tmp_path / "only.toml").write_text('[[gates]]\nlimits = ["max_quanta <= 255"]\n')
    assert evaltools_here("gate", "kept/all_int8.json", "--gates=only.toml", cwd=tmp_path).code == 0


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("nightly", ["--keep_results=."], "nightly.json would overwrite an input of this run"),
        ("night", ["--keep_results=kept", "--json=kept/night.json"], "kept/night.json is the file of --json, too"),
        (
            "night",
            ["--keep_results=nightly.json"],
            "--keep_results=nightly.json: the folder cannot be made: File exists",
        ),
    ],
)
def test_where_results_are_kept_is_checked_first(folder: Path, name: str, arguments: list[str], message: str) -> None:
    (folder / "kept").mkdir()
    write_gates(folder, KEPT, more=f'[runs.{name}]\nresult = "nightly.json"\n')
    before = (folder / "nightly.json").read_bytes()
    completed = gate(folder, *arguments)
    assert (completed.code, completed.out) == (2, "")
    assert message in completed.err
    assert (folder / "nightly.json").read_bytes() == before


def test_a_result_of_an_earlier_day_is_not_kept_for_that_of_a_run_without_one(folder: Path) -> None:
    shutil.copy(sample.labels_file(), folder / "labels.txt")
    (folder / "kept").mkdir()
    shutil.copy(folder / "nightly.json", folder / "kept" / "live.json")
    write_gates(
        folder, "max_error <= 1", configuration="*", more='[runs.live]\ncommand = "diff --model_file=labels.txt"\n'
    )
    assert gate(folder, "--keep_results=kept").code == 3
    assert list((folder / "kept").iterdir()) == []


def test_benchmarks_and_suites_are_compared_with_limits(tmp_path: Path) -> None:
    shutil.copy(sample.model_file("int8"), tmp_path)
    (tmp_path / "gates.toml").write_text(
        """
        [runs.speed]
        models = ["int8.tflite"]
        command = "benchmark --num_runs=10 --min_secs=0 --warmup_min_secs=0 --config='xnnpack: use_xnnpack=true'"
        [runs.night]
        command = "suite int8.tflite --config='xnnpack: use_xnnpack=true' --job='d: diff --num_runs=1'"
        [[gates]]
        run = "speed"
        task = "benchmark"
        limits = ["latency_p90_ms <= 900", "load_ms <= 9000", "delegated_share >= 90 %", "latency_p99_ms <= 900"]
        [[gates]]
        run = "night/int8"
        limits = ["max_quanta <= 255", "failed_examples <= 0"]
        """
    )
    completed = gate(tmp_path, "--json=o.json", "--keep_results=kept", "--report=page.html")
    assert completed.code == 3, completed.err
    found = [(each["run"], each["verdict"]) for each in limits_in(tmp_path / "o.json")]
    assert [verdict for _, verdict in found[:4]] == ["pass", "pass", "pass", "not measured"]
    assert found[4:] == [("night/int8/d", "pass"), ("night/int8/d", "pass")]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "gates.toml",
        "int8.tflite",
        "kept",
        "o.json",
        "page.html",
    ]
    by_rows = tmp_path / "rows.toml"
    by_rows.write_text('[[gates]]\ntask = "inference_diff"\nlimits = ["failed_examples <= 0"]\n')
    assert gate(tmp_path, "kept/night.json", f"--gates={by_rows}").code == 0
    by_rows.write_text('[[gates]]\ntask = "inference_diff"\nlimits = ["max_quanta <= 0"]\n')
    assert gate(tmp_path, "kept/night.json", f"--gates={by_rows}").code == 1


@pytest.mark.parametrize(
    ("command", "limit", "said"),
    [
        ("benchmark", "top1 >= 50 %", "which is of benchmark"),
        ("benchmark", "failed_examples <= 0", "which is of benchmark"),
        ("benchmark", "snr_db >= 3", "which is of benchmark"),
        ("diff", KEPT, "which is of inference_diff and has no top1 (Top-1 accuracy, 0..1); say which task or run"),
    ],
)
def test_a_limit_on_what_a_run_never_has_is_refused_before_anything_runs(
    command: str, limit: str, said: str, folder: Path
) -> None:
    write_gates(folder, limit, configuration="*", more=live_run(command, str(sample.model_file("int8"))))
    completed = gate(folder)
    assert (completed.code, completed.out) == (2, "")
    assert f"{limit!r} is compared with run live, {said}" in completed.err
    assert "run 1 of 1" not in completed.err


def test_pyproject_stands_in_for_gates_toml(folder: Path) -> None:
    table = '[[tool.evaltools.gates]]\nconfiguration = "fast*"\nlimits = ["top1 >= 50 %"]\n'
    (folder / "pyproject.toml").write_text(table)
    assert gate(folder, "nightly.json").code == 0
    write_gates(folder, BROKEN)
    assert gate(folder, "nightly.json").code == 1
    assert gate(folder, "nightly.json", "--gates=pyproject.toml").code == 0


def test_verdicts_that_cannot_be_printed_are_an_error(folder: Path) -> None:
    write_gates(folder, KEPT)
    command = [sys.executable, "-m", "evaltools.cli.main", "gate", "nightly.json", "--junit=j.xml"]
    with open("/dev/full", "w") as full:
        completed = subprocess.run(command, cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert completed.returncode == 5
    assert completed.stderr == "evaltools: stdout cannot be written\n"
    assert (folder / "j.xml").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["a", "--gates=g", "b"], (["a", "b"], ["--gates=g"])),
        (["--gates", "g", "a"], (["a"], ["--gates=g"])),
        (["--output-file-path", "o.json", "a"], (["a"], ["--output-file-path=o.json"])),
        (["--allow_inconclusive", "a"], (["a"], ["--allow_inconclusive"])),
        (["--allow_inconclusive", "false", "a"], (["a"], ["--allow_inconclusive=false"])),
        (["--noallow_inconclusive", "a"], (["a"], ["--noallow_inconclusive"])),
        (["--other", "a", "--help"], (["a"], ["--other", "--help"])),
        (["--junit"], ([], ["--junit"])),
        (["--", "-a", "--gates"], (["-a", "--gates"], [])),
    ],
)
def test_words_are_told_from_flags(words: list[str], expected: Any) -> None:
    assert split_results(words) == expected


def test_modules_beside_a_file_of_gates_are_not_imported(tmp_path: Path) -> None:
    for name in ("random", "numpy", "json"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name} of this folder')")
    (tmp_path / "gates.toml").write_text(
        live_run("diff", f"--model_file={sample.model_file('float32')}", "--num_runs=1")
        + '[[gates]]\nlimits = ["max_error <= 1"]\n'
    )
    done = evaltools_here("gate", cwd=tmp_path)
    assert (done.code, "The limit is kept." in done.out) == (0, True)


def test_a_result_comes_from_a_pipe_as_a_shell_gives_one(folder: Path) -> None:
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write((folder / "nightly.json").read_bytes())

    writer = threading.Thread(target=write)
    writer.start()
    done = gate(folder, f"/dev/fd/{reading}", f"--limit={KEPT}")
    writer.join()
    os.close(reading)
    assert (done.code, done.out.splitlines()[-1]) == (3, "2 limits, 1 measured, 1 kept"), done.err


TIMES = """
[runs.speed]
command = "benchmark int8.tflite --num_runs=10 --min_secs=0 --warmup_min_secs=0 --config='xnnpack: use_xnnpack=true'"
[[gates]]
limits = ["latency_ms <= 900", "latency_ratio vs old <= 1.1"]
"""


IN_TURNS = """
[runs.speed]
command = '''
benchmark int8.tflite new.tflite --config="xnnpack: use_xnnpack=true"
  --rounds=3 --num_runs=10 --min_secs=0 --warmup_min_secs=0
'''
[[gates]]
run = "speed"
allow_load = inf
limits = ["latency_ratio <= 50 at 95 %"]
"""


def test_two_models_of_one_benchmark_take_turns_and_the_first_needs_no_limit(tmp_path: Path) -> None:
    """The ratio is that of the second; with a limit on what the first has no ratio for, nothing is shown of it."""
    for name in ("int8.tflite", "new.tflite"):
        shutil.copy(sample.model_file("int8"), tmp_path / name)
    for more, code in (("", 0), ('model = "new*"\n', 0), ('model = "int8*"\n', 3)):
        (tmp_path / "gates.toml").write_text(IN_TURNS.replace("allow_load", f"{more}allow_load"))
        completed = gate(tmp_path)
        assert completed.code == code, completed.out
        assert ("of such (3) processes" in " ".join(completed.out.split())) == (code == 0)


@pytest.mark.usefixtures("busy_machine")
def test_times_on_a_busy_machine_are_not_measured_at_once(tmp_path: Path) -> None:
    """Nothing is run where only times are asked of a machine on which they would not count, and what counts is said.

    Of two models the first needs no limit then either.
    """
    for name in ("int8.tflite", "new.tflite"):
        shutil.copy(sample.model_file("int8"), tmp_path / name)
    of_the_second = IN_TURNS.replace("allow_load = inf", 'model = "new*"')
    for gates, count in ((TIMES, 2), (of_the_second, 1)):
        (tmp_path / "gates.toml").write_text(gates)
        completed = gate(tmp_path, "--keep_results=kept")
        said = " ".join(completed.out.split())
        assert completed.code == 3
        assert "not begun: the machine was busy, " in said
        assert "measure where less runs, or write allow_load = inf in the gate" in said
        assert f"{count} limit{'s' * (count > 1)}, 0 measured, 0 kept" in said
        assert list((tmp_path / "kept").iterdir()) == []


def test_what_two_runs_cannot_decide_is_said_before_they_run(tmp_path: Path) -> None:
    shutil.copy(sample.model_file("int8"), tmp_path)
    (tmp_path / "gates.toml").write_text(TIMES)
    completed = gate(tmp_path)
    said, _, later = " ".join(completed.err.split()).partition("run 1 of 1")
    assert "latency_ratio vs old <= 1.1: two runs of one speed decide limits from about 1.5 on" in said
    assert "evaltools benchmark OLD.tflite NEW.tflite --rounds=10" in said
    assert later
