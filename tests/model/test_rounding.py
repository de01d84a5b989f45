"""Constants rounded as lower precision does, against other conversions and values by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.model import read_model
from evaltools.model.flatbuffer import Table
from evaltools.model.rounding import UNIT_ROUNDOFF, disturb, disturb_constants, round_to, shake
from tests import tiny_models
from tests.interpreters import RUNTIMES, make_interpreter, random_inputs, run
from tests.tflite_writer import Graph

BF16_LARGEST = 3.3895313892515355e38
Array = npt.NDArray[np.generic]


def nearest_bf16(value: float) -> float:
    """The nearer of the two numbers with 8 significant bits, the one with an even last bit where both are as near."""
    (bits,) = struct.unpack(">I", struct.pack(">f", value))
    below, above = (struct.unpack(">f", struct.pack(">I", (bits >> 16) + step << 16))[0] for step in (0, 1))
    if value - below == above - value:
        return float(above if (bits >> 16) & 1 else below)
    return float(below if abs(value - below) < abs(above - value) else above)


def test_bf16_is_rounded_to_nearest_and_ties_to_even() -> None:
    random = np.random.default_rng(1)
    values = np.concatenate(
        [
            random.normal(size=2000) * 10.0 ** random.integers(-30, 30, 2000),
            [1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 0.0, 65504.0],
        ]
    ).astype(np.float32)
    assert round_to(values, "bf16").tolist() == [nearest_bf16(value) for value in values.tolist()]


def test_fp16_is_rounded_to_nearest_and_ties_to_even() -> None:
    random = np.random.default_rng(2)
    values = (random.normal(size=2000) * 10.0 ** random.integers(-9, 4, 2000)).astype(np.float32)
    expected = [struct.unpack("<e", struct.pack("<e", value))[0] for value in values.tolist()]
    assert round_to(values, "fp16").tolist() == expected
    assert round_to(np.array([2049, 2051], np.float32), "fp16").tolist() == [2048, 2052]


@pytest.mark.parametrize(("precision", "largest"), [("fp16", 65504.0), ("bf16", BF16_LARGEST)])
def test_what_is_too_large_becomes_the_largest(precision: str, largest: float) -> None:
    beyond = np.array([3.4028234663852886e38, -3.4028234663852886e38, np.inf], np.float32)
    assert round_to(beyond, precision).tolist() == [largest, -largest, largest]
    assert np.isfinite(disturb(beyond, precision, np.random.default_rng(0))).all()


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
@pytest.mark.parametrize("bits", [0x7FC00000, 0x7FFFFFFF, 0xFFFFFFFF])
def test_what_is_no_number_stays_none(precision: str, bits: int) -> None:
    assert np.isnan(round_to(np.array([bits], np.uint32).view(np.float32), precision)).all()


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_disturbing_shakes_by_half_a_roundoff_around_the_rounded_value(precision: str) -> None:
    values = np.full(10_000, 1.5, np.float32)
    moved = disturb(values, precision, np.random.default_rng(3)).astype(np.float64) / 1.5 - 1
    assert np.abs(moved).max() <= UNIT_ROUNDOFF[precision] / 2 + 2.0**-23
    assert np.abs(moved).max() > 0.49 * UNIT_ROUNDOFF[precision]
    assert abs(moved.mean()) < 0.02 * UNIT_ROUNDOFF[precision]


def test_int8_has_255_steps_over_twice_the_largest_magnitude() -> None:
    values = np.array([-12.7, 0.0, 0.04, 0.06, 3.14, 12.7], np.float32)
    rounded = disturb(values, "int8", np.random.default_rng(0))
    assert rounded.tolist() == pytest.approx([-12.7, 0, 0, 0.1, 3.1, 12.7], abs=1e-6)
    assert disturb(np.zeros(3, np.float32), "int8", np.random.default_rng(0)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_a_share_of_whole_numbers_moves_by_one(dtype: str) -> None:
    values = np.full(40_000, 5, dtype)
    moved = shake(values, 0.25, np.random.default_rng(4))
    assert moved.dtype == dtype
    assert set(moved.tolist()) == {4, 5, 6}
    assert np.mean(moved == 6) == pytest.approx(0.125, abs=0.01)
    assert np.mean(moved == 4) == pytest.approx(0.125, abs=0.01)


def model_with(*constants: Array) -> bytes:
    graph = Graph()
    tensor = graph.tensor("input", (1,))
    for values in constants:
        graph.constant("constant", values)
    return graph.to_bytes([tensor], [tensor])


def constants_of(content: bytes, dtype: str) -> list[Array]:
    buffers = Table.root(memoryview(content)).tables(4)[1:]
    return [np.frombuffer(buffer.numbers(0, "uint8").tobytes(), dtype) for buffer in buffers]


def test_float_constants_are_disturbed_and_whole_ones_are_not() -> None:
    whole, floats = np.arange(6, dtype=np.int32), np.linspace(1, 2, 6, dtype=np.float32)
    content, count = disturb_constants(model_with(whole, floats), "bf16")
    assert count == 6
    assert constants_of(content, "int32")[0].tolist() == whole.tolist()
    changed = constants_of(content, "float32")[1]
    assert changed.tolist() != floats.tolist()
    np.testing.assert_allclose(changed, floats, rtol=1.5 * 2**-8)  # type: ignore[arg-type]


@pytest.mark.parametrize(("precision", "most_stay"), [("fp16", True), ("bf16", False)])
def test_fp16_constants_stay_fp16(precision: str, most_stay: bool) -> None:
    """Those that fp16 holds exactly move to a neighbour, one in sixteen."""
    values = np.full(8000, 1.5, np.float16)
    content, count = disturb_constants(model_with(values), precision)
    (changed,) = constants_of(content, "float16")
    assert count == 8000
    assert (changed.tolist().count(1.5) > 7200) is most_stay
    if precision == "fp16":
        assert set(changed.tolist()) == {1.5, 1.5 - 2**-10, 1.5 + 2**-10}


def test_int8_rounds_each_channel_by_itself() -> None:
    """The first axis is the channel; for a depthwise convolution, whose first size is 1, the last one."""
    dense = np.array([[1.27, 0.006], [127, 0.6]], np.float32)
    depthwise = dense.T.reshape(1, 2, 1, 2)
    bias = np.array([0.001, 100], np.float32)
    content, count = disturb_constants(model_with(dense, depthwise, bias), "int8")
    changed = constants_of(content, "float32")
    assert changed[0].tolist() == pytest.approx([1.27, 0.01, 127, 1.0], rel=1e-5)
    assert changed[1].tolist() == pytest.approx([1.27, 127, 0.01, 1.0], rel=1e-5)
    assert (changed[2].tolist(), count) == (bias.tolist(), 0)


@pytest.mark.parametrize(("dtype", "precision"), [("int8", "int8"), ("uint8", "int8"), ("int8", "fp16")])
def test_one_in_sixteen_8_bit_constants_moves_for_int8_alone(dtype: str, precision: str) -> None:
    content, count = disturb_constants(model_with(np.full(16_000, 5, dtype)), precision)
    moved = 16_000 - constants_of(content, dtype)[0].tolist().count(5)
    assert (count, moved) == ((16_000, pytest.approx(1000, abs=150)) if precision == "int8" else (0, 0))


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("precision", ["fp16", "bf16", "int8"])
def test_a_disturbed_model_runs_and_gives_almost_the_same(tmp_path: Path, runtime: str, precision: str) -> None:
    content = tiny_models.classifier()
    changed, _ = disturb_constants(content, precision)
    (tmp_path / "model.tflite").write_bytes(changed)
    assert read_model(tmp_path / "model.tflite").node_count == 6
    original, other = make_interpreter(runtime, content), make_interpreter(runtime, changed)
    inputs = random_inputs(original)
    error = np.abs(run(original, inputs) - run(other, inputs)).max()
    assert 0 < error < {"fp16": 1e-3, "bf16": 1e-2, "int8": 2e-2}[precision]
