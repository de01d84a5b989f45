"""Profiles of operators on real models: they make up the run, and belong to the nodes that they are said to."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable, ModelError
from evaltools.metrics.op_profile import OpProfile, explained_share, run_totals_us
from evaltools.model import ModelFile, read_model
from evaltools.model.contents import read_contents
from evaltools.runtime.profiler.opening import KNOWN_VERSIONS, profile_operators
from evaltools.runtime.session import Array
from tests.realdata.conftest import zoo_models

interpreter = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert is not installed")
KEEP_A_STATE = {
    "dtln_noise_suppression",
    "keras_lstm_mnist_ptq",
    "keyword_scrambled_8bit",
    "litert_unidirectional_sequence_lstm",
    "micro_speech_lstm",
    "trained_lstm",
}
REFUSED = {
    "litert_double_flex": "Flex delegate",
    "litert_string_input_model": "type string",
    "model_invoking_error": "fake-op-double",
    "person_detect": "quantized_dimension",
    **dict.fromkeys(KEEP_A_STATE, "variable tensors"),
}


@pytest.fixture(autouse=True)
def known_version() -> None:
    if importlib.metadata.version("ai-edge-litert") not in KNOWN_VERSIONS:
        pytest.skip(f"the profiler is known of ai-edge-litert {', '.join(KNOWN_VERSIONS)} only")


def inputs_of(model: ModelFile) -> list[Array]:
    rng = np.random.default_rng(0)
    return [
        rng.integers(0, 3, tensor.shape).astype(tensor.dtype) for tensor in model.inputs if tensor.dtype != "string"
    ]


def profiled(path: Path, kernels: str, runs: int) -> OpProfile:
    model = read_model(path)
    return profile_operators(model, Configuration.from_text("c", f"kernels={kernels}"), inputs_of(model), runs)


@pytest.mark.parametrize("kernels", ["default", "builtin"])
@pytest.mark.parametrize("name", ["mobilenet_v1_0.25_128_quant", "tf2_mobilenet_v2_1.0_224_ptq"])
def test_the_operators_make_up_the_run(zoo: Path, name: str, kernels: str) -> None:
    """Both times of the first ratio are of the same run, so that a busy machine stretches both alike.

    Those of the second are the shortest of neighbouring runs, one of them by another clock: both count the same thing
    in the same unit. How much the profiler slows a run down is no matter of this test.
    """
    profile = profiled(zoo / f"{name}.tflite", kernels, 50)
    assert 0.1 <= (explained_share(profile) or 0) <= 1.02
    assert 0.5 <= min(run_totals_us(profile.ops)) / min(profile.plain_us) <= 2


@pytest.mark.parametrize("name", zoo_models())
def test_every_model_is_profiled_or_refused(zoo: Path, name: str) -> None:
    if name in REFUSED:
        with pytest.raises(ConfigurationUnavailable, match=REFUSED[name]):
            profiled(zoo / f"{name}.tflite", "builtin", 1)
        return
    try:
        profile = profiled(zoo / f"{name}.tflite", "builtin", 2)
    except ModelError:
        assert "broken" in name
        return
    graph = read_contents(read_model(zoo / f"{name}.tflite")).main
    assert [op.type for op in profile.ops] == [node.operator for node in graph.nodes]
