"""Tasks of one's own on drawn examples: by their own uncertainty, until a limit on a mean or a share is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import evaltools as et
from evaltools.configuration import Configuration
from evaltools.engine.execution import Execution, Shard
from evaltools.errors import UsageError
from evaltools.gates.check import evidence_of
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.decide import decide
from evaltools.report.words.verdicts import verdict_in_words
from evaltools.result.evaluation import EvaluationResult
from evaltools.runtime.session import Array
from evaltools.tasks.own.definition import TaskFunction
from evaltools.tasks.own.evaluation import prepare
from evaltools.tasks.own.loading import Loaded, load_task
from evaltools.tasks.own.outputs import Outputs
from evaltools.tasks.own.request import OwnRequest
from evaltools.tasks.shared.evaluation import evaluate, merge
from evaltools.tasks.shared.measuring import Observer
from evaltools.tasks.shared.options.sampling import SamplingAsked
from evaltools.tasks.shared.run_identity import RunAtPlace
from tests import tiny_models
from tests.runtime.fake import FakeSession
from tests.tasks.declared import run_sample
from tests.tasks.own.task_files import BRIGHTNESS, write_task, write_values
from tests.tasks.own.test_evaluation import Shifting
from tests.tasks.own.test_pooled import returned

COUNT = 240
"""Examples of the values 0.0 to 0.995 in an order that is not theirs; one output is all values."""


def near_a_half(outputs: Outputs) -> float:
    return -abs(float(outputs[0].max()) - 0.5)


def score(outputs: Outputs, target: float) -> Mapping[str, Any]:
    error = min(1.0, abs(float(outputs[0].max()) - target))
    return {"error": error, "part": np.array([1 - error, 1 + (target > 0.5)]), "odd": 1.0, "all": np.array([error])}


def agreement(ours: Outputs, theirs: Outputs, _target: object) -> Mapping[str, float]:
    return {"same": float(np.array_equal(ours[0], theirs[0]))}


def task_of(**changes: Any) -> et.Task:
    values = [number * 97 % COUNT / COUNT for number in range(COUNT)]
    given: dict[str, Any] = {
        "examples": [et.Example(f"{value:.4f}", value, value) for value in values],
        "prepare": lambda value, tensors: [np.full(tensors[0].shape, value, np.float32)],
        "score": score,
        "agree": agreement,
        "metrics": [
            et.mean("error", better="lower", between=(0, 1)),
            et.share("part"),
            et.mean("same", between=(0, 1), whole=True),
            et.mean("odd"),
            et.pooled("all", lambda rows: float(np.max(rows))),
        ],
        "uncertainty": near_a_half,
    }
    return et.Task(**(given | changes))


def shifted_near_a_half(value: float) -> float:
    return 0.25 if abs(value - 0.5) < 0.02 else 0.0


def asked(folder: Path, limit: str, stops: bool = True, **changes: Any) -> OwnRequest:
    model = folder / "model.tflite"
    model.write_bytes(tiny_models.vector_input(length=4))
    return OwnRequest(
        model_file=model,
        reference=Configuration("reference", kernels="builtin"),
        tests=(Configuration("a"),),
        loaded=Loaded(TaskFunction(partial(returned, task_of(**changes))), None),
        sampling=SamplingAsked(parse_criterion(limit, of_own_task=True), stops),
    )


def run(request: OwnRequest, test: FakeSession | None = None) -> EvaluationResult:
    sessions = {"reference": Shifting(lambda _value: 0.0), "a": test or Shifting(shifted_near_a_half)}
    return evaluate(prepare, request, Observer(), lambda _model, configuration: sessions[configuration.name])


def of_all(folder: Path) -> dict[str, float]:
    result = run(replace(asked(folder, "same >= 0.5"), sampling=None))
    return {entry.metric: entry.mean for entry in result.part.means if entry.configuration == "a"}


@pytest.mark.parametrize(
    ("limit", "answer"),
    [
        ("same >= 90 %", "kept"),
        ("same >= 99 %", "broken"),
        ("error rise <= 0.05", "kept"),
        ("error <= 0.06", "kept"),
        ("part drop <= 0.05", "kept"),
    ],
)
def test_a_limit_is_decided_as_by_all_examples_with_a_part_of_them(tmp_path: Path, limit: str, answer: str) -> None:
    figure = parse_criterion(limit, of_own_task=True).figure
    result = run(asked(tmp_path, limit))
    assert result.sampling is not None
    found = result.sampling.answers["a"]
    assert (found.answer, result.complete) == (answer, True)
    assert found.decided_after == result.examples_done < COUNT
    assert found.figures.keys() == {"error", "part", "same"}
    for name, known in found.figures.items():
        assert known.low <= of_all(tmp_path)[name] <= known.high
    assert [entry.metric for entry in result.part.means if entry.configuration == "a"] == ["error", "part", "same"]
    assert result.configurations[1].figures[figure] == found.figures[figure].value
    assert result.part.comparisons == []
    word = {"kept": "limit kept", "broken": "LIMIT BROKEN"}[answer]
    said = verdict_in_words(result.configurations[1].verdicts[0])
    assert said.startswith(f"{figure} {word} ({limit}), decided after {found.decided_after} of {COUNT} examples: ")
    gate = decide(parse_criterion(limit, of_own_task=True), evidence_of(result, result.configurations[1]))
    assert gate.verdict == {"kept": "pass", "broken": "fail"}[answer]


def test_examples_are_drawn_by_the_uncertainty_of_the_task(tmp_path: Path) -> None:
    result = run(asked(tmp_path, "same >= 99 %"))
    assert result.sampling is not None
    for entry in result.sampling.drawn:
        assert entry.lead == pytest.approx(abs(float(entry.example) - 0.5), abs=1e-4)
    assert result.sampling.answers["a"].decided_after < COUNT / 3


def test_without_an_uncertainty_of_its_own_the_best_two_scores_tell(tmp_path: Path) -> None:
    result = run(asked(tmp_path, "same >= 90 %", uncertainty=None))
    assert result.sampling is not None
    assert {entry.lead for entry in result.sampling.drawn} == {0.0}  # both are the same number here
    assert result.sampling.answers["a"].answer == "kept"


def test_all_examples_give_the_figures_of_a_run_in_order(tmp_path: Path) -> None:
    whole = run(replace(asked(tmp_path, "same >= 0.5"), sampling=None))
    result = run(asked(tmp_path, "same >= 0.5", stops=False))
    assert (result.part.means, result.part.comparisons) == (whole.part.means, whole.part.comparisons)


class Interrupted(Shifting):
    """Gives a shifted answer to 20 inputs, then Ctrl-C."""

    def __init__(self) -> None:
        super().__init__(shifted_at_times)
        answer = self._function
        self.left = 20

        def outputs(inputs: Sequence[Array]) -> tuple[Array, ...]:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            return answer(inputs)

        self._function = outputs


def shifted_at_times(value: float) -> float:
    return 1.0 if round(value * 10) % 20 == 0 else 0.0


def test_a_run_that_was_stopped_goes_on_with_the_same_examples(tmp_path: Path) -> None:
    text = BRIGHTNESS.replace('et.mean("near")', 'et.mean("near", between=(0, 1), whole=True)')
    request = replace(
        asked(tmp_path, "near drop <= 0.15"),
        loaded=load_task(f"{write_task(tmp_path, text)}:brightness"),
        options={"values": write_values(tmp_path, 120), "times": 1.0},
    )
    once = run(request, Shifting(shifted_at_times))
    assert once.sampling is not None
    assert once.sampling.answers["a"].answer == "kept"
    in_folder = replace(request, execution=Execution(run_dir=tmp_path / "run"))
    assert run(in_folder, Interrupted()).stopped == "interrupted"
    assert run(in_folder, Shifting(shifted_at_times)).sampling == once.sampling


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        (
            "all <= 0.1",
            "all is a figure of all examples together, of which a part of them says nothing sure. Limit one",
        ),
        ("odd >= 0.5", "odd has scores of which nothing says how large they can be; a metric of your own states that"),
        ("error drop <= 0.1", "decides limits such as 'error rise <= 0.01'"),
        ("error >= 0.1", "a part of the examples decides limits"),
        ("none >= 0.1", "a part of the examples decides limits"),
    ],
)
def test_a_limit_that_drawn_examples_cannot_decide_is_refused(tmp_path: Path, limit: str, message: str) -> None:
    with pytest.raises(UsageError, match="--limit") as caught:
        run(asked(tmp_path, limit))
    assert message in str(caught.value)


def test_a_whole_that_depends_on_the_model_is_refused(tmp_path: Path) -> None:
    def by_output(outputs: Outputs, target: float) -> Mapping[str, Any]:
        return {**score(outputs, target), "part": np.array([0.5, 1 + float(outputs[0].max())])}

    with pytest.raises(UsageError, match=r"take pooled\(\) in the place of share\(\)"):
        run(asked(tmp_path, "part >= 0.1", score=by_output))


@pytest.mark.once
@pytest.mark.parametrize(
    ("task", "folder", "limit", "options"),
    [
        ("segmentation", "segmentation", "pixel_accuracy >= 0.5", {"images": Path("images"), "masks": Path("masks")}),
        ("keypoints", "keypoints", "same_keypoints >= 0.5", {"images": Path("images")}),
        (
            "keypoints",
            "keypoints",
            "pck drop <= 0.5",
            {"images": Path("images"), "annotations": Path("annotations.json"), "people": "boxes"},
        ),
        ("image_to_image", "noise", "ssim_to_reference >= 0.5", {"images": Path("images")}),
        ("audio", "audio", "same_answer >= 0.5", {"recordings": Path("recordings")}),
        ("text", "text", "accuracy drop <= 0.5", {"table": Path("texts.csv"), "label": "label"}),
        ("embeddings", "noise", "cosine >= 0.5", {"images": Path("images")}),
    ],
)
def test_every_task_draws_examples(task: str, folder: str, limit: str, options: dict[str, Any]) -> None:
    drawn = run_sample(task, folder, sample="informed", limit=limit, **options)
    whole = run_sample(task, folder, **options)
    assert drawn.result.part.means == whole.result.part.means
    sampling = drawn.result.sampling
    assert sampling is not None
    assert len(sampling.drawn) == sampling.examples
    assert len({entry.lead for entry in sampling.drawn}) > 1 or task == "image_to_image"


EVERY_OTHER = """
import numpy as np
import evaltools as et

