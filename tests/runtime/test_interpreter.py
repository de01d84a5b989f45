"""Sessions over both interpreters: kernels, proof of delegation, delegates that fail."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable, InferenceError, UsageError
from evaltools.model import ModelFile, read_model
from evaltools.runtime import Session, find_runtime, open_session
from evaltools.runtime.interpreter import covered_nodes
from tests import tiny_models

RUNTIMES = ("litert", "tflite_runtime")


@pytest.fixture(params=RUNTIMES)
def runtime(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    package = {"litert": "ai_edge_litert", "tflite_runtime": "tflite_runtime"}[name]
    pytest.importorskip(package, reason=f"the runtime {name} is not installed")
    return name


@pytest.fixture
def classifier(tmp_path: Path) -> ModelFile:
    (tmp_path / "classifier.tflite").write_bytes(tiny_models.classifier())
    return read_model(tmp_path / "classifier.tflite")


@pytest.fixture
def additions(tmp_path: Path) -> ModelFile:
    (tmp_path / "add.tflite").write_bytes(tiny_models.add_chain(length=3))
    return read_model(tmp_path / "add.tflite")


def opened(model: ModelFile, runtime: str, text: str = "") -> Session:
    return open_session(model, Configuration.from_text("c", f"runtime={runtime} {text}"))


def test_kernel_sets_and_what_xnnpack_takes(classifier: ModelFile, runtime: str) -> None:
    default = opened(classifier, runtime)
    assert default.facts.kernels == "default"
    (xnnpack,) = default.delegation.delegates
    assert (xnnpack.delegate, xnnpack.requested) == ("XNNPACK", False)
    assert xnnpack.nodes is not None
    assert 0 < xnnpack.nodes <= default.delegation.total_nodes
    left = sum(default.delegation.cpu_operators.values())
    assert xnnpack.nodes + left == default.delegation.total_nodes == classifier.node_count
    for text, kernels in (
        ("use_xnnpack=false", "builtin"),
        ("kernels=builtin", "builtin"),
        ("kernels=reference", "reference"),
    ):
        session = opened(classifier, runtime, text)
        assert session.facts.kernels == kernels
        assert session.delegation.delegates == ()


def test_run_gives_copies_of_the_outputs_and_refuses_a_wrong_input(additions: ModelFile, runtime: str) -> None:
    session = opened(additions, runtime)
    ones = np.ones(session.inputs[0].shape, np.float32)
    first = session.run([ones])
    second = session.run([ones * 2])
    assert np.array_equal(first.outputs[0].astype(np.float32) * 2, second.outputs[0])
    with pytest.raises(InferenceError, match=r"Dimension mismatch|Cannot set tensor"):
        session.run([np.ones((1, 2), np.float32)])


def test_all_tensors_kept_show_the_largest_value_inside(additions: ModelFile, runtime: str) -> None:
    """The last of three additions gives the largest; without tensors kept it is not known."""
    kept = Configuration("kept", runtime=runtime, kernels="builtin", keeps_tensors=True)
    values = np.full(additions.inputs[0].shape, 2, np.float32)
    found = [open_session(additions, each).run([values]) for each in (kept, replace(kept, keeps_tensors=False))]
    assert [inference.largest for inference in found] == [float(np.abs(found[0].outputs[0]).max()), 0.0]


def test_the_example_delegate_takes_its_operators_and_xnnpack_the_rest(
    classifier: ModelFile, runtime: str, rounding_delegate: Path
) -> None:
    text = f"external_delegate_path={rounding_delegate} external_delegate_options=ops:conv"
    alone = opened(classifier, runtime, f"{text} use_xnnpack=false").delegation
    assert [coverage.delegate for coverage in alone.delegates] == ["EXTERNAL"]
    convolutions = opened(classifier, runtime, "use_xnnpack=false").delegation.cpu_operators["CONV_2D"]
    assert alone.delegated_nodes == convolutions
    assert "CONV_2D" not in alone.cpu_operators
    stacked = opened(classifier, runtime, text).delegation
    assert [(coverage.delegate, coverage.requested) for coverage in stacked.delegates] == [
        ("EXTERNAL", True),
        ("XNNPACK", False),
    ]
    assert stacked.delegates[0].nodes == convolutions
    assert stacked.delegated_nodes + sum(stacked.cpu_operators.values()) == stacked.total_nodes


def test_several_external_delegates_take_their_operators_in_order(
    classifier: ModelFile, runtime: str, rounding_delegate: Path
) -> None:
    left = opened(classifier, runtime, "use_xnnpack=false").delegation.cpu_operators
    first, second = (
        f"external_delegate_path={rounding_delegate} external_delegate_options={options}"
        for options in ("ops:conv,depthwise;max_nodes:1", "ops:conv,depthwise;precision:bf16")
    )
    session = opened(classifier, runtime, f"{first} {second} use_xnnpack=true")
    taken = [(coverage.delegate, coverage.requested, coverage.nodes) for coverage in session.delegation.delegates]
    convolutions = left["CONV_2D"] + left.get("DEPTHWISE_CONV_2D", 0)
    assert taken[:2] == [("EXTERNAL", True, 1), ("EXTERNAL#2", True, convolutions - 1)]
    assert taken[2][:2] == ("XNNPACK", True)
    (inputs,) = session.inputs
    picture = np.random.default_rng(1).random(inputs.shape, np.float32)
    alone = opened(classifier, runtime, f"{first} use_xnnpack=true").run([picture]).outputs[0]
    assert not np.array_equal(session.run([picture]).outputs[0], alone)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("fail:create", "refused to be created"),
        ("colour:red", "refused to be created: .*colour"),
        ("fail:prepare", "cannot load the model with"),
    ],
)
@pytest.mark.parametrize(("number", "name"), [(0, "EXTERNAL"), (1, "EXTERNAL#2")])
def test_a_delegate_that_fails_is_named_with_its_own_words(
    classifier: ModelFile, runtime: str, rounding_delegate: Path, number: int, name: str, options: str, words: str
) -> None:
    """Of several from one library too."""
    of_each = ["max_nodes:1", "ops:conv"]
    of_each[number] = options
    text = " ".join(f"external_delegate_path={rounding_delegate} external_delegate_options={one}" for one in of_each)
    with pytest.raises(ConfigurationUnavailable, match=words) as caught:
        opened(classifier, runtime, text)
    assert f"the external delegate {name} ({rounding_delegate})" in str(caught.value)
    assert caught.value.delegate == name


def test_a_delegate_that_fails_while_running_is_an_inference_error(
    classifier: ModelFile, runtime: str, rounding_delegate: Path
) -> None:
    text = f"external_delegate_path={rounding_delegate} external_delegate_options=fail:invoke"
    session = opened(classifier, runtime, text)
    messages = []
    for _ in range(3):
        with pytest.raises(InferenceError, match="failed to invoke") as caught:
            session.run([np.zeros(session.inputs[0].shape, np.float32)])
        messages.append(str(caught.value))
    assert messages[0] == messages[1] == messages[2]


def test_a_library_may_be_named_as_vendors_name_theirs(
    classifier: ModelFile, runtime: str, rounding_delegate: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a folder: the loader looks it up. A path with a folder never is."""
    name = rounding_delegate.name
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=rf"={name}: no such file here, and the loader finds no such library \(LD_LIB"):
        opened(classifier, runtime, f"external_delegate_path={name}")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{rounding_delegate.parent}")
    by_name = opened(classifier, runtime, f"external_delegate_path={name} use_xnnpack=false")
    by_path = opened(classifier, runtime, f"external_delegate_path={rounding_delegate} use_xnnpack=false")
    assert by_name.delegation == by_path.delegation
    with pytest.raises(UsageError, match=rf"=\./{name}: no such file$"):
        opened(classifier, runtime, f"external_delegate_path=./{name}")


