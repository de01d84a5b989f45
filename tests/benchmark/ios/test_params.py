"""The file of flags for the benchmark app on iOS."""

from __future__ import annotations

import pytest

from evaltools.benchmark.command import GROUPS, request_of_flags
from evaltools.benchmark.ios import ios_params
from evaltools.errors import UsageError
from evaltools.request.flags import parse_flags


def params(*words: str) -> dict[str, str]:
    return ios_params(request_of_flags(parse_flags("benchmark", "", "", GROUPS, ["folder/a.tflite", *words]), []))


def test_values_are_texts_as_in_the_apps_own_file() -> None:
    """Keys and values are those that its README and TensorFlow's guide to performance name."""
    assert params(
        "--num_threads=2", "--warmup_runs=1", "--run_delay=-1.0", "--num_runs=50", "--use_gpu",
        "--gpu_wait_type=aggressive", "--input_layer=input", "--input_layer_shape=1,224,224,3",
    ) == {
        "graph": "a.tflite",
        "num_runs": "50",
        "warmup_runs": "1",
        "run_delay": "-1.0",
        "input_layer": "input",
        "input_layer_shape": "1,224,224,3",
        "num_threads": "2",
        "use_gpu": "1",
        "gpu_wait_type": "aggressive",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), {}),
        (("--kernels=builtin",), {"use_xnnpack": "0"}),
        (("--use_coreml=true", "--coreml_version=3"), {"use_coreml": "1", "coreml_version": "3"}),
        (
            ("--config", "a: use_gpu=true gpu_precision_loss_allowed=false"),
            {"use_gpu": "1", "gpu_precision_loss_allowed": "0"},
        ),
        (("--delegate=gpu",), {"use_gpu": "1"}),
    ],
)
def test_configurations_become_flags_of_the_app(words: tuple[str, ...], expected: dict[str, str]) -> None:
    assert params(*words) == {"graph": "a.tflite", "num_threads": "1", **expected}


@pytest.mark.parametrize("name", ["model", ".tflite", "folder/.tflite"])
def test_a_model_without_name_or_ending_is_refused(name: str) -> None:
    request = request_of_flags(parse_flags("benchmark", "", "", GROUPS, [f"--graph={name}"]), [])
    with pytest.raises(UsageError, match="the app finds a model by its name and ending"):
        ios_params(request)
