"""Drawn examples on a cluster whose tasks run in this process: what tasks get, and that nodes must be alike."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Struct, field

from evaltools.datasets import sample
from evaltools.engine.execution import Shard
from evaltools.result.evaluation import EvaluationResult
from evaltools.result_file import read_result
from evaltools.runs import drawn_on_ray
from tests.cli.evaluate.sample_runs import XNNPACK, imagenet
from tests.command import evaltools_here

PICTURES = 80
COMMAND = imagenet(XNNPACK, "--sample=informed", "--stop=decided", "--limit=agreement >= 93 %", pictures=PICTURES)
ON_RAY = ("--executor=ray", "--ray_tasks=3")
Asked = dict[str, Any]


class Lost(Exception):
    """What Ray raises."""


class RayHere(Struct):
    """What is used of Ray. Of the tasks that are waited for the last one runs first.

    ``change`` takes what a task is asked for and its number from 1, and gives what it is asked for instead.
    """

    change: Callable[[Asked, int], Asked] = lambda plain, _number: plain
    parts: list[Sequence[int]] = field(default_factory=list)
    exceptions = SimpleNamespace(RayTaskError=Lost, RayError=Lost)

    def init(self, **_how: Any) -> None:
        """There is nothing to start."""

    def shutdown(self) -> None:
        """There is nothing to end."""

    def remote(self, **_how: Any) -> Callable[[Any], Any]:
        """A function that can be a task."""

        def run(function: Callable[[Asked, Shard], Any], plain: Asked, shard: Shard) -> Any:
            asked = self.change(plain, len(self.parts) + 1)
            done = function(asked, shard)
            self.parts.append(shard.drawn or ())
            return done

        return lambda function: SimpleNamespace(remote=lambda *given: partial(run, function, *given))

    def wait(self, tasks: Sequence[Any], num_returns: int) -> tuple[Sequence[Any], Sequence[Any]]:
        """The last ones."""
        return tasks[-num_returns:], tasks[:-num_returns]

    def get(self, task: Any) -> Any:
        """What a task gave."""
        return task()


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> EvaluationResult:
    """The result of the same command without Ray."""
    return result_of(tmp_path_factory.mktemp("alone") / "result.json", *COMMAND)


def result_of(output: Path, *arguments: str, code: int = 0) -> EvaluationResult:
    done = evaltools_here(*arguments, f"--output_file_path={output}")
    assert done.code == code, done.err
    return read_result(output)


def on(ray: RayHere, monkeypatch: pytest.MonkeyPatch) -> RayHere:
    monkeypatch.setattr(drawn_on_ray, "ray_module", lambda: ray)
    return ray


def numbers(ray: RayHere) -> list[int]:
    return list(itertools.chain.from_iterable(ray.parts))


def test_tasks_get_the_drawn_examples_alone_and_decide_as_this_computer_does(
    alone: EvaluationResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = on(RayHere(), monkeypatch)
    result = result_of(tmp_path / "result.json", *COMMAND, *ON_RAY)
    assert result.sampling == alone.sampling
    assert result.part.classified == alone.part.classified
    assert alone.sampling is not None
    assert len(alone.sampling.drawn) < PICTURES
    assert len(numbers(ray)) == len(set(numbers(ray))) == len(alone.sampling.drawn)
    assert [len(part) for part in ray.parts[:4]] == [0, 4, 6, 6]
    assert [entry.place for entry in result.configurations] == ["host", ""]
    assert result.latency_comparisons == []


def test_a_run_that_ended_goes_on_with_the_examples_that_are_missing(
    alone: EvaluationResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(plain: Asked, number: int) -> Asked:
        if number == 7:
            raise KeyboardInterrupt
        return plain

    run_dir = tmp_path / "run"
    before = on(RayHere(interrupted), monkeypatch)
    result_of(tmp_path / "before.json", *COMMAND, *ON_RAY, f"--run_dir={run_dir}", code=130)
    after = on(RayHere(), monkeypatch)
    output = tmp_path / "after.json"
    resumed = evaltools_here("resume", str(run_dir), f"--output_file_path={output}")
    assert resumed.code == 0, resumed.err
    result = read_result(output)
    assert result.sampling == alone.sampling
    assert result.execution is not None
    assert sorted(numbers(before) + numbers(after)) == sorted(set(numbers(before) + numbers(after)))
    assert (len(numbers(before)), len(numbers(after))) == (26, result.execution.examples_run)
    assert result.examples_done == 26 + result.execution.examples_run


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (1, "was of something else: the model was"),
        (3, "on another node than the tasks before, and there the model was"),
    ],
)
def test_a_node_with_another_model_is_refused(
    changed: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other_model(plain: Asked, number: int) -> Asked:
        options = {**plain["options"], "model_file": str(sample.model_file("int8"))}
        return {**plain, "options": options} if number == changed else plain

    on(RayHere(other_model), monkeypatch)
    done = evaltools_here(*COMMAND, *ON_RAY, f"--run_dir={tmp_path / 'run'}")
    assert done.code == 2
    assert message in done.err


def test_a_test_that_is_held_against_the_reference_has_it_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(sample.__file__).resolve().parent / "text"
    words = ["text", f"--model_file={folder / 'model.tflite'}", f"--table={folder / 'texts.csv'}", XNNPACK]
    words += ["--sample=informed", "--limit=same_answer >= 50 %"]
    expected = result_of(tmp_path / "here.json", *words)
    on(RayHere(), monkeypatch)
    result = result_of(tmp_path / "ray.json", *words, *ON_RAY)
    assert (result.sampling, result.part.means) == (expected.sampling, expected.part.means)