def test_a_library_for_another_processor(
    classifier: ModelFile, runtime: str, rounding_delegate: Path, tmp_path: Path
) -> None:
    """The loader itself says that there is no such file."""
    content = bytearray(rounding_delegate.read_bytes())
    content[18:20] = (99).to_bytes(2, "little")  # the processor, in the header of an ELF file
    (tmp_path / "phone.so").write_bytes(content)
    with pytest.raises(
        ConfigurationUnavailable, match=r"phone\.so is built for another processor than this computer's"
    ):
        opened(classifier, runtime, f"external_delegate_path={tmp_path / 'phone.so'}")


def test_xnnpack_cannot_stand_before_an_external_delegate(
    classifier: ModelFile, runtime: str, rounding_delegate: Path
) -> None:
    with pytest.raises(ConfigurationUnavailable, match="put --external_delegate_path first"):
        opened(classifier, runtime, f"use_xnnpack=true external_delegate_path={rounding_delegate}")
    between = f"external_delegate_path={rounding_delegate} use_xnnpack=true external_delegate_path={rounding_delegate}"
    with pytest.raises(ConfigurationUnavailable, match="put --external_delegate_path first"):
        opened(classifier, runtime, between)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "use_gpu=true",
            "the GPU delegate cannot be created .* it runs in ai-edge-litert .--runtime=compiled., and the native",
        ),
        ("use_nnapi=true", "the NNAPI delegate cannot be created"),
        ("use_hexagon=true", "Qualcomm Hexagon DSP"),
        ("use_coreml=true", "Apple-silicon"),
        ("use_ynnpack=true", "YNNPACK"),
        ("stable_delegate_settings_file=x.json", "cannot load stable-ABI delegates"),
        ("use_xnnpack=true xnnpack_force_fp16=true", "--xnnpack_force_fp16 cannot be honoured"),
    ],
)
def test_what_cannot_be_created_here_says_where_it_would_work(
    classifier: ModelFile, runtime: str, text: str, message: str
) -> None:
    with pytest.raises(ConfigurationUnavailable, match=message):
        opened(classifier, runtime, text)


