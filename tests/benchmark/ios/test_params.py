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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--use_nnapi=true"], "--use_nnapi=true: the benchmark app for iOS does not know it: it is there for all but"),
        (["--use_hexagon"], "--use_hexagon=true: the benchmark app for iOS does not know it: it is there for ARM"),
        (["--use_gpu", "--gpu_backend=cl"], "--gpu_backend=cl: the benchmark app for iOS does not know it"),
        (["--use_npu", "--npu_vendor=samsung"], "--use_npu=true: .*: only ai-edge-litert's CompiledModel has it"),
        (["--external_delegate_path=d.so"], "--external_delegate_path=d.so: .* finds no file but the model"),
        (["--input_layer_value_files=a:b"], "--input_layer_value_files=a:b: .* finds no file but the model"),
        (["--enable_op_profiling"], "--enable_op_profiling=true: .* operators are not read from native logs"),
        (["--rounds=3"], "--rounds=3: .* it is evaltools' own; leave it out"),
        (["--trace=t.json"], "--trace=t.json: .* it is evaltools' own; leave it out"),
        (["--runtime=litert"], "--runtime=litert is a runtime for Python, which the app is not; leave it out"),
        (["--kernels=reference"], "--kernels=reference: the app has no such kernels; use --kernels=builtin"),
        (["--config", "a: use_gpu=true", "--config", "b:"], "1 model with 2 configurations: the app runs one model"),
        (["--graph=b.tflite"], "2 models with 1 configurations: the app runs one model with one configuration"),
    ],
)  # fmt: skip
def test_what_the_app_does_not_know_is_refused_with_the_reason(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        params(*words)


@pytest.mark.parametrize("name", ["model", ".tflite", "folder/.tflite"])
def test_a_model_without_name_or_ending_is_refused(name: str) -> None:
    request = request_of_flags(parse_flags("benchmark", "", "", GROUPS, [f"--graph={name}"]), [])
    with pytest.raises(UsageError, match="the app finds a model by its name and ending"):
        ios_params(request)
