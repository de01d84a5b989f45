"""Two models of the same graph, layer by layer; and a model against tensors that were saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import evaltools as et
from evaltools.locate.sides import NO_SUCH_NAME
from tests import locate_models
from tests.command import Completed, evaltools_here
from tests.locate.reading import read
from tests.locate_models import NET_OPERATORS, NET_SHAPE, NET_TENSORS, net_tensors, net_weights
from tests.tflite_writer import Graph

Array = npt.NDArray[Any]
SAMPLE = Path(__file__).resolve().parents[2] / "datasets" / "sample" / "models"


@pytest.fixture
def net(tmp_path: Path) -> Path:
    return written(tmp_path, "net", locate_models.net())


@pytest.fixture
def quantized(tmp_path: Path) -> Path:
    return written(tmp_path, "quantized", locate_models.quantized_net())


@pytest.fixture
def image() -> Array:
    return np.random.default_rng(3).uniform(-1, 1, NET_SHAPE).astype(np.float32)


@pytest.fixture
def tensors(image: Array) -> dict[str, Array]:
    """The net's tensors worked out in NumPy, as another framework saves them."""
    return {"image": image, **net_tensors(image, net_weights())}


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / f"{name}.tflite"
    path.write_bytes(content)
    return path


def saved(folder: Path, tensors: dict[str, Array]) -> Path:
    path = folder / "tensors.npz"
    arrays: dict[str, Any] = dict(tensors)
    np.savez(path, **arrays)
    return path


def with_wrong_weights(content: bytes, name: str) -> bytes:
    """The net with the weights of one layer in another order, as a converter that mixes up axes leaves them."""
    weights = net_weights()[f"{name} weights"]
    axis = 1 if len(weights) == 1 else 0
    whole = np.rint(weights / float(np.float32(np.abs(weights).max() / 127))).astype(np.int8)
    for stored in (weights, whole):
        if content.count(stored.tobytes()) == 1:
            return content.replace(stored.tobytes(), np.flip(stored, axis).tobytes())
    raise AssertionError(f"{name} has no such weights")


def locate(model: Path, *flags: str) -> tuple[Completed, dict[str, Any]]:
    output = model.with_suffix(".json")
    completed = evaltools_here("locate", str(model), "--progress=none", f"--output={output}", *flags)
    assert completed.code == 0, completed.err
    return completed, read(output)


def gains(found: dict[str, Any]) -> dict[str, float]:
    return {operator["tensor"]: operator["gain"] for operator in found["operators"] if "gain" in operator}


def largest_gain(found: dict[str, Any]) -> str:
    known = gains(found)
    return max(known, key=lambda name: known[name])


@pytest.mark.parametrize(
    ("is_quantized", "flags"),
    [(True, ()), (False, ("--use_xnnpack",)), (True, ("--use_xnnpack=false",))],
    ids=["quantised", "float", "quantised without XNNPACK"],
)
def test_float_and_quantised_are_apart_by_roundings(
    net: Path, quantized: Path, is_quantized: bool, flags: tuple[str, ...]
) -> None:
    tested, other = (quantized, net) if is_quantized else (net, quantized)
    completed, found = locate(tested, f"--reference_model_file={other}", "--num_inputs=3", *flags)
    assert found["kind"] == "compared by name"
    assert found["at_fault"] == []
    assert "8 of 8 operators have a tensor of the same name there" in completed.out
    assert "the error grows much at none of them" in completed.out
    assert [operator["status"] for operator in found["operators"]] == ["compared"] * 8
    assert all(0 < operator["accumulated_relative"] < 0.1 for operator in found["operators"])
    assert max(gains(found).values()) < 2
    assert "SQNR" in completed.err
    if tested == quantized:  # in real numbers: one step of its first tensor is worth its scale
        worst = found["operators"][0]["accumulated"]
        assert worst < 2 * locate_models.net_quantization()["stem"].scale


@pytest.mark.parametrize(
    ("name", "tested_is_quantized"), [("stem", False), ("spread", True), ("project", True), ("logits", False)]
)
def test_the_error_grows_most_where_it_was_planted(name: str, tested_is_quantized: bool, tmp_path: Path) -> None:
    clean = locate_models.net()
    wrong = with_wrong_weights(locate_models.quantized_net() if tested_is_quantized else clean, name)
    model, other = written(tmp_path, "wrong", wrong), written(tmp_path, "clean", clean)
    completed, found = locate(model, f"--reference_model_file={other}", "--num_inputs=2")
    assert largest_gain(found) == name
    place = NET_TENSORS.index(name)
    assert f"the error grows most at #{place} {NET_OPERATORS[place]} -> '{name}'" in completed.out
    before = [operator["accumulated_relative"] for operator in found["operators"][:place]]
    assert all(each < 0.1 for each in before)