FP16 = "use_xnnpack=true xnnpack_force_fp16=true"


@pytest.mark.parametrize("named", ["", "runtime=compiled ", "runtime=litert "])
@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        ("external_delegate_path=x.so use_gpu=true", "GPU (compiled)", "EXTERNAL (litert, "),
        ("use_gpu=true external_delegate_path=x.so", "GPU (compiled)", "EXTERNAL (litert, "),
        (f"external_delegate_path=x.so {FP16}", "XNNPACK (compiled)", "EXTERNAL (litert, "),
    ],
)
def test_what_no_runtime_has_together_is_not_sent_from_one_to_the_other(
    classifier: ModelFile, text: str, one: str, other: str, named: str
) -> None:
    configuration = Configuration.from_text("c", named + text)
    runtime = find_runtime(configuration)
    with pytest.raises(ConfigurationUnavailable, match="^no Python runtime has all .*; drop one of them$") as caught:
        runtime.open(classifier, configuration)
    assert one in str(caught.value)
    assert other in str(caught.value)
    assert caught.value.cannot_exist


def node(index: int, name: str, inputs: list[int], outputs: list[int]) -> dict[str, object]:
    return {"index": index, "op_name": name, "inputs": inputs, "outputs": outputs}


@pytest.mark.parametrize(
    ("inputs", "outputs", "covered"),
    [([0, 10], [4], {0, 1, 2, 3}), ([1], [4], {1, 2, 3}), ([2, 3], [4], {3}), ([1], [2, 3], {1, 2})],
)
def test_a_partition_covers_what_makes_its_outputs_back_to_its_inputs(
    inputs: list[int], outputs: list[int], covered: set[int]
) -> None:
    """Tensor 0 goes into CONV_2D, whose output is multiplied and negated, and both are added; 10 is a weight."""
    diamond = [
        node(0, "CONV_2D", [0, 10], [1]),
        node(1, "MUL", [1, -1], [2]),
        node(2, "NEG", [1], [3]),
        node(3, "ADD", [2, 3], [4]),
    ]
    assert covered_nodes(node(4, "DELEGATE", inputs, outputs), diamond) == covered


def test_a_runtime_that_is_not_installed_is_named_with_the_fix(
    additions: ModelFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    with pytest.raises(ConfigurationUnavailable, match=r"litert is not installed; pip install ai-edge-litert"):
        opened(additions, "litert")


def test_tflite_runtime_with_numpy_2_is_recognised(additions: ModelFile, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"tflite-runtime": "2.14.0", "numpy": "2.1.0"}
    monkeypatch.setattr(importlib.metadata, "version", versions.__getitem__)
    with pytest.raises(
        ConfigurationUnavailable, match="built for NumPy 1 and fails with NumPy 2.1.0; pip install 'numpy<2'"
    ):
        opened(additions, "tflite_runtime")


def test_auto_prefers_ai_edge_litert(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"ai_edge_litert": object(), "tflite_runtime": object()}
    monkeypatch.setattr("importlib.util.find_spec", installed.get)
    plain = Configuration("c")
    assert find_runtime(plain).name == "litert"
    assert find_runtime(Configuration.from_text("c", "use_gpu=true")).name == "compiled"
    assert find_runtime(Configuration.from_text("c", "use_gpu=true gpu_backend=cl")).name == "compiled"
    assert find_runtime(Configuration.from_text("c", "use_xnnpack=true xnnpack_force_fp16=true")).name == "compiled"
    del installed["ai_edge_litert"]
    assert find_runtime(plain).name == "tflite_runtime"
    assert find_runtime(Configuration.from_text("c", "use_gpu=true")).name == "tflite_runtime"
    del installed["tflite_runtime"]
    with pytest.raises(ConfigurationUnavailable, match="no TensorFlow Lite runtime is installed"):
        find_runtime(plain)


def test_a_model_that_no_memory_holds_is_not_tried(tmp_path: Path) -> None:
    """A file of some hundred bytes can state it."""
    path = tmp_path / "huge.tflite"
    path.write_bytes(tiny_models.add_chain((1, 30_000, 30_000, 30_000), 2))
    with pytest.raises(ConfigurationUnavailable, match=r"tensors takes 1.08e\+05 GB, and a process may have"):
        open_session(read_model(path), Configuration("test"))
