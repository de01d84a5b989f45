"""Two models compared with each other: which tensors belong together, numbers in other units, and whole diffs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.datasets.sample import model_file
from evaltools.errors import DataError, ModelError
from evaltools.model import ModelFile, TensorInfo
from evaltools.runtime.session import Array
from evaltools.tasks.framework.request import TaskRequest
from evaltools.tasks.inference_diff.input_options import InputOptions
from evaltools.tasks.inference_diff.model_pair import ModelPair, convert, pair_models
from evaltools.tasks.inference_diff.result import DiffComparison
from tests import tiny_models
from tests.interpreters import RUNTIMES, make_interpreter, run
from tests.runtime.fake import open_here
from tests.tasks.facts import diff_of, evaluate
from tests.tasks.inference_diff.fakes import material_of, request_for, stating
from tests.tasks.observers import Silent


def tensor(name: str, shape: tuple[int, ...] = (1, 4), dtype: str = "float32", **facts: object) -> TensorInfo:
    return replace(TensorInfo(0, name, dtype, shape, shape, None, None), **facts)


def quantised(name: str, dtype: str, scale: float, zero_point: int) -> TensorInfo:
    return tensor(name, dtype=dtype, scale=scale, zero_point=zero_point)


def model(name: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo] = ()) -> ModelFile:
    return ModelFile(Path(name), "", 0, tuple(inputs), tuple(outputs), 1, None)


def pair(own: Sequence[TensorInfo], others: Sequence[TensorInfo]) -> ModelPair:
    return pair_models(model("test", own), model("ref", others))


def named(*names: str) -> list[TensorInfo]:
    return [tensor(name) for name in names]


@pytest.mark.parametrize(
    ("own", "others", "order"),
    [
        (("a", "b", "c"), ("c", "a", "b"), (1, 2, 0)),
        (("a", "b", "c"), ("x", "a", "y"), (1, 0, 2)),
        (("x", "y"), ("p", "q"), (0, 1)),
        (("x", "b"), ("b", "b"), (0, 1)),
        (("", ""), ("", ""), (0, 1)),
        ((), (), ()),
    ],
)
def test_tensors_match_by_name_and_then_by_order(
    own: tuple[str, ...], others: tuple[str, ...], order: tuple[int, ...]
) -> None:
    assert pair(named(*own), named(*others)).input_order == order
    assert pair_models(model("test", (), named(*own)), model("ref", (), named(*others))).output_order == order


def test_names_in_signatures_match_names_of_tensors() -> None:
    own = [tensor("serving_a:0", signature_name="a"), tensor("b")]
    assert pair(own, [tensor("serving_b:0", signature_name="b"), tensor("a")]).input_order == (1, 0)


def test_sizes_of_1_may_differ_and_others_may_not() -> None:
    assert pair([tensor("a", (1, 1, 4))], [tensor("a", (4, 1))]).input_order == (0,)
    message = (
        r"the input a: float32\[2,4\] of test does not fit the input a: float32\[4,2\] of ref: shapes may differ only "
        "in sizes of 1"
    )
    with pytest.raises(ModelError, match=message):
        pair([tensor("a", (2, 4))], [tensor("a", (4, 2))])


def test_inputs_of_one_name_are_not_given_up_for_those_that_fit() -> None:
    with pytest.raises(ModelError, match="Inputs are matched by name, then by order; use --signature, or convert"):
        pair([tensor("a", (4,)), tensor("b", (5,))], [tensor("b", (4,)), tensor("a", (5,))])


def test_texts_are_compared_with_texts_alone() -> None:
    assert pair([tensor("a", dtype="string")], [tensor("a", dtype="string")]).input_order == (0,)
    with pytest.raises(ModelError, match="does not fit"):
        pair([tensor("a", dtype="string")], [tensor("a")])


def test_models_with_more_or_fewer_tensors_are_refused() -> None:
    with pytest.raises(ModelError, match=r"test has 1 inputs \(a: float32\[1,4\]\), ref has 0 \(none\); models"):
        pair(named("a"), [])
    with pytest.raises(ModelError, match="test has 0 outputs .* ref has 2 "):
        pair_models(model("test", ()), model("ref", (), named("a", "b")))


def test_inputs_are_told_in_the_quantised_one_of_two() -> None:
    whole, real = quantised("a", "int8", 0.5, 3), tensor("a")
    other = quantised("a", "uint8", 0.25, 0)
    assert [pair([own], [reference]).inputs for own, reference in ((whole, real), (real, whole), (other, whole))] == [
        (whole,),
        (whole,),
        (other,),
    ]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_quantised_numbers_survive_the_way_to_float_and_back(dtype: str) -> None:
    limits = np.iinfo(dtype)
    numbers = np.arange(limits.min, limits.max + 1).astype(dtype)
    own = tensor("a", numbers.shape, dtype, scale=float(np.float32(0.0123)), zero_point=7)
    other = tensor("a", numbers.shape)
    real = convert(numbers, own, other)
    assert real.dtype == np.float32
    assert real[:2].tolist() == pytest.approx([(limits.min - 7) * 0.0123, (limits.min - 6) * 0.0123])
    assert convert(real, other, own).tolist() == numbers.tolist()


def test_quantised_numbers_are_rounded_to_nearest_and_cut_to_the_range() -> None:
    values = np.array([[-100, -0.3, 0.3, 100]], np.float32)
    assert convert(values, tensor("a"), quantised("a", "int8", 0.5, 10)).tolist() == [[-128, 9, 11, 127]]
    given, wanted = quantised("a", "uint8", 1.0, 128), quantised("a", "int8", 2.0, 0)
    assert convert(np.array([[0, 128, 131, 255]], np.uint8), given, wanted).tolist() == [[-64, 0, 2, 64]]


def test_plain_whole_numbers_keep_their_value() -> None:
    given, wanted = tensor("a", (4, 1), "int64"), tensor("a", dtype="int32")
    assert convert(np.array([[5], [-7], [2**40], [0]]), given, wanted).tolist() == [[5, -7, 2**31 - 1, 0]]
    assert convert(np.array([0.6, -0.6, 2.5, 3.0]), tensor("a", (4,)), wanted).tolist() == [[1, -1, 2, 3]]


def test_the_same_type_is_only_reshaped() -> None:
    words = np.array([b"a", b"b\0"], object)
    assert convert(words, tensor("a", (2,), "string"), tensor("a", (1, 2), "string")).tolist() == [[b"a", b"b\0"]]
    values = np.array([[2**62 + 1, 1, 2, 3]])
    same = tensor("a", (4,), "int64")
    assert convert(values, tensor("a", dtype="int64"), same).tolist() == [2**62 + 1, 1, 2, 3]


def test_the_reference_gets_its_inputs_and_gives_outputs_in_the_order_of_the_test_model() -> None:
    test = model("test", [tensor("a"), tensor("b", (2,))], [tensor("x", (1, 2)), tensor("y")])
    reference = model("ref", [tensor("b", (1, 2)), quantised("a", "int8", 0.5, 0)], [tensor("y"), tensor("x", (2,))])
    got: list[list[object]] = []

    def answer(inputs: Sequence[Array]) -> tuple[Array, ...]:
        got.extend([values.dtype.name, values.tolist()] for values in inputs)
        return np.zeros((1, 4)), np.array([8, 9])

    found = pair_models(test, reference)
    inputs: list[Array] = [np.array([[1, 2, 3, 4]], np.int8), np.array([5, 6], np.float32)]
    outputs = found.reference_side.in_order(answer(found.reference_side.fed(inputs)))
    assert got == [["float32", [[5, 6]]], ["int8", [[1, 2, 3, 4]]]]
    assert [values.tolist() for values in outputs] == [[[8, 9]], [[0, 0, 0, 0]]]
    got.clear()
    answer(found.test_side.fed(inputs))
    assert got == [["float32", [[0.5, 1, 1.5, 2]]], ["float32", [5, 6]]]


def test_outputs_of_another_size_than_stated_are_handed_on() -> None:
    found = pair_models(model("test", (), named("a")), model("ref", (), named("a")))
    assert found.reference_side.in_order([np.zeros(7)])[0].shape == (7,)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_real_numbers_are_those_of_the_runtime(runtime: str) -> None:
    """What DEQUANTIZE makes of a quantised input: the two models then give the same scores."""
    whole = make_interpreter(runtime, tiny_models.classifier(input_dtype="int8"))
    real = make_interpreter(runtime, tiny_models.classifier())
    shape = (1, 16, 16, 3)
    image = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    quantization = tiny_models.INPUT_QUANTIZATION["int8"]
    given = tensor("input", shape, "int8", scale=quantization.scale, zero_point=quantization.zero_point)
    assert run(whole, [image]).tolist() == run(real, [convert(image, given, tensor("input", shape))]).tolist()


CPU = Configuration("test", kernels="builtin")
REFERENCE = Configuration("reference", kernels="builtin")


def compared(request: TaskRequest) -> tuple[str, DiffComparison]:
    """The kind of the verdict on the test, and its comparison."""
    result = evaluate(request, Silent(), open_here)
    (verdict,) = result.rows[-1].verdicts
    return verdict.kind, diff_of(result).comparisons[0]


def of_two_configurations(model: str, **changes: Any) -> TaskRequest:
    made = {
        "model_file": model_file(model),
        "reference": REFERENCE,
        "tests": (CPU,),
        "inputs": InputOptions(num_runs=12),
        "noise_floor_runs": 0,
    }
    return request_for(**{**made, **changes})


def test_saved_outputs_of_the_float_model_give_the_same_as_the_float_model_itself(tmp_path: Path) -> None:
    """The quantised model's inputs are the rounded ones here, the float model's there; the outputs are as far apart."""
    saving = of_two_configurations("float32", save_outputs=tmp_path / "saved")
    evaluate(saving, Silent(), open_here)
    loading = of_two_configurations(
        "int8", reference=None, inputs=InputOptions(), load_reference=tmp_path / "saved", allow_model_mismatch=True
    )
    found = compared(loading)[1].outputs[0].difference
    both = of_two_configurations("int8", reference_model_file=model_file("float32"))
    direct = compared(both)[1].outputs[0].difference
    assert found.relative_rms is not None
    assert direct.relative_rms is not None
    assert found.relative_rms == pytest.approx(direct.relative_rms, rel=1.0)
    assert found.relative_rms < 0.3


def test_a_signature_holds_for_the_reference_model_and_for_saved_outputs(tmp_path: Path) -> None:
    path = tmp_path / "two.tflite"
    path.write_bytes(tiny_models.two_signatures())
    request = request_for(
        model_file=path,
        reference=REFERENCE,
        tests=(CPU,),
        inputs=InputOptions(num_runs=2),
        reference_model_file=path,
        noise_floor_runs=0,
    )
    for signature in material_of(request).model.signatures:
        assert compared(stating(request, signature=signature))[0] == "identical"
    first, second = material_of(request).model.signatures
    saving = stating(replace(request, reference_model_file=None), signature=first, save_outputs=tmp_path / "saved")
    evaluate(saving, Silent(), open_here)
    loading = request_for(
        model_file=path, reference=None, tests=(CPU,), signature=second, load_reference=tmp_path / "saved"
    )
    with pytest.raises(DataError, match=f"was saved with --signature='{first}', here it is '{second}'"):
        material_of(loading)
