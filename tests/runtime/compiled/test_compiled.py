"""Sessions over CompiledModel, compared with the interpreter of the same package."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.delegates.gpu import GPU
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.errors import ConfigurationUnavailable, InferenceError
from evaltools.model import ModelFile
from evaltools.runtime.compiled import gpu as compiled_gpu
from evaltools.runtime.process.isolated import open_isolated
from tests import tflite_writer, tiny_models
from tests.runtime.openers import gpu_or_skip, model_of, opened, outputs, random_inputs

ai_edge_litert = pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")


@pytest.fixture
def classifier(tmp_path: Path) -> ModelFile:
    return model_of(tiny_models.classifier(), tmp_path)


@pytest.fixture
def convolution(tmp_path: Path) -> ModelFile:
    """What every accelerator takes and computes like the CPU."""
    return model_of(tiny_models.conv((1, 16, 16, 4), 8), tmp_path)


def test_ai_edge_litert_2_1_calls_the_mode_of_its_default_kernels_otherwise(
    classifier: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 2.1.5 on it has the options that are needed; before, a sentence says which version does."""
    of_2_1 = IntEnum("of_2_1", {"XNNPACK": 0, "REFERENCE": 1, "BUILTIN": 2})
    monkeypatch.setattr("ai_edge_litert.compiled_model.CpuKernelMode", of_2_1)
    session = opened(classifier, "runtime=compiled")
    assert session.delegation.delegated_nodes > 0
    session.close()
    monkeypatch.delattr("ai_edge_litert.compiled_model.Options")
    with pytest.raises(ConfigurationUnavailable, match=r"has no options; take 2\.1\.5 or later"):
        opened(classifier, "runtime=compiled")


@pytest.mark.parametrize("kernels", ["default", "builtin"])
def test_the_cpu_gives_what_the_interpreter_gives(classifier: ModelFile, kernels: str) -> None:
    mine = opened(classifier, f"runtime=compiled kernels={kernels}")
    other = opened(classifier, f"runtime=litert kernels={kernels}")
    assert mine.inputs == other.inputs
    assert [(spec.dtype, spec.shape) for spec in mine.outputs] == [(spec.dtype, spec.shape) for spec in other.outputs]
    inputs = random_inputs(mine)
    found = mine.run(inputs, 3)
    np.testing.assert_array_equal(found.outputs[0], other.run(inputs).outputs[0])
    assert len(found.invokes_us) == 3
    assert (mine.facts.name, mine.facts.package, mine.facts.version) == (
        "compiled",
        "ai-edge-litert",
        other.facts.version,
    )
    assert mine.delegation.total_nodes == other.delegation.total_nodes == classifier.node_count
    assert mine.delegation.delegated_nodes == other.delegation.delegated_nodes
    assert mine.delegation.cpu_operators == other.delegation.cpu_operators
    mine.close()


def test_inputs_and_outputs_are_in_the_order_of_the_model(tmp_path: Path) -> None:
    model = model_of(tiny_models.two_inputs(), tmp_path)
    for mine, other in zip(outputs(model, "runtime=compiled"), outputs(model, "runtime=litert"), strict=True):
        np.testing.assert_array_equal(mine, other)


def test_outputs_stay_as_they_were_when_it_runs_again(classifier: ModelFile) -> None:
    session = opened(classifier, "runtime=compiled")
    first = session.run(random_inputs(session)).outputs[0]
    before = first.copy()
    session.run([np.zeros(spec.shape, spec.dtype) for spec in session.inputs])
    np.testing.assert_array_equal(first, before)


def test_a_requested_xnnpack_is_counted(classifier: ModelFile) -> None:
    (entry,) = opened(classifier, "runtime=compiled use_xnnpack=true").delegation.delegates
    assert (entry.delegate, entry.requested, entry.is_cpu) == (XNNPACK.name, True, False)
    assert entry.nodes == opened(classifier, "runtime=litert").delegation.delegated_nodes
    assert "interpreter" in entry.evidence


def test_a_wrong_input_is_an_inference_error(classifier: ModelFile) -> None:
    session = opened(classifier, "runtime=compiled")
    for wrong in (np.zeros((1, 2), np.float32), np.zeros(session.inputs[0].shape, np.int8)):
        with pytest.raises(InferenceError, match=r"takes float32.*, got"):
            session.run([wrong])


def with_words() -> bytes:
    graph = tflite_writer.Graph()
    words, target = graph.tensor("words", (4,), "string"), graph.constant("shape", np.array([2, 2], np.int32))
    square = graph.node("RESHAPE", [words, target], graph.tensor("square", (2, 2), "string"), "ReshapeOptions")
    return graph.to_bytes([words], [square])


def with_an_output_that_is_an_input() -> bytes:
    graph = tflite_writer.Graph()
    values = graph.tensor("values", (4,))
    total = graph.node("ADD", [values, values], graph.tensor("total", (4,)), "AddOptions")
    return graph.to_bytes([values], [total, values])


