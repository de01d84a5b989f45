"""LiteRT's profiler on small models: what is run is the model, what is seen are its nodes, the rest is refused."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.delegates.gpu import GPU
from evaltools.errors import ConfigurationUnavailable
from evaltools.metrics.op_profile import OpProfile, run_totals_us
from evaltools.model import ModelFile, read_model
from evaltools.model.contents import read_contents
from evaltools.runtime.compiled.source import source_of
from evaltools.runtime.profiler import profiled_model
from evaltools.runtime.profiler.opening import KNOWN_VERSIONS, profile_operators
from evaltools.runtime.profiler.profiled_model import LiteRtLibrary, ProfiledModel
from evaltools.runtime.session import Array
from tests import tflite_writer, tiny_models
from tests.runtime.openers import model_of, opened

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
pytestmark = pytest.mark.skipif(
    importlib.metadata.version("ai-edge-litert") not in KNOWN_VERSIONS,
    reason=f"the profiler is known of ai-edge-litert {', '.join(KNOWN_VERSIONS)} only",
)
KERNEL_MODES = {"default": "kernel_mode = 0\n", "builtin": "kernel_mode = 2\n"}


@pytest.fixture
def classifier(tmp_path: Path) -> ModelFile:
    return model_of(tiny_models.classifier(), tmp_path)


def inputs_of(model: ModelFile) -> list[Array]:
    rng = np.random.default_rng(3)
    return [rng.uniform(-1, 1, tensor.shape).astype(tensor.dtype) for tensor in model.inputs]


def profiled(model: ModelFile, text: str = "", runs: int = 3) -> OpProfile:
    return profile_operators(model, Configuration.from_text("c", text), inputs_of(model), runs)


def run_once(model: ModelFile, options: str, library: LiteRtLibrary | None = None) -> bytes:
    """The first output, by the way that the profiler runs a model."""
    with ProfiledModel(library or LiteRtLibrary(), source_of(model).loaded, options) as compiled:
        (signature,) = compiled.signatures
        compiled.prepare(signature, model.inputs, model.outputs)
        for place, value in enumerate(inputs_of(model)):
            compiled.write(place, value)
        compiled.run()
        return compiled.read(0)


@pytest.mark.parametrize("kernels", KERNEL_MODES)
def test_what_is_profiled_computes_what_the_interpreter_computes(classifier: ModelFile, kernels: str) -> None:
    session = opened(classifier, f"runtime=litert kernels={kernels}")
    expected = session.run(inputs_of(classifier)).outputs[0]
    session.close()
    np.testing.assert_array_equal(np.frombuffer(run_once(classifier, KERNEL_MODES[kernels]), np.float32), expected[0])


def test_with_builtin_kernels_the_operators_are_the_nodes_of_the_model(classifier: ModelFile) -> None:
    profile = profiled(classifier, "kernels=builtin", runs=4)
    graph = read_contents(classifier).main
    assert [(op.type, op.node, op.internal) for op in profile.ops] == [
        (node.operator, node.index, False) for node in graph.nodes
    ]
    assert [op.name for op in profile.ops] == [
        f"[{graph.tensors[node.outputs[0]].name}]:{node.index}" for node in graph.nodes
    ]
    assert {(op.calls_per_run, len(op.times_us)) for op in profile.ops} == {(1, 4)}
    assert len(profile.invoke_us) == len(profile.plain_us) == profile.runs == 4
    totals = run_totals_us(profile.ops)
    assert all(0 <= total <= whole for total, whole in zip(totals, profile.invoke_us, strict=True))
    assert profile.runtime == f"CompiledModel of ai-edge-litert {importlib.metadata.version('ai-edge-litert')}"


def test_operators_beside_xnnpack_are_those_that_the_interpreter_says_it_left(classifier: ModelFile) -> None:
    profile = profiled(classifier)
    session = opened(classifier, "runtime=litert")
    left = session.delegation.cpu_operators
    session.close()
    inside = [op for op in profile.ops if op.internal]
    assert Counter(op.type for op in profile.ops if not op.internal) == left
    assert all(op.name == f"Delegate/{op.type}:{place}" for place, op in enumerate(inside))


def test_a_file_of_packed_weights_is_read_and_not_spoilt(classifier: ModelFile, tmp_path: Path) -> None:
    cache = tmp_path / "weights"
    text = f"runtime=compiled use_xnnpack=true xnnpack_weight_cache_file_path={cache}"
    opened(classifier, text).close()
    before = cache.read_bytes()
    assert profiled(classifier, text).ops
    assert cache.read_bytes() == before


@pytest.mark.parametrize(("signature", "shape", "operator"), [("double", (4,), "ADD"), ("negate", (5, 7), "NEG")])
def test_signatures_and_sizes_are_those_asked_for(
    tmp_path: Path, signature: str, shape: tuple[int, ...], operator: str
) -> None:
    (tmp_path / "two.tflite").write_bytes(tiny_models.two_signatures())
    model = read_model(tmp_path / "two.tflite", signature).with_input_shapes({0: shape})
    profile = profiled(model, "kernels=builtin")
    assert [(op.type, op.node) for op in profile.ops] == [(operator, 0)]
    assert profile.called == []


def counting_loop() -> bytes:
    """WHILE the input is below 3, add 1."""
    graph = tflite_writer.Graph()
    start = graph.tensor("start", (1,))
    end = graph.tensor("end", (1,))
    graph.node("WHILE", [start], end, "WhileOptions", CondSubgraphIndex=1, BodySubgraphIndex=2)
    graph.next_graph([start], [end])
    value, is_below = graph.tensor("value", (1,)), graph.tensor("is below", (1,), "bool")
    graph.node("LESS", [value, graph.constant("limit", np.array([3], np.float32))], is_below, "LessOptions")
    graph.next_graph([value], [is_below])
    value, more = graph.tensor("value", (1,)), graph.tensor("more", (1,))
    graph.node("ADD", [value, graph.constant("one", np.array([1], np.float32))], more, "AddOptions")
    return graph.to_bytes([value], [more])


def test_the_time_of_a_loop_is_that_of_its_node_and_its_graphs_stand_apart(tmp_path: Path) -> None:
    model = model_of(counting_loop(), tmp_path)
    configuration = Configuration.from_text("c", "kernels=builtin")
    profile = profile_operators(model, configuration, [np.zeros(1, np.float32)], 2)
    assert [(op.type, op.node) for op in profile.ops] == [("WHILE", 0)]
    calls = {graph.graph: {op.type: op.calls_per_run for op in graph.ops} for graph in profile.called}
    assert calls == {1: {"AllocateTensors": 1, "LESS": 4}, 2: {"AllocateTensors": 1, "ADD": 3}}
    inside = sum(sum(op.times_us) for graph in profile.called for op in graph.ops)
    assert inside <= sum(profile.ops[0].times_us)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("runtime=tflite_runtime", "tflite_runtime are of another build; use --runtime=litert"),
        ("kernels=reference", "has no reference kernels.*use --kernels=builtin"),
        ("use_gpu=true", "none that the GPU delegate runs; profile without --use_gpu"),
        ("runtime=litert external_delegate_path=some.so", "none that the EXTERNAL delegate runs"),
    ],
)
def test_what_the_profiler_does_not_see_is_refused(classifier: ModelFile, text: str, words: str) -> None:
    with pytest.raises(ConfigurationUnavailable, match=words) as caught:
        profiled(classifier, text)
    assert "leave the profile of operators out" in str(caught.value)
    assert (caught.value.delegate == GPU.name) == ("gpu" in text)


def test_another_version_is_refused_with_the_one_that_is_known(
    classifier: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", {"ai-edge-litert": "9.1.0"}.__getitem__)
    with pytest.raises(
        ConfigurationUnavailable, match=r"ai-edge-litert 9\.1\.0 is not known here, only that of 2\.3\.0"
    ):
        profiled(classifier)


def test_a_library_that_is_not_there_is_named(classifier: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiled_model, "_FILES", dict.fromkeys(("linux", "darwin"), "libNone.so"))
    with pytest.raises(ConfigurationUnavailable, match=r"libNone\.so cannot be used"):
        profiled(classifier)
    monkeypatch.setattr(profiled_model, "_FILES", {})
    with pytest.raises(ConfigurationUnavailable, match="has its library on .* is not known"):
        profiled(classifier)


def model_refused(name: str) -> bytes:
    graph = tflite_writer.Graph()
    if name == "words":
        words = graph.tensor("words", (2,), "string")
        shape, output = graph.constant("shape", np.array([2], np.int32)), graph.tensor("same", (2,), "string")
        return graph.to_bytes([words], [graph.node("RESHAPE", [words, shape], output, "ReshapeOptions")])
    fed = graph.tensor("fed", (4,))
    output = graph.tensor("out", (4,))
    if name == "state":
        state = graph.tensor("state", (4,), variable=True)
        return graph.to_bytes([fed], [graph.node("ADD", [fed, state], output, "AddOptions")])
    if name == "unknown operator":
        return graph.to_bytes([fed], [graph.node("NobodyKnowsThis", [fed], output, b"")])
    graph.next_graph([fed], [graph.node("NEG", [fed], output, "NegOptions")])
    other = graph.tensor("other", (4,))
    positive = graph.node("ABS", [other], graph.tensor("positive", (4,)), "AbsOptions")
    signature = tflite_writer.Signature("positive", 1, {"other": other}, {"positive": positive})
    return graph.to_bytes([other], [positive], (signature,))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("state", "no variable tensors, in which this model keeps a state"),
        ("words", "no buffers for words of type string"),
        ("unknown operator", "status 3 .runtime failure.*NobodyKnowsThis"),
        ("only another graph's signature", "outputs of its main graph; name one with --signature_to_run"),
    ],
)
def test_models_that_cannot_be_profiled_are_refused_by_what_is_in_them(tmp_path: Path, name: str, words: str) -> None:
    model = model_of(model_refused(name), tmp_path)
    inputs = [] if name == "words" else inputs_of(model)
    with pytest.raises(ConfigurationUnavailable, match=words):
        profile_operators(model, Configuration.from_text("c", ""), inputs, 1)


def test_events_that_cannot_be_end_in_a_refusal(classifier: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProfiledModel, "profiled_run", lambda _self: [])
    with pytest.raises(ConfigurationUnavailable, match="gave what cannot be: a run of the graph is there 0 times"):
        profiled(classifier)
