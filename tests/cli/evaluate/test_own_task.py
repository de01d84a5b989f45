"""``evaltools run``: a task of one's own as a user runs it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from evaltools.datasets import sample
from evaltools.native.lines.evaluation import native_lines
from evaltools.result.figure import Figure
from evaltools.result.metrics import of_task
from evaltools.result_file import read_result
from tests import tiny_models
from tests.command import Completed, evaltools, evaltools_here, one_test
from tests.tasks.framework import task_files
from tests.tasks.framework.task_files import write_task, write_values

EXAMPLES = 100


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "model.tflite").write_bytes(tiny_models.vector_input(length=4))
    write_task(tmp_path)
    write_values(tmp_path, EXAMPLES)
    return tmp_path


def words(project: Path, *more: str, task: str = "own.py:brightness") -> list[str]:
    place = f"{project / task.partition(':')[0]}:{task.partition(':')[2]}"
    return ["run", place, str(project / "model.tflite"), f"--values={project / 'values.txt'}", *one_test(*more)]


def run_here(project: Path, *more: str, task: str = "own.py:brightness") -> Completed:
    completed = evaltools_here(*words(project, *more, task=task))
    assert "Traceback" not in completed.err
    return completed


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
        (task_files.BRIGHTNESS, ("--output_file_path=a.pb",), "a task of your own has no native protobuf"),
        (
            task_files.BRIGHTNESS.replace("return [np", "return [][0] or [np"),
            (),
            "line 17: prepare failed for 'example00'",
        ),
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
    assert "first example00 (reference): " in completed.err
    assert "own.py, line 20: score failed for 'example00': AssertionError" in completed.err


def test_the_traceback_is_shown_where_that_is_asked_for(project: Path) -> None:
    write_task(project, task_files.BRIGHTNESS.replace("distance = ", "distance = [][0] + "))
    completed = evaltools(*words(project, "--debug"))
    assert completed.code == 2
    assert "Traceback (most recent call last)" in completed.err
    assert "IndexError: list index out of range" in completed.err


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


def test_a_task_in_one_file_has_its_own_check_and_lines(project: Path) -> None:
    """What stdout gets is what the file says, also of the result file; where that fails, nothing is lost."""
    native = """
        check=lambda trial: [f"looked at {len(trial.run([0, 1]))} examples"],
        native=lambda result, row: [f"Near: {row.figures['near'].value:.3f} of {row.finished_examples}", "over"],
        examples="""
    write_task(project, task_files.BRIGHTNESS.replace("        examples=", native))
    completed = run_here(project, f"--output_file_path={project / 'result.json'}")
    assert completed.code == 0, completed.err
    assert completed.out.splitlines() == [f"INFO: Near: 0.050 of {EXAMPLES}", "INFO: over"]
    assert "looked at 2 examples" in completed.err
    assert native_lines(read_result(project / "result.json")) == completed.out.splitlines()
    places = [project / "shard0", project / "shard1"]
    for index, place in enumerate(places):
        shard = run_here(project, f"--run_dir={place}", f"--shard_index={index}", "--shard_count=2")
        assert shard.code == 0, shard.err
    merged = evaltools_here("merge", *map(str, places))
    assert merged.out == completed.out
    assert "looked at 2 examples" in merged.err
    write_task(project, task_files.BRIGHTNESS.replace("        examples=", native.replace("'near'", "'far'")))
    completed = run_here(project)
    assert completed.code == 0, completed.err
    assert "native gave no lines of test: KeyError: 'far'" in completed.err
    assert "INFO: near: 0.05" in completed.out


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


ONE_FUNCTION = """
from pathlib import Path
import evaltools as et

@et.task
def surest(images: Path) -> et.Task:
    'How sure the best class is.'
    return et.Task(
        examples=et.pairs(images, None, 24),
        prepare=et.image_input,
        score=lambda outputs, target: {"sure": float(outputs.real(0).max())},
        metrics=[et.mean("sure", bounds=(0, 1))],
    )
"""


@pytest.mark.once
def test_one_function_has_intervals_verdicts_shards_resume_gates_and_a_page(tmp_path: Path) -> None:
    """Devices take such a task as well: tests/cli/device/test_run.py."""
    (tmp_path / "own.py").write_text(ONE_FUNCTION)
    start = ("run", "own.py:surest", str(sample.model_file("int8")), f"--images={sample.images_dir()}")
    command_line = (*start, "--config=xnnpack: use_xnnpack=true")

    def figures(*command: str) -> list[dict[str, Figure]]:
        done = evaltools_here(*command, "--output=result.json", cwd=tmp_path)
        assert done.code == 0, done.err
        found = read_result(tmp_path / "result.json")
        assert found.rows[1].verdict is not None
        return [of_task(row) for row in found.rows]

    whole = figures(*command_line, "--run_dir=whole")
    assert all(figure.interval is not None for own in whole for figure in own.values())
    assert figures("resume", "whole") == whole
    for index in (0, 1):
        shard = (f"--shard_index={index}", "--shard_count=2", f"--run_dir=shard{index}")
        assert evaltools_here(*command_line, *shard, cwd=tmp_path).code == 0
    assert figures("merge", "shard0", "shard1") == whole
    for limit, code in (("sure >= 1 %", 0), ("sure >= 100 %", 1)):
        (tmp_path / "gates.toml").write_text(f'[[gates]]\ntask = "surest"\nlimits = ["{limit}"]\n')
        assert evaltools_here("gate", "result.json", "--gates=gates.toml", cwd=tmp_path).code == code
    assert evaltools_here("report", "result.json", "--output=page.html", cwd=tmp_path).code == 0
    assert "int8.tflite: surest" in (tmp_path / "page.html").read_text()