def test_a_delegate_is_compared_with_another_model(net: Path, quantized: Path, faulty_delegate: Path) -> None:
    """Its tensors come as copies, in one compile; then each layer alone, and each in float."""
    delegate = (f"--external_delegate_path={faulty_delegate}", "--use_xnnpack=false")
    fault = "--external_delegate_options=tensor:project;fault:step;amount:40"
    _, found = locate(quantized, f"--reference_model_file={net}", *delegate, fault, "--num_inputs=2")
    assert largest_gain(found) == "project"
    assert found["compiles"] == 1 + 8 + 8
    alone = {operator["tensor"]: operator["single"] for operator in found["operators"]}
    assert max(alone, key=lambda tensor: alone[tensor]) == "project"


def test_the_samples_of_one_converter_match(tmp_path: Path) -> None:
    """The float16 model has other numbers at the ends of names, some of which name constants in it."""
    output = tmp_path / "found.json"
    for name in ("int8", "float16"):
        completed = evaltools_here(
            "locate", str(SAMPLE / f"{name}.tflite"), f"--reference_model_file={SAMPLE / 'float32.tflite'}",
            "--progress=none", "--num_inputs=2", f"--output={output}",
        )  # fmt: skip
        assert completed.code == 0, completed.err
        assert "19 of 19 operators have a tensor of the same name" in completed.out
        found = read(output)
        errors = [each["accumulated_relative"] for each in found["operators"] if "accumulated_relative" in each]
        assert len(errors) == 19
        assert max(errors) < (0.1 if name == "int8" else 0.002)


def test_a_tensor_without_a_partner_is_not_tried_and_the_error_goes_past_it(net: Path, tmp_path: Path) -> None:
    renamed = locate_models.net().replace(b"project\0", b"someone\0")
    wrong = written(tmp_path, "wrong", with_wrong_weights(renamed, "stem"))
    _, found = locate(net, f"--reference_model_file={wrong}", "--num_inputs=2")
    project = found["operators"][2]
    assert (project["status"], project["why"]) == (
        "not tried",
        "the other side has no tensor of that name, or several",
    )
    assert found["text"].startswith("compared by name: 7 of 8 operators have a tensor of the same name there; ")
    assert gains(found)["total"] < 2


def test_a_part_of_the_model(net: Path, quantized: Path) -> None:
    _, found = locate(quantized, f"--reference_model_file={net}", "--operators=3-4")
    assert [operator["index"] for operator in found["operators"]] == [3, 4]
    assert all(operator["gain"] < 2 for operator in found["operators"])


def test_the_first_that_is_not_a_number_is_named(tmp_path: Path) -> None:
    models = []
    for name, low in (("tested", 0.0), ("other", 1.0)):
        graph = Graph()
        first = graph.tensor("x", (1, 4))
        shift = graph.constant("shift", np.array([low - 1.0], np.float32))
        moved = graph.node("MUL", [first, shift], graph.tensor("moved", (1, 4)), "MulOptions")
        root = graph.node("SQRT", [moved], graph.tensor("root", (1, 4)))
        last = graph.node("NEG", [root], graph.tensor("last", (1, 4)), "NegOptions")
        models.append(written(tmp_path, name, graph.to_bytes([first], [last])))
    completed, found = locate(models[0], f"--reference_model_file={models[1]}", "--input_range=x:1:2")
    assert "the first with NaN or infinity is #1 SQRT -> 'root'" in completed.out
    assert found["operators"][1]["accumulated_first_not_finite"] == 0
    assert "NaN or inf" in completed.err


def test_saved_tensors(net: Path, quantized: Path, tensors: dict[str, Array], tmp_path: Path) -> None:
    """NumPy's own arithmetic, in float64: the float net agrees with it to roundings, the int8 one to steps."""
    file = saved(tmp_path, tensors)
    completed, found = locate(net, f"--reference_tensors={file}")
    assert "8 of 8 operators" in completed.out
    assert found["given"] == "1: saved in tensors.npz"
    assert max(operator["accumulated_relative"] for operator in found["operators"]) < 1e-5
    _, found = locate(quantized, f"--reference_tensors={file}")
    assert max(operator["accumulated_relative"] for operator in found["operators"]) < 0.1
    assert max(gains(found).values()) < 3


def test_inputs_may_lie_elsewhere_and_sizes_of_1_may_differ(
    net: Path, tensors: dict[str, Array], tmp_path: Path
) -> None:
    np.save(tmp_path / "image.npy", tensors.pop("image"))
    squeezed = {name: values.squeeze() for name, values in tensors.items() if name != "pooled"}
    file = saved(tmp_path, squeezed)
    _, found = locate(net, f"--reference_tensors={file}", f"--input_files={tmp_path / 'image.npy'}")
    assert [operator["index"] for operator in found["operators"] if operator["status"] == "not tried"] == [4]
    assert found["operators"][4]["why"] == NO_SUCH_NAME


