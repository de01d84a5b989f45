"""Options of functions and figures of results: editors know them, errors name them as Python does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jedi
import pytest

import evaltools as et
from evaltools.datasets import sample
from tests.api.test_evaluations import DATA, ONE

MODEL = sample.model_file("int8")
COMPLETED = {
    "et.imagenet('m.tflite', num_i": "num_images=",
    "et.coco('m.tflite', coco_e": "coco_evaluator=",
    "et.benchmark('m.tflite', num_r": "num_runs=",
    "et.locate('m.tflite', ope": "operators=",
    "et.suite('models', run_d": "run_dir=",
    "et.Configuration(use_g": "use_gpu=",
}


@pytest.mark.parametrize("written", COMPLETED)
def test_options_are_completed_in_editors_and_in_notebooks(written: str) -> None:
    in_editor = jedi.Script(f"import evaltools as et\n{written}").complete()
    in_notebook = jedi.Interpreter(written, [{"et": et}]).complete()
    for found in (in_editor, in_notebook):
        assert COMPLETED[written] in [each.name for each in found]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("et.imagenet('m.tflite')['gpu'].", "top1"),
        ("et.diff('m.tflite')['gpu'].", "snr_db"),
        ("et.imagenet('m.tflite').", "to_dataframe"),
        ("et.benchmark('m.tflite')['gpu'].", "latency_ms"),
        ("et.locate('m.tflite').", "suspects"),
    ],
)
def test_what_a_result_has_is_completed(written: str, name: str) -> None:
    assert name in [each.name for each in jedi.Script(f"import evaltools as et\n{written}").complete()]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"images": "/nope"}, "images"),
        ({"ground_truth": "/nope"}, "ground_truth"),
        ({"labels": "/nope"}, "labels"),
        ({"num_images": "many"}, "num_images=many"),
        ({"order": "reverse"}, "order=reverse"),
        ({"run_dir": __file__}, "run_dir"),
        ({"tests": {"gpu": "use_gppu=true"}}, "use_gppu"),
        ({"tests": {"a": "kernels=fast"}}, "kernels=fast"),
        ({"tests": {"a": "kernels=reference use_xnnpack=true"}}, "use_xnnpack=True"),
        ({"ground_truth": None}, "missing: ground_truth=..."),
    ],
)
def test_errors_name_options_as_python_does(given: dict[str, Any], named: str) -> None:
    with pytest.raises(et.UsageError) as error:
        et.imagenet(MODEL, **{**DATA, "tests": ONE, "num_images": 2, **given})
    assert named in str(error.value)
    assert "--" not in str(error.value).partition(". See evaltools")[0]


def test_errors_of_the_other_functions_do_too() -> None:
    calls: dict[str, Callable[[Any], object]] = {
        "num_runs=many": lambda wrong: et.benchmark(MODEL, num_runs=wrong),
        "num_inputs=many": lambda wrong: et.locate(MODEL, num_inputs=wrong),
        "use_gpu=many": lambda wrong: et.Configuration(use_gpu=wrong),
    }
    for message, call in calls.items():
        with pytest.raises(et.UsageError, match=f"^{message}: not a valid value"):
            call("many")


def test_a_model_that_is_not_there_is_called_model(tmp_path: Path) -> None:
    model = tmp_path / "none.tflite"
    calls: list[Callable[[], object]] = [lambda: et.benchmark(model), lambda: et.diff(model), lambda: et.locate(model)]
    for call in calls:
        with pytest.raises(et.ModelError) as error:
            call()
        assert "--" not in str(error.value)
