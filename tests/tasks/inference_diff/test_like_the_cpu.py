"""A delegate that gives what CPU kernels give is told, and measured once more with other inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from evaltools.configuration import Configuration
from evaltools.errors import InferenceError
from evaltools.model import read_model
from evaltools.result.evaluation import EvaluationResult
from evaltools.tasks.inference_diff.evaluation import prepare_diff
from evaltools.tasks.inference_diff.like_the_cpu import other_inputs
from evaltools.tasks.inference_diff.result import LikeTheCpu
from evaltools.tasks.shared.evaluation import evaluate
from tests import tiny_models
from tests.tasks.inference_diff.fakes import Function, Opener, asked, three_times
from tests.tasks.observers import Silent

TEXT = "test: all outputs are bit for bit those of the CPU's builtin kernels in 5 runs"


def compared(folder: Path, text: str = "use_gpu=true", /, **makers: Any) -> tuple[EvaluationResult, LikeTheCpu | None]:
    request = asked(folder, tests=(Configuration.from_text("test", text),))
    result = evaluate(prepare_diff, request, Silent(), Opener(**makers))
    return result, result.part.comparisons[0].like_the_cpu


def rounded(values: Any) -> Any:
    return three_times(values).astype(np.float16)


def test_outputs_of_the_cpu_with_both_inputs_are_told(tmp_path: Path) -> None:
    result, found = compared(tmp_path)
    assert found == LikeTheCpu("builtin kernels", 5, True, "")
    assert any(warning.startswith(f"{TEXT}, and once more with other inputs") for warning in result.warnings)


def test_those_of_xnnpack_are_told_where_it_differs_from_the_reference(tmp_path: Path) -> None:
    makers: dict[str, Any] = dict.fromkeys(("test", "XNNPACK", "XNNPACK, 2 threads"), lambda: rounded)
    _, found = compared(tmp_path, **makers)
    assert found == LikeTheCpu("XNNPACK", 5, True, "")


def test_outputs_that_only_these_inputs_make_equal_are_no_evidence(tmp_path: Path) -> None:
    seen: set[bytes] = set()

    def opened() -> Function:
        return lambda values: (three_times if len(seen) < 5 or values.tobytes() in seen else rounded)(noted(values))

    def noted(values: Any) -> Any:
        if len(seen) < 5:
            seen.add(values.tobytes())
        return values

    result, found = compared(tmp_path, test=opened)
    assert found == LikeTheCpu("builtin kernels", 5, False, "")
    assert not any(TEXT in warning for warning in result.warnings)


def test_outputs_of_which_one_is_another_are_no_evidence(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def once_rounded(values: Any) -> Any:
        seen.append(values.tobytes())
        return (rounded if len(seen) == 5 else three_times)(values)

    assert compared(tmp_path, test=lambda: once_rounded)[1] is None


def test_a_delegate_that_fails_with_other_inputs_is_told(tmp_path: Path) -> None:
    opened: list[int] = []

    def failing() -> Function:
        opened.append(1)

        def run(values: Any) -> Any:
            if len(opened) > 2:
                raise InferenceError("lost")
            return three_times(values)

        return run

    result, found = compared(tmp_path, test=failing)
    assert found == LikeTheCpu("builtin kernels", 5, None, "lost")
    assert f"{TEXT}, and it could not be run once more with other inputs: lost" in result.warnings


def test_other_outputs_and_cpu_kernels_are_not_asked_again(tmp_path: Path) -> None:
    assert compared(tmp_path, test=lambda: rounded)[1] is None
    assert compared(tmp_path, "use_xnnpack=false")[1] is None


def test_other_inputs_stay_within_their_range(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(tiny_models.add_chain((1, 8, 8, 3)))
    (values,) = np.random.default_rng(0).uniform(-1, 1, (1, 1, 8, 8, 3)).astype(np.float32)
    ((changed,),) = other_inputs(read_model(path).inputs, [(values,)])
    assert changed.dtype == np.float32
    assert np.abs(changed).max() <= np.abs(values).max()
    assert np.count_nonzero(changed == values) == 0