def score(outputs, number):
    whole = float(number % 2 == 0)
    return {"half": [whole * (1 - abs(float(outputs[0].max()) - number / 240)), whole]}

@et.task
def half():
    return et.Task(
        examples=[et.Example(str(number), number, number) for number in range(240)],
        prepare=lambda number, tensors: [np.full(tensors[0].shape, number / 240, np.float32)],
        score=score,
        agree=lambda ours, theirs, _: {"same": float((ours[0] == theirs[0]).all())},
        metrics=[et.share("half"), et.mean("same", between=(0, 1), whole=True)],
    )
"""
"""Examples of even numbers add something to a share, the others nothing."""


def test_a_shard_in_which_the_limited_figure_counts_nothing_leaves_the_limit_to_the_others(tmp_path: Path) -> None:
    request = asked(tmp_path, "half drop <= 0.1")
    request = replace(request, loaded=load_task(f"{write_task(tmp_path, EVERY_OTHER)}:half"))
    folders = [tmp_path / str(index) for index in range(2)]
    for index, folder in enumerate(folders):
        run(replace(request, execution=Execution(run_dir=folder, shard=Shard(index, 2))))
    result = merge(prepare, request, [RunAtPlace(tuple(folders))], Observer())
    in_order = {
        entry.metric: entry.mean
        for entry in run(replace(request, sampling=None)).part.means
        if entry.configuration == "a"
    }
    assert result.sampling is not None
    assert result.sampling.answers["a"].answer == "kept"
    assert result.examples_done < COUNT
    for name, known in result.sampling.answers["a"].figures.items():
        assert known.low <= in_order[name] <= known.high
