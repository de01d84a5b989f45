"""The evaluation with sessions that are not there: order of checks, what is compared, how it ends."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable, InferenceError, ModelError, UsageError
from evaltools.model import ModelFile
from evaltools.result.result import Result
from evaltools.runs.evaluate import evaluate
from evaltools.runtime import Delegation, ProcessSession, TensorSpec
from evaltools.runtime.session import Array
from evaltools.tasks.framework.request import TaskRequest
from tests.evaluation_set import CLASSES, EvaluationSet, make_evaluation_set
from tests.runtime.fake import FakeSession
from tests.tasks.built_in import imagenet_options
from tests.tasks.observers import Silent

IMAGE = TensorSpec("input", np.dtype("float32"), (1, 16, 16, 3))
SCORES = TensorSpec("scores", np.dtype("float32"), (1, CLASSES))


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> EvaluationSet:
    return make_evaluation_set(tmp_path_factory.mktemp("set"), 30, 0)


@pytest.fixture
def asked(evaluation: EvaluationSet) -> TaskRequest:
    return TaskRequest(
        model_file=evaluation.model,
        **imagenet_options(evaluation.images, evaluation.truths, evaluation.labels, label_check=False),
        reference=Configuration("reference", kernels="builtin"),
        tests=(Configuration("a"), Configuration("b")),
    )


class Answering(FakeSession):
    """Puts the given class first for every example."""

    def __init__(self, answer: int, outputs: tuple[TensorSpec, ...] = (SCORES,)) -> None:
        super().__init__(lambda _inputs: (np.eye(CLASSES, dtype=np.float32)[[answer]],))
        self.inputs = (IMAGE,)  # type: ignore[misc]
        self.outputs = outputs  # type: ignore[misc]


def with_values(asked: TaskRequest, **changes: Path) -> TaskRequest:
    return replace(asked, values={**asked.values, **changes})


def sessions(**by_name: ProcessSession) -> Callable[[ModelFile, Configuration], ProcessSession]:
    return lambda _model, configuration: by_name[configuration.name]


def pairs(result: Result) -> list[tuple[str, str]]:
    """Who is compared with whom."""
    return [(row.name, verdict.against) for row in result.rows for verdict in row.verdicts]


def test_each_test_is_compared_with_the_reference_and_with_the_first_test(asked: TaskRequest) -> None:
    result = evaluate(asked, Silent(), sessions(reference=Answering(0), a=Answering(0), b=Answering(1)))
    assert pairs(result) == [("a", "reference"), ("b", "reference"), ("b", "a")]
    _, first, second = (entry.figures.get("agreement") for entry in result.rows)
    assert first is not None
    assert second is not None
    assert (first.value, second.value) == (1.0, 0.0)


def test_accuracy_counts_the_right_answers(asked: TaskRequest, evaluation: EvaluationSet) -> None:
    result = evaluate(asked, Silent(), sessions(reference=Answering(0), a=Answering(11), b=Answering(1)))
    measured = result.rows[1]
    assert measured.value("top1") == pytest.approx(evaluation.answers.count(11) / 30)
    assert measured.value("distinct_answers") == 1
    assert "a: the same class came first for every example" in result.warnings


def test_what_is_no_picture_is_skipped_and_counted(asked: TaskRequest, tmp_path: Path) -> None:
    shutil.copytree(asked.values["ground_truth_images_path"], tmp_path / "images")
    for name in ("notes.txt", ".hidden.jpg"):
        (tmp_path / "images" / name).touch()
    asked = with_values(asked, ground_truth_images_path=tmp_path / "images")
    result = evaluate(asked, Silent(), sessions(reference=Answering(0), a=Answering(0), b=Answering(0)))
    assert result.example_count == 30
    assert "2 files that are not pictures were left out, such as '.hidden.jpg'" in result.warnings


def test_a_reference_that_fails_everywhere_is_compared_with_nothing(asked: TaskRequest) -> None:
    def failing(_inputs: Sequence[Array]) -> tuple[Array, ...]:
        raise InferenceError("no")

    broken = Answering(0)
    broken._function = failing
    result = evaluate(asked, Silent(), sessions(reference=broken, a=Answering(0), b=Answering(1)))
    assert ("b", "a") in pairs(result)
    assert [row.figures["top1"].change for row in result.rows[1:]] == [None, None]
    assert result.rows[0].reason == "not one example succeeded: no"


def test_without_a_test_that_can_run_nothing_is_measured(asked: TaskRequest) -> None:
    def only_the_reference(_model: ModelFile, configuration: Configuration) -> ProcessSession:
        if configuration.name == "reference":
            return Answering(0)
        raise ConfigurationUnavailable("not here")

    observer = Silent()
    result = evaluate(asked, observer, only_the_reference)
    assert [entry.status for entry in observer.described] == ["measured", "not measured", "not measured"]
    assert [entry.status for entry in result.rows] == ["not measured"] * 3
    assert (result.complete, result.examples_done) == (False, 0)


def test_a_runtime_that_makes_another_output_than_the_file_states_is_refused(asked: TaskRequest) -> None:
    other = Answering(0, (replace(SCORES, shape=(1, 6)),))
    with pytest.raises(ModelError, match=r"the file states the output .*\[1,12\], but fake makes it float32\[1, 6\]"):
        evaluate(asked, Silent(), sessions(reference=other, a=other, b=other))
    assert other.closed


def test_bytes_of_labels_that_are_no_unicode_stay_equal(asked: TaskRequest, tmp_path: Path) -> None:
    labels, truths = tmp_path / "labels.txt", tmp_path / "truths.txt"
    labels.write_bytes(b"\xff0\n" + b"".join(b"class%d\n" % index for index in range(1, CLASSES)))
    truths.write_bytes(b"\xff0\n" * 30)
    result = evaluate(
        with_values(asked, ground_truth_labels=truths, model_output_labels=labels),
        Silent(),
        sessions(reference=Answering(0), a=Answering(0), b=Answering(1)),
    )
    assert result.rows[1].value("top1") == 1.0


def test_a_run_of_another_library_is_refused_before_that_is_loaded(asked: TaskRequest, tmp_path: Path) -> None:
    library = tmp_path / "delegate.so"
    library.write_bytes(b"as it was")
    opened: list[str] = []

    def open_session(_model: ModelFile, configuration: Configuration) -> ProcessSession:
        opened.append(configuration.name)
        return Answering(0)

    tests = (Configuration.from_text("a", f"external_delegate_path={library}"),)
    run = replace(asked, tests=tests, execution=replace(asked.execution, run_dir=tmp_path / "run"))
    evaluate(run, Silent(), open_session)
    library.write_bytes(b"another one")
    opened.clear()
    with pytest.raises(UsageError, match="holds another run: the library .*delegate.so was .*, now it is "):
        evaluate(run, Silent(), open_session)
    assert opened == []


def test_what_the_runtime_warned_about_is_a_warning_of_the_result(asked: TaskRequest) -> None:
    doubtful = Answering(0)
    doubtful.delegation = Delegation(1, (), {}, warnings=("shapes do not fit",))  # type: ignore[misc]
    result = evaluate(asked, Silent(), sessions(reference=Answering(0), a=doubtful, b=Answering(0)))
    assert "a: its runtime warns: shapes do not fit" in result.warnings
