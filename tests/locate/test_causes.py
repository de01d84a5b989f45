"""Each known way to be wrong, made on the output of a small model, is named; what only looks like one is not."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import tflite
from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.locate.causes import find_causes
from evaltools.model import read_model
from evaltools.model.rounding import round_to
from evaltools.operators.part import Case
from evaltools.runtime.registry import open_session
from tests.tflite_writer import Graph, Quantization

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
CPU = Configuration("CPU", kernels="builtin")


def random(shape: Sequence[int], seed: int = 0, scale: float = 1.0) -> Floats:
    """Normal numbers, the same each time."""
    return (scale * np.random.default_rng(seed).standard_normal(tuple(shape))).astype(np.float32)


def whole(shape: Sequence[int], seed: int = 0, low: int = -128, high: int = 127) -> Array:
    """Bytes, the same each time."""
    return np.random.default_rng(seed).integers(low, high + 1, tuple(shape)).astype(np.int8)


def run(path: Path, inputs: Sequence[Array], configuration: Configuration = CPU) -> Array:
    """The first output."""
    session = open_session(read_model(path), configuration)
    try:
        return session.run(list(inputs)).outputs[0]
    finally:
        session.close()


def model(
    operator: str,
    inputs: Sequence[Array],
    output: Sequence[int],
    constants: Sequence[Array] = (),
    options: str = "",
    quantizations: Sequence[Quantization | None] = (),
    constants_first: bool = False,
    dtype: str = "",
    **fields: Any,
) -> bytes:
    """A model of one operator: its inputs, then its constants; quantisations are theirs and the output's, in order."""
    graph = Graph()
    rest = iter([*quantizations, *[None] * (len(inputs) + len(constants) + 1 - len(quantizations))])
    fed = [graph.tensor(f"x{place}", each.shape, each.dtype.name, next(rest)) for place, each in enumerate(inputs)]
    fixed = [graph.constant(f"c{place}", each, next(rest)) for place, each in enumerate(constants)]
    made = graph.tensor("y", output, dtype or inputs[0].dtype.name, next(rest))
    graph.node(operator, [*fixed, *fed] if constants_first else [*fed, *fixed], made, options, **fields)
    return graph.to_bytes(fed, [made])


def case(
    folder: Path,
    operator: str,
    content: bytes,
    inputs: Sequence[Array],
    fault: Callable[[Array], Array],
    tolerance: float | None = None,
    before: Sequence[Array] | None = None,
) -> Case:
    """A case whose ``given`` is what the fault makes of the CPU's output."""
    path = folder / "part.tflite"
    path.write_bytes(content)
    expected = run(path, inputs)
    earlier = run(path, before or [np.roll(each, 7) for each in inputs])
    fed: dict[str, Any] = {f"input_{10 + place}": each for place, each in enumerate(inputs)}
    given = fault(expected)
    assert given.dtype == expected.dtype
    np.savez(folder / "part.npz", **fed, expected=expected, given=given, before=earlier, output=0)
    steps = expected.dtype in (np.int8, np.uint8, np.int16)
    limit = 1e-5 * float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    return Case(
        index=3,
        operator=operator,
        tensor="y",
        unit="steps" if steps else "absolute",
        tolerance=tolerance if tolerance is not None else 1.0 if steps else limit,
        model=path,
        arrays=folder / "part.npz",
        configuration=CPU,
    )


RELU = tflite.ActivationFunctionType.RELU
_SAME: dict[str, Any] = {
    "Padding": tflite.Padding.SAME, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1,
}  # fmt: skip
Model = tuple[bytes, list[Array]]


def add(shape: tuple[int, ...] = (1, 6, 7, 5)) -> Model:
    inputs: list[Array] = [random(shape, 1), random(shape, 2)]
    return model("ADD", inputs, shape, options="AddOptions"), inputs


def add_int8(shape: tuple[int, ...] = (1, 6, 7, 5)) -> Model:
    inputs = [whole(shape, 1, -100, 100), whole(shape, 2, -100, 100)]
    quantizations = [Quantization(0.5, -3), Quantization(0.25, 4), Quantization(0.75, 5)]
    return model("ADD", inputs, shape, options="AddOptions", quantizations=quantizations), inputs


def conv(activation: int = 0, bias: bool = True) -> Model:
    """[1, 12, 12, 4] -> [1, 12, 12, 8]."""
    inputs: list[Array] = [random((1, 12, 12, 4), 1)]
    constants = [random((8, 3, 3, 4), 2, 0.3), random((8,), 3) if bias else np.zeros(8, np.float32)]
    fields = {**_SAME, "FusedActivationFunction": activation}
    return model("CONV_2D", inputs, (1, 12, 12, 8), constants, "Conv2DOptions", **fields), inputs