def with_a_state() -> bytes:
    graph = tflite_writer.Graph()
    values, state = graph.tensor("values", (4,)), graph.tensor("state", (4,), variable=True)
    return graph.to_bytes([values], [graph.node("ADD", [values, state], graph.tensor("total", (4,)), "AddOptions")])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (with_words(), "tensor words of type string"),
        (with_an_output_that_is_an_input(), "never writes the output values, which is an input of the model too"),
        (with_a_state(), "takes no variable tensors, in which this model keeps a state"),
    ],
    ids=["words", "shared", "state"],
)
def test_a_model_that_it_cannot_run_is_refused_with_the_next_step(content: bytes, message: str, tmp_path: Path) -> None:
    model = model_of(content, tmp_path)
    with pytest.raises(ConfigurationUnavailable, match=f"{message}; use --runtime=litert$"):
        opened(model, "runtime=compiled")
    step = "no other Python runtime has the GPU, .*; --runtime=litert without --use_gpu runs it on the CPU$"
    with pytest.raises(ConfigurationUnavailable, match=f"{message}; {step}") as caught:
        opened(model, "use_gpu=true")
    assert caught.value.delegate == GPU.name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runtime=compiled kernels=reference", "use --runtime=litert --kernels=reference"),
        ("use_gpu=true kernels=reference", "no other Python runtime has the GPU; leave --kernels=reference out$"),
        ("use_gpu=true gpu_backend=cl", "--gpu_backend cannot be honoured by the Python runtime compiled"),
        ("use_gpu=true gpu_experimental_enable_quant=false", "--gpu_experimental_enable_quant cannot be honoured"),
        ("use_gpu=true use_npu=true npu_vendor=qualcomm", "GPU and NPU at once are not supported"),
        ("use_npu=true npu_vendor=qualcomm", "no libLiteRtDispatch_. of qualcomm .* give --dispatch_library_path"),
        (
            "use_npu=true npu_vendor=qualcomm dispatch_library_path=/nowhere",
            "--dispatch_library_path=/nowhere has",
        ),
        ("use_npu=true npu_vendor=intel_openvino", "NPUs of intel_openvino are not run here; LiteRT's benchmark_model"),
        ("use_npu=true npu_vendor=qualcomm qualcomm_backend=lpai", "ai-edge-litert knows undefined, gpu, htp, dsp, ir"),
        ("runtime=compiled external_delegate_path=x.so", "EXTERNAL delegate cannot be created by the Python runtime"),
    ],
)
def test_what_it_cannot_do_is_said(classifier: ModelFile, text: str, message: str) -> None:
    with pytest.raises(ConfigurationUnavailable, match=message):
        opened(classifier, text)


def test_without_a_driver_the_gpu_is_not_measured_and_the_fix_is_named(
    convolution: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(name, "/nowhere.json")
    with pytest.raises(ConfigurationUnavailable, match=r"WebGPU found no .*apt install mesa-vulkan-drivers") as caught:
        open_isolated(convolution, Configuration.from_text("c", "use_gpu=true"))
    assert caught.value.delegate == GPU.name


def test_a_path_that_is_no_unicode(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    model = model_of(tiny_models.classifier(), folder)
    np.testing.assert_array_equal(outputs(model, "runtime=compiled")[0], outputs(model, "runtime=litert")[0])


def test_a_model_with_sizes_that_are_known_only_when_it_runs_is_told_so() -> None:
    warning = (
        "WARNING: Attempting to use a delegate that only supports static-sized tensors with a graph that has "
        "dynamic-sized tensors (tensor#35 is a dynamic-sized tensor).\n"
    )
    failed = "ERROR: [./litert/cc/litert_compiled_model.h:1961] Failed to modify graph with delegate"
    assert "the size of tensor 35 of this one is known only when it runs" in compiled_gpu.explain(warning + failed)
    assert compiled_gpu.explain(failed) == "Failed to modify graph with delegate"
    assert compiled_gpu.explain(warning) == ""


@pytest.fixture
def gpu(convolution: ModelFile) -> str:
    """What the GPU here is; CI says that there must be one."""
    return gpu_or_skip(convolution)


def isolated_outputs(model: ModelFile, text: str) -> tuple[Any, Sequence[Any]]:
    """GPU drivers have threads of their own, so that their sessions run in processes of their own."""
    session = open_isolated(model, Configuration.from_text("c", text))
    found = session.run(random_inputs(session), 2)
    session.close()
    return session, found.outputs


def test_the_gpu_takes_the_model_and_says_on_which_device(gpu: str, convolution: ModelFile) -> None:
    session, (found,) = isolated_outputs(convolution, "use_gpu=true gpu_precision_loss_allowed=false")
    (entry,) = session.delegation.delegates
    assert (entry.delegate, entry.requested, entry.device) == ("GPU", True, gpu)
    assert entry.is_cpu or not any(software in gpu for software in ("llvmpipe", "SwiftShader"))
    assert entry.nodes == convolution.node_count
    assert "without the CPU" in entry.evidence
    np.testing.assert_allclose(found, outputs(convolution, "runtime=litert kernels=builtin")[0], rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("gpu")
def test_operators_that_the_gpu_refuses_stay_on_the_cpu_and_are_named(tmp_path: Path) -> None:
    model = model_of(tiny_models.add_and_negate(), tmp_path)
    before = outputs(model, "runtime=litert kernels=builtin")
    session, after = isolated_outputs(model, "use_gpu=true gpu_precision_loss_allowed=false")
    (entry,) = session.delegation.delegates
    assert entry.nodes + sum(session.delegation.cpu_operators.values()) == model.node_count
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("gpu")
def test_the_time_of_a_run_is_not_that_of_enqueueing_it(tmp_path: Path) -> None:
    """Runs that only enqueue leave the work of all of them to the reading of the outputs, here of a few numbers.

    How long one run takes beside one reading says nothing: a fast GPU computes in less time than it takes to copy. Of
    five times the shortest counts, which nothing else on this machine has stretched.
    """
    model = model_of(tiny_models.classifier(size=128), tmp_path)
    session = open_isolated(model, Configuration.from_text("c", "use_gpu=true"))
    inferences = [session.run(random_inputs(session), 20) for _ in range(5)]
    session.close()
    assert min(sum(each.invokes_us) for each in inferences) > 4 * min(each.read_us for each in inferences)
