"""``evaltools run``: a task of one's own as a user runs it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests import tiny_models
from tests.cli.evaluate.sample_runs import figures_here
from tests.command import Completed, evaltools, evaltools_here
from tests.tasks.own import task_files
from tests.tasks.own.task_files import write_task, write_values

EXAMPLES = 100


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model.tflite").write_bytes(tiny_models.vector_input(length=4))
    write_task(tmp_path)
    write_values(tmp_path, EXAMPLES)
    return tmp_path


def words(project: Path, *more: str, task: str = "own.py:brightness") -> list[str]:
    place = f"{project / task.partition(':')[0]}:{task.partition(':')[2]}"
    return ["run", place, str(project / "model.tflite"), f"--values={project / 'values.txt'}", *more]


def run_here(project: Path, *more: str, task: str = "own.py:brightness") -> Completed:
    completed = evaltools_here(*words(project, *more, task=task))
    assert "Traceback" not in completed.err
    return completed


def test_figures_go_to_stdout_and_the_table_to_stderr(project: Path) -> None:
    completed = run_here(project, "--use_xnnpack=true", f"--output_file_path={project / 'result.json'}")
    assert completed.code == 0, completed.err
    assert f"INFO: Num evaluation runs: {EXAMPLES}" in completed.out
    assert "INFO: near: 0.05" in completed.out
    assert "test: near unchanged: no answer of 100 changes it; at most 3 % of such examples can (95 %)" in completed.err
    part = json.loads((project / "result.json").read_text())["part"]
    assert (part["name"], part["source"]) == ("brightness", f"{project / 'own.py'}:brightness")
    assert part["options"] == {"values": str(project / "values.txt"), "times": "1.0"}


@pytest.mark.once
def test_one_worker_and_several_shards_and_a_resumed_run_give_the_same(project: Path) -> None:
    plain = words(project, "--use_xnnpack=true")
    expected = figures_here([*plain, "--workers=1"], project / "one.json")
    assert figures_here([*plain, "--workers=2"], project / "two.json") == expected
    for index in range(2):
        shard = evaltools_here(
            *plain, f"--run_dir={project / f'shard{index}'}", f"--shard_index={index}", "--shard_count=2"
        )
        assert shard.code == 0, shard.err
    merged = ["merge", *(str(project / f"shard{index}") for index in range(2))]
    assert figures_here(merged, project / "merged.json") == expected
    done = evaltools_here(*plain, f"--run_dir={project / 'run'}")
    assert done.code == 0, done.err
    assert figures_here(["resume", str(project / "run")], project / "resumed.json") == expected


def test_a_run_goes_on_only_with_the_same_task(project: Path) -> None:
    begun = run_here(project, f"--run_dir={project / 'run'}")
    assert begun.code == 0, begun.err
    write_task(project, task_files.BRIGHTNESS.replace("0.5", "0.4"))
    changed = run_here(project, f"--run_dir={project / 'run'}")
    assert changed.code == 2
    assert "the task's file" in changed.err
    write_task(project)
    write_values(project, EXAMPLES - 1)
    other = run_here(project, f"--run_dir={project / 'run'}")
    assert other.code == 2
    assert "the examples" in other.err


@pytest.mark.parametrize("changed", ["own.py", "beside.py"])
def test_code_that_was_changed_is_not_run_by_resume(project: Path, changed: str) -> None:
    (project / "beside.py").write_text("NOTHING = 0\n")
    write_task(project, f"import beside\n{task_files.BRIGHTNESS}")
    begun = run_here(project, f"--run_dir={project / 'run'}")
    assert begun.code == 0, begun.err
    with (project / changed).open("a") as file:
        file.write(f"open({str(project / 'was run')!r}, 'w')\n")
    refused = evaltools_here("resume", str(project / "run"))
    assert refused.code == 2
    assert f"cannot go on: the task's file {project / changed} was " in refused.err
    assert not (project / "was run").exists()


@pytest.mark.parametrize(
    ("content", "more", "message"),
    [
        ("import nothing_of_that_name\n", (), "own.py, line 1: the file of the task cannot be loaded: ModuleNotFound"),
        (task_files.BRIGHTNESS, ("--sise=3",), "--sise=3: no such flag"),
        (task_files.BRIGHTNESS.replace("times", "help"), (), "line 11: every task has an option --help already"),
        (task_files.BRIGHTNESS, ("--output_file_path=a.pb",), "a task of your own has no native protobuf"),
        (
            task_files.BRIGHTNESS.replace("return [np", "return [][0] or [np"),
            (),
            "line 17: prepare failed for 'example00'",
        ),
        (task_files.BRIGHTNESS.replace("float(distance < 0.5)", "float('nan')"), (), "score gave near=nan for"),
    ],
)
def test_a_task_that_cannot_be_used_costs_one_sentence(
    project: Path, content: str, more: tuple[str, ...], message: str
) -> None:
    write_task(project, content)
    completed = run_here(project, *more)
    assert completed.code == 2, completed.err
    assert message in completed.err


def test_examples_that_fail_give_exit_code_4(project: Path) -> None:
    write_task(
        project, task_files.BRIGHTNESS.replace("        distance = ", "        assert target > 1\n        distance = ")
    )
    completed = run_here(project)
    assert completed.code == 4
    assert "failed: example00 (reference): " in completed.err
    assert "own.py, line 20: score failed for 'example00': AssertionError" in completed.err


def test_the_traceback_is_shown_where_that_is_asked_for(project: Path) -> None:
    write_task(project, task_files.BRIGHTNESS.replace("distance = ", "distance = [][0] + "))
    completed = evaltools(*words(project, "--debug"))
    assert completed.code == 2
    assert "Traceback (most recent call last)" in completed.err
    assert "IndexError: list index out of range" in completed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["own.py:brightness"], "missing: --values=... --model_file=.... See evaltools run own.py:brightness --help"),
        (["own.py", "model.tflite"], "own.py: which task in it? Write own.py:NAME; it has brightness"),
    ],
)
def test_a_command_that_is_not_whole_is_told_what_is_missing(project: Path, arguments: list[str], message: str) -> None:
    completed = evaltools_here("run", *arguments, cwd=project)
    assert completed.code == 2
    assert message in completed.err


def gated(project: Path, *limits: str) -> Completed:
    command = "run own.py:brightness model.tflite --values=values.txt --config='fast: use_xnnpack=true'"
    text = f'[runs.own]\ncommand = "{command}"\n\n[[gates]]\nrun = "own"\nlimits = {json.dumps(limits)}\n'
    (project / "gates.toml").write_text(text)
    return evaltools_here("gate", cwd=project)


@pytest.mark.once
def test_limits_are_held_against_metrics_of_the_task(project: Path) -> None:
    kept = gated(project, "near >= 0.04", "near drop <= 0.1 at 95 %", "distance <= 10 at 95 %", "distance rise <= 0.5")
    assert kept.code == 0, kept.out + kept.err
    assert "4 passed" in kept.out
    broken = gated(project, "near >= 60 %")
    assert broken.code == 1
    assert "near 5 %" in broken.out
    undecided = gated(project, "near drop <= 0.001 at 95 %")
    assert undecided.code == 6
    assert "too few examples to tell" in undecided.out


def test_a_later_run_is_held_against_a_baseline(project: Path) -> None:
    output = f"--output_file_path={project / 'r.json'}"
    assert run_here(project, output, "--record_examples").code == 0
    saved = evaltools_here("baseline", "save", str(project / "r.json"), f"--baseline_file={project / 'base.json'}")
    assert saved.code == 0, saved.err
    compare = ["baseline", "diff", str(project / "r.json"), f"--baseline_file={project / 'base.json'}"]
    assert evaltools_here(*compare).code == 0
    write_task(project, task_files.BRIGHTNESS.replace("abs(float(outputs[0].mean()) - target)", "2 * target"))
    assert run_here(project, output, "--record_examples").code == 0
    worse = evaltools_here(*compare)
    assert worse.code == 1, worse.out + worse.err
    assert "WORSE: test: distance 4.95 -> 10.4" in worse.out
    assert run_here(project, output).code == 0
    unpaired = evaltools_here(*compare)
    assert unpaired.code == 1
    assert "WORSE: test: distance 4.95 -> 10.4" in unpaired.out


def test_a_margin_of_the_metric_decides_before_that_of_the_flag(project: Path) -> None:
    """Against the task itself nothing changes, so that the interval is about as wide as 100 examples make it."""
    stated = task_files.BRIGHTNESS.replace('et.mean("near")', 'et.mean("near", margin=0.5)')
    write_task(project, stated)
    output = project / "r.json"
    assert run_here(project, "--config=fast: use_xnnpack=true", "--margin=2", f"--output_file_path={output}").code == 0
    (verdicts,) = (
        entry["verdicts"] for entry in json.loads(output.read_text())["configurations"] if entry["name"] == "fast"
    )
    assert [(verdict["metric"], verdict["margin"]) for verdict in verdicts] == [("distance", 2.0), ("near", 0.5)]
    refused = run_here(project, "--margin=0")
    assert refused.code == 2
    assert "--margin=0: use a number above 0, in the unit of the metrics" in refused.err


def test_what_a_task_prints_does_not_mix_with_the_native_lines(project: Path) -> None:
    talking = task_files.BRIGHTNESS.replace("import evaltools as et", 'import evaltools as et\n\nprint("loading")')
    talking = talking.replace(
        "    def prepare(value, tensors):\n", "    def prepare(value, tensors):\n        print(value)\n"
    )
    talking = talking.replace(
        "    def score(outputs, target):\n", "    def score(outputs, target):\n        print(target)\n"
    )
    write_task(project, talking)
    completed = evaltools(*words(project, "--workers=2"))
    assert completed.code == 0, completed.err
    assert all(line.startswith("INFO: ") for line in completed.out.splitlines())
    assert "loading" in completed.err


@pytest.mark.once
def test_native_code_that_crashes_in_score_costs_the_process_and_not_what_was_measured(project: Path) -> None:
    """The line is told; once that is mended outside of the task's file, the run goes on where it ended."""
    crashing = task_files.BRIGHTNESS.replace(
        "        distance = ",
        "        with Path(__file__).with_name('calls.txt').open('a') as calls:\n"
        "            calls.write(f'{target}\\n')\n"
        "        if Path(__file__).with_name('crash').exists():\n"
        "            import signal, time\n"
        "            time.sleep(0.02)\n"
        "            if target > 4:\n"
        "                signal.raise_signal(signal.SIGSEGV)\n"
        "        distance = ",
    )
    file = write_task(project, crashing)
    (project / "crash").touch()
    crashed = evaltools(*words(project, f"--run_dir={project / 'run'}", "--workers=1", "--progress=none"))
    assert crashed.code == -signal.SIGSEGV
    assert f'File "{file}", line 26 in score' in crashed.err
    (project / "crash").unlink()
    before = len((project / "calls.txt").read_text().splitlines())
    resumed = evaltools("resume", str(project / "run"), "--workers=1")
    assert resumed.code == 0, resumed.err
    assert f"INFO: Num evaluation runs: {EXAMPLES}" in resumed.out
    after = len((project / "calls.txt").read_text().splitlines()) - before
    assert 0 < after < 2 * EXAMPLES - 20