def conv_int8() -> Model:
    inputs = [whole((1, 12, 12, 4), 1)]
    constants = [whole((8, 3, 3, 4), 2), np.arange(8, dtype=np.int32) * 50]
    quantizations = [Quantization(0.05, 60), Quantization(0.01, 0), Quantization(0.0005, 0), Quantization(0.3, -10)]
    return model("CONV_2D", inputs, (1, 12, 12, 8), constants, "Conv2DOptions", quantizations, **_SAME), inputs


def depthwise(multiplier: int) -> Model:
    """[1, 6, 6, 4] with a window of 1x1."""
    inputs: list[Array] = [random((1, 6, 6, 4), 1)]
    constants = [random((1, 1, 1, 4 * multiplier), 2), random((4 * multiplier,), 3)]
    fields = {**_SAME, "DepthMultiplier": multiplier}
    shape = (1, 6, 6, 4 * multiplier)
    return model("DEPTHWISE_CONV_2D", inputs, shape, constants, "DepthwiseConv2DOptions", **fields), inputs


def unary(operator: str, values: Array, options: str = "", **fields: Any) -> Model:
    return model(operator, [values], values.shape, options=options, **fields), [values]


def fully_connected(shape: tuple[int, ...] = (1, 5, 4, 3), units: int = 12) -> Model:
    inputs: list[Array] = [random(shape, 1)]
    weights, biases = random((units, int(np.prod(shape))), 2), random((units,), 3)
    return model("FULLY_CONNECTED", inputs, (1, units), [weights, biases], "FullyConnectedOptions"), inputs


def quantized_mul() -> Model:
    inputs = [whole((1, 400), 1), whole((1, 400), 2)]
    quantizations = [Quantization(0.5, 2), Quantization(0.25, -5), Quantization(20.1, 3)]
    return model("MUL", inputs, (1, 400), options="MulOptions", quantizations=quantizations), inputs


def sum_of_an_image(operator: str = "SUM", largest: float = 20.0) -> Model:
    values = (largest * np.random.default_rng(1).random((1, 112, 112, 4))).astype(np.float32)
    axes = np.array([1, 2], np.int32)
    return model(operator, [values], (1, 1, 1, 4), [axes], "ReducerOptions", KeepDims=True), [values]


Spoil = Callable[[Array, list[Array]], Array]
NOISE = random((1, 12, 12, 8), 7)
INSIDE = (slice(None), slice(1, -1), slice(1, -1))
PLACES = np.random.default_rng(3).random((1, 12, 12, 8)) < 0.1
MODELS: tuple[tuple[str, Callable[[], Model]], ...] = (
    ("ADD", add),
    ("CONV_2D", conv),
    ("FULLY_CONNECTED", fully_connected),
    ("LOGISTIC", lambda: unary("LOGISTIC", random((1, 9, 6, 4)))),
)
GPU = Configuration.from_text("gpu", "use_gpu=true")


class Fault(Struct, frozen=True):
    """A model of one operator, what is made of its output, and what is to be found: a cause, and words of it."""

    operator: str
    model: Callable[[], Model]
    spoil: Spoil
    cause: str = ""
    says: tuple[str, ...] = ()
    tolerance: float | None = None


def put(where: Any, values: Any) -> Spoil:
    """Other values at some places."""

    def spoil(expected: Array, _inputs: list[Array]) -> Array:
        given = expected.copy()
        given[where] = values
        return given

    return spoil


def keep(where: Any) -> Spoil:
    """Noise everywhere but there."""

    def spoil(expected: Array, _inputs: list[Array]) -> Array:
        given = np.add(expected, NOISE)
        given[where] = expected[where]
        return given

    return spoil


def where(is_spoilt: Callable[[Array, list[Array]], Any], value: float) -> Spoil:
    return lambda y, inputs: np.where(is_spoilt(y, inputs), np.float32(value), y)


def flat(where: slice, values: Any) -> Spoil:
    def spoil(expected: Array, _inputs: list[Array]) -> Array:
        given = expected.copy()
        given.reshape(-1)[where] = values
        return given

    return spoil


def in_bytes(change: Callable[[Array], Any]) -> Spoil:
    return lambda y, _: np.clip(np.rint(change(y.astype(float))), -128, 127).astype(np.int8)


def floats(change: Callable[[Array], Any]) -> Spoil:
    return lambda y, _: np.asarray(change(y), np.float32)


def times(factor: Any) -> Spoil:
    return floats(lambda y: y * np.asarray(factor, np.float32))