def test_names_that_match_nothing_are_listed(net: Path, tensors: dict[str, Array], tmp_path: Path) -> None:
    file = saved(tmp_path, {**tensors, "layer1.conv": np.zeros(3), "stem weights": np.zeros(3)})
    completed, found = locate(net, f"--reference_tensors={file}")
    assert found["warnings"] == [
        "tensors.npz has arrays whose names are those of no tensor that an operator computes: 'layer1.conv', "
        "'stem weights'"
    ]
    assert "layer1.conv" in completed.out


def test_from_python(net: Path, quantized: Path, tensors: dict[str, Array], tmp_path: Path) -> None:
    found = et.locate(quantized, reference_model_file=net, num_inputs=2)
    assert found.verdict.kind == "compared by name"
    assert all(operator.value("accumulated_sqnr_db") for operator in found.operators)
    found = et.locate(net, reference_tensors=saved(tmp_path, tensors))
    assert found.in_words[0].startswith("compared by name: 8 of 8 operators")
    with pytest.raises(et.UsageError, match="has no effect with reference_tensors"):
        et.locate(net, reference_model_file=quantized, reference_tensors=saved(tmp_path, tensors))


@pytest.mark.parametrize(
    ("changes", "flags", "message"),
    [
        ({"image": None}, [], "has none of the model's inputs (image: float32[1,16,16,3])"),
        ({"image": None}, ["--input_range=image:0:1"], "or give it as --input_files=FILE.npy"),
        ({}, ["--input_range=image:0:1"], "has the inputs, too; leave --input_range out"),
        ({}, ["--num_inputs=3"], "the tensors of one input; leave --num_inputs out"),
        ({"stem": np.zeros((1, 8, 8, 3))}, [], "'stem' has the shape [1, 8, 8, 3], the tensor [1, 8, 8, 8]"),
        ({"image": np.zeros((1, 3, 16, 16))}, [], "looks like NCHW, as PyTorch has it: save .permute(0, 2, 3, 1)"),
        ({"logits": np.zeros((10, 2))}, [], "only sizes of 1 may differ"),
        ({"stem": np.array(["a"])}, [], "'stem' holds <U1; save real numbers"),
        ({"stem": np.array([None])}, [], "it holds Python objects (pickles), which are never loaded"),
        (dict.fromkeys(NET_TENSORS), [], "has no array with the name of a tensor that an operator computes"),
        ({**dict.fromkeys(NET_TENSORS), "stems": np.zeros(3)}, [], "Did you mean stem?"),
        ({}, ["--bundle=folder"], "has no effect with --bundle=folder"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_saved_tensors_is_said(
    net: Path, tensors: dict[str, Array], tmp_path: Path, changes: dict[str, Any], flags: list[str], message: str
) -> None:
    changed = {name: values for name, values in {**tensors, **changes}.items() if values is not None}
    completed = evaltools_here("locate", str(net), f"--reference_tensors={saved(tmp_path, changed)}", *flags)
    assert completed.code == 2
    assert message in completed.err
    assert "Traceback" not in completed.err


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is no .npz file"), (b"PK\x03\x04 cut", "is no .npz file"), (None, "cannot be read: No such file")],
)
def test_files_that_cannot_be_read(net: Path, tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "tensors.npz"
    if content is not None:
        file.write_bytes(content)
    completed = evaltools_here("locate", str(net), f"--reference_tensors={file}")
    assert (completed.code, message in completed.err) == (2, True), completed.err


def test_what_is_wrong_with_another_model_is_said(net: Path, quantized: Path, tmp_path: Path) -> None:
    stranger = written(tmp_path, "stranger", locate_models.same_conv())
    renamed = locate_models.net()
    for name in NET_TENSORS:
        renamed = renamed.replace(name.encode() + b"\0", name[::-1].encode() + b"\0")
    nameless = written(tmp_path, "nameless", renamed)
    both = [f"--reference_model_file={quantized}", "--reference_tensors=tensors.npz"]
    for flags, message in (
        ([f"--reference_model_file={stranger}"], "does not fit the input"),
        ([f"--reference_model_file={nameless}"], "has no tensor with the name of one in"),
        (both, "has no effect with"),
    ):
        completed = evaltools_here("locate", str(net), *flags)
        assert (completed.code, message in completed.err) == (2, True), completed.err


def test_a_crash_is_a_finding(net: Path, quantized: Path, rounding_delegate: Path) -> None:
    delegate = f"--external_delegate_path={rounding_delegate}"
    options = ("--external_delegate_options=ops:depthwise;fail:abort", "--use_xnnpack=false")
    completed = evaltools_here("locate", str(net), f"--reference_model_file={quantized}", delegate, *options)
    assert completed.code == 3
    assert "SIGABRT" in completed.out