def noise(scale: float) -> Spoil:
    return floats(lambda y: y + random(y.shape, 11, scale * float(np.std(y))))


def steps(size: int) -> Spoil:
    return in_bytes(lambda y: y + np.random.default_rng(size).integers(-size, size + 1, y.shape))


def moved(rows: int, columns: int) -> Spoil:
    """At the border, where values come from outside, there are others."""

    def spoil(expected: Array, _inputs: list[Array]) -> Array:
        filled = np.pad(expected, [(0, 0), (2, 2), (2, 2), (0, 0)], constant_values=9)
        return filled[:, 2 + rows : 14 + rows, 2 + columns : 14 + columns]

    return spoil


def of_other_channels(expected: Array, inputs: list[Array]) -> Array:
    """As a GPU in software gives it: weight ``m * 4 + c`` for output ``c * 2 + m``."""
    weights, bias = random((1, 1, 1, 8), 2), random((8,), 3)
    given = [inputs[0][..., out // 2] * weights[0, 0, 0, out % 2 * 4 + out // 2] + bias[out] for out in range(8)]
    return np.asarray(np.stack(given, -1), expected.dtype)


def found(fault: Fault, folder: Path) -> Any:
    content, inputs = fault.model()
    return case(folder, fault.operator, content, inputs, lambda y: fault.spoil(y, inputs), fault.tolerance)


def square() -> Model:
    return unary("SQUARE", random((1, 60), 1, 300))


def tanh(*shape: int) -> Callable[[], Model]:
    return lambda: unary("TANH", random(shape, 1))


NAMED = {
    **{
        f"beyond fp16 came as {bound}": Fault("SQUARE", square, where(lambda y, _: y > 65504, bound), "fp16 overflow")
        for bound in (65504.0, 65500.0, np.inf, np.nan)
    },
    "a mean whose sum is beyond fp16": Fault(
        "MEAN", lambda: sum_of_an_image("MEAN"), floats(lambda y: np.full_like(y, 65504 / 112**2)),
        "fp16 overflow", ("the sum of 12544 values is up to 12",),
    ),
    "saturated": Fault(
        "ADD", add_int8, in_bytes(lambda y: np.clip(y, -60, 40)), "values cut at a bound",
        ("values stand at -60 and 40, which stand for -48.75 and 26.25, where the CPU has -",),
    ),
    "cut": Fault(
        "CONV_2D", conv, floats(lambda y: np.clip(y, -1.5, 2.5)), "values cut at a bound",
        ("stand at -1.5 and 2.5",),
    ),
    "no number": Fault(
        "CONV_2D", conv, where(lambda *_: PLACES, np.nan), "NaN or infinity",
        (f"{PLACES.sum()} of 1152 values are NaN",),
    ),
    "the border": Fault(
        "CONV_2D", conv, keep(INSIDE), "wrong at the border",
        ("44 of 144 pixels of 12 x 12 are wrong, each within 1 of the border",
         "(top, bottom, left, right); the 100 pixels inside are right"),
    ),
    "one side": Fault("CONV_2D", conv, keep((slice(None), slice(-1))), "wrong at the border", ("(bottom)",)),
    "the last lanes": Fault(
        "TANH", tanh(10, 35), put((slice(None), slice(32, None)), random((10, 3), 2)), "wrong in the last lanes",
        ("in the last 3 of 35 channels of the last dimension",),
    ),
    "few channels": Fault(
        "CONV_2D", conv, put((Ellipsis, [1, 4]), NOISE[..., [1, 4]]), "wrong in few channels",
        ("all 288 wrong values lie in 2 of 8 channels: 1, 4",),
    ),
    **{
        f"times {factor:g}": Fault(
            "CONV_2D", conv, times(factor), "multiplied by a constant",
            (f"are {factor:g} times the CPU's",),
        )
        for factor in (0.5, 1.01, 128.0)
    },
    "the other sign": Fault("CONV_2D", conv, floats(np.negative), "sign flipped"),
    "half of whole numbers": Fault(
        "CONV_2D", conv_int8, in_bytes(lambda y: (y + 10) * 0.5 - 10), "multiplied by a constant", ("are 0.",)
    ),
    "another zero point": Fault(
        "CONV_2D", conv_int8, in_bytes(lambda y: y + 10), "moved by a constant", ("the CPU's +10 steps",)
    ),
    "scales of channels": Fault(
        "CONV_2D", conv, times(np.array([1, 1, 0.5, 1, 1, 3, 1, 1], np.float32)), "wrong scale of channels",
        ("2 of 8 channels (the first is 2)", "from 0.5 to 3"),
    ),
    "channels moved": Fault(
        "CONV_2D", conv, floats(lambda y: y + random((8,), 4)), "channels moved by constants",
        ("8 of 8 channels",),
    ),
    "an operand": Fault(
        "ADD", add, lambda _, inputs: inputs[1], "an operand was returned",
        ("all 210 values are those of operand 1, 'x1'", "RESHAPE", "/LiteRT/issues/8599"),
    ),
    "an operand of whole numbers": Fault(
        "ADD", add_int8, lambda _, inputs: inputs[0], "an operand was returned"
    ),
    "the only operand": Fault(
        "NEG", lambda: unary("NEG", random((1, 40))), lambda _, inputs: inputs[0], "the operator was skipped"
    ),
    "nothing written": Fault(
        "CONV_2D", conv, floats(np.zeros_like), "one value everywhere",
        ("all 1152 values are 0; the CPU's are from -",),
    ),
    "another shape": Fault(
        "CONV_2D", conv, lambda y, _: y[:, :-1], "another shape",
        ("the output is [1, 11, 12, 8], and [1, 12, 12, 8] on the CPU",),
    ),
}  # fmt: skip
NOT_NAMED = {
    "what is right": Fault("CONV_2D", conv, floats(np.copy)),
    "large values and noise": Fault("SQUARE", square, floats(lambda y: y + random((1, 60), 9, 1e4))),
    "the largest alone": Fault("ADD", add_int8, in_bytes(lambda y: np.where(y == y.max(), y - 9, y))),
    "the border and a pixel": Fault(
        "CONV_2D", conv, lambda y, _: np.where(NOISE[:, 6:7, 6:7] == NOISE, y + 1, keep(INSIDE)(y, []))
    ),
    "a few errors in few channels": Fault("TANH", tanh(10, 20), put(([2, 5, 8], [1, 7, 11]), 3.0)),
    "a step to both sides": Fault(
        "MUL", quantized_mul, in_bytes(lambda y: y + np.random.default_rng(3).integers(-1, 2, y.shape)),
        tolerance=0.0,
    ),
    "few digits and large errors": Fault(
        "CONV_2D", conv, floats(lambda y: round_to(y + random(y.shape, 5, 0.3), "fp16"))
    ),
    "a multiple and noise": Fault("CONV_2D", conv, floats(lambda y: y * 1.2 + random(y.shape, 3, 0.2))),
    "two values": Fault(
        "FULLY_CONNECTED", lambda: fully_connected(units=2), floats(lambda y: np.add(y, [[1, -2]]))
    ),
    "an operand but for one value": Fault(
        "ADD", add, lambda _, inputs: flat(slice(17, 18), 5)(inputs[0], [])
    ),
    "zeros here and there": Fault(
        "CONV_2D", conv, where(lambda *_: np.random.default_rng(4).random((1, 12, 12, 8)) < 0.3, 0)
    ),
    **{
        f"noise of {scale:g} in {operator}": Fault(
            operator, make, noise(scale)
        )
        for scale in (0.01, 1.0, 100.0)
        for operator, make in MODELS
    },
    **{
        f"noise of {size} steps in {operator}": Fault(
            operator, make,
            steps(size),
        )
        for size in (2, 6, 40)
        for operator, make in {"ADD": add_int8, "CONV_2D": conv_int8}.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_what_explains_the_values_is_named(name: str, tmp_path: Path) -> None:
    fault = NAMED[name]
    cause = find_causes(found(fault, tmp_path))[0]
    assert cause.name == fault.cause
    told = " ".join([cause.shown_by, cause.remedy, cause.link])
    assert [words for words in fault.says if words not in told] == []


@pytest.mark.parametrize("name", NOT_NAMED)
def test_what_only_looks_like_a_cause_is_none(name: str, tmp_path: Path) -> None:
    assert not find_causes(found(NOT_NAMED[name], tmp_path))


def of_a_delegate(flags: str, folder: Path, largest: float = 20.0) -> list[str]:
    """The causes of what a real delegate makes of a sum over pictures with values up to the largest."""
    content, inputs = sum_of_an_image(largest=largest)
    (folder / "model.tflite").write_bytes(content)
    given = run(folder / "model.tflite", inputs, Configuration.from_text("tested", flags))
    return [cause.name for cause in find_causes(case(folder, "SUM", content, inputs, lambda _expected: given))]


def test_a_sum_beyond_fp16_on_a_real_delegate(tmp_path: Path) -> None:
    flags = "runtime=compiled use_xnnpack=true xnnpack_force_fp16=true"
    assert of_a_delegate(flags, tmp_path) == ["fp16 overflow"]
    assert "fp16 overflow" not in of_a_delegate(flags, tmp_path, largest=4.0)


@pytest.mark.skipif("EVALTOOLS_EXPECT_GPU" not in os.environ, reason="this machine is not said to have a GPU")
def test_a_sum_beyond_fp16_on_a_real_gpu(tmp_path: Path) -> None:
    assert of_a_delegate("runtime=compiled use_gpu=true", tmp_path) == ["fp16 overflow"]


def test_the_output_of_the_run_before(tmp_path: Path) -> None:
    content, inputs = conv()
    before = [random((1, 12, 12, 4), 50)]
    path = tmp_path / "model.tflite"
    path.write_bytes(content)
    stale = run(path, before)
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda _: stale, before=before))
    assert cause.name == "the output of the run before"


def test_a_resize_that_leaves_an_option_out_is_named(tmp_path: Path) -> None:
    """What the delegate gives is worked out by a model without the option; the CPU has it."""
    inputs: list[Array] = [random((1, 6, 7, 3), 1)]
    size = [np.array([13, 9], np.int32)]
    with_it, without = (
        model("RESIZE_BILINEAR", inputs, (1, 13, 9, 3), size, "ResizeBilinearOptions", HalfPixelCenters=half_pixel)
        for half_pixel in (True, False)
    )
    path = tmp_path / "without.tflite"
    path.write_bytes(without)
    moved = run(path, inputs)
    (cause,) = find_causes(case(tmp_path, "RESIZE_BILINEAR", with_it, inputs, lambda _: moved))
    assert cause.name == "sampled otherwise"
    assert "those that the CPU gives with half_pixel_centers False and align_corners False" in cause.shown_by


def test_a_model_that_cannot_be_read_leaves_what_arrays_show(tmp_path: Path) -> None:
    wrong = found(NAMED["cut"], tmp_path)
    (tmp_path / "part.tflite").write_bytes(b"no model")
    assert [cause.name for cause in find_causes(wrong)] == ["values cut at a bound"]


def test_a_known_fault_of_the_gpu_is_named_where_the_gpu_was_asked_for_and_nothing_else_explains_it(
    tmp_path: Path,
) -> None:
    wrong = found(Fault("DEPTHWISE_CONV_2D", lambda: depthwise(2), of_other_channels), tmp_path)
    (cause,) = find_causes(replace(wrong, configuration=GPU))
    assert cause.name == "a known fault of the GPU"
    assert "takes weights of other channels: measured with" in cause.shown_by
    assert cause.remedy == "make it a CONV_2D"
    assert not [cause for cause in find_causes(replace(wrong, configuration=CPU)) if "known" in cause.name]
    doubled = found(Fault("DEPTHWISE_CONV_2D", lambda: depthwise(2), floats(lambda y: y * 2)), tmp_path)
    assert [cause.name for cause in find_causes(replace(doubled, configuration=GPU))] == ["multiplied by a constant"]
    other = found(Fault("DEPTHWISE_CONV_2D", lambda: depthwise(1), noise(1.0)), tmp_path)
    assert not [cause for cause in find_causes(replace(other, configuration=GPU)) if "known" in cause.name]


def divided_by_zero(_expected: Array, inputs: list[Array]) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(inputs[0] / inputs[1], np.float32)


def divisors_of_zero() -> Model:
    inputs: list[Array] = [np.ones((1, 16), np.float32), np.maximum(random((1, 16), 4), 0)]
    return model("DIV", inputs, (1, 16), options="DivOptions"), inputs


@pytest.mark.parametrize("flags", ["use_xnnpack=true", "use_xnnpack=true xnnpack_force_fp16=true"])
def test_a_division_by_zero_is_no_overflow_of_fp16(flags: str, tmp_path: Path) -> None:
    wrong = found(Fault("DIV", divisors_of_zero, divided_by_zero), tmp_path)
    (cause,) = find_causes(replace(wrong, configuration=Configuration.from_text("tested", flags)))
    assert cause.name == "division by zero"
    assert "3.40282e+38 on the CPU, whose kernel keeps to numbers, and +infinity here" in cause.shown_by


def test_nothing_overflows_fp16_where_the_flags_say_float32(tmp_path: Path) -> None:
    wrong = found(Fault("SUM", lambda: sum_of_an_image(largest=20.0), put(..., np.inf)), tmp_path)
    (cause,) = find_causes(wrong)
    assert cause.name == "fp16 overflow"
    (cause,) = find_causes(replace(wrong, precision="fp32"))
    assert (cause.name, "fp32" in cause.remedy) == ("NaN or infinity", False)
