"""The models to look for faults in give, on builtin kernels, the numbers that NumPy works out."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests import locate_models, numpy_layers
from tests.interpreters import make_interpreter
from tests.tflite_writer import Quantization

Array = npt.NDArray[Any]


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(11)


def outputs(model: bytes, *inputs: Array) -> list[Array]:
    """All outputs of one inference."""
    return sequence(make_interpreter("ai_edge_litert", model), *inputs)


def sequence(interpreter: Any, *inputs: Array) -> list[Array]:
    """All outputs of the next inference."""
    for detail, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def uniform(random: np.random.Generator, shape: tuple[int, ...], high: float = 1.0, low: float = -1.0) -> Array:
    return random.uniform(low, high, shape).astype(np.float32)


def near(found: Array, expected: Array, atol: float = 1e-5) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=atol)


def test_an_add_is_an_output_and_summed_up(random: np.random.Generator) -> None:
    left, right = uniform(random, (1, 8, 8, 4)), uniform(random, (1, 8, 8, 4))
    total, everything = outputs(locate_models.add_that_is_also_an_output(), left, right)
    near(total, left + right)
    near(everything, (left.astype(float) + right).sum(keepdims=True), atol=1e-4)


def test_a_sum_is_beyond_fp16(random: np.random.Generator) -> None:
    image = uniform(random, (1, 112, 112, 1), 20, 0)
    (total,) = outputs(locate_models.sum_beyond_fp16(), image)
    assert total.item() > 65504
    near(total, image.astype(float).sum(keepdims=True))


def test_the_float_net(random: np.random.Generator) -> None:
    image = uniform(random, locate_models.NET_SHAPE)
    (scores,) = outputs(locate_models.net(), image)
    near(scores, locate_models.net_tensors(image, locate_models.net_weights())["scores"])


def real(values: Array, quantization: Quantization) -> Array:
    """What whole numbers stand for."""
    found: Array = (values.astype(float) - quantization.zero_point) * quantization.scale
    return found


def test_the_quantised_net_gives_the_float_scores_in_a_few_steps(random: np.random.Generator) -> None:
    stored = random.integers(-127, 128, locate_models.NET_SHAPE, np.int8)
    image = real(stored, locate_models.net_quantization()["image"])
    (scores,) = outputs(locate_models.quantized_net(), stored)
    expected = locate_models.net_tensors(image, locate_models.net_weights())["scores"]
    near(real(scores, locate_models.SCORES), expected, atol=4 / 256)


def test_the_best_class_depends_on_the_picture(random: np.random.Generator) -> None:
    """A net whose answer stood still would hide faults."""
    interpreter = make_interpreter("ai_edge_litert", locate_models.quantized_net())
    best = {int(sequence(interpreter, picture(random))[0].argmax()) for _ in range(30)}
    assert len(best) > 2


def picture(random: np.random.Generator) -> Array:
    """Noise around a colour of its own."""
    found: Array = np.clip(random.normal(random.uniform(-100, 100, 3), 30, locate_models.NET_SHAPE), -127, 127)
    return found.astype(np.int8)


@pytest.mark.parametrize("model", [locate_models.net(), locate_models.quantized_net()], ids=["float32", "int8"])
def test_the_nets_have_the_operators_and_names_that_are_told(model: bytes) -> None:
    interpreter = make_interpreter("ai_edge_litert", model)
    names = {detail["index"]: detail["name"] for detail in interpreter.get_tensor_details()}
    operators = interpreter._get_ops_details()
    assert tuple(operator["op_name"] for operator in operators) == locate_models.NET_OPERATORS
    assert tuple(names[operator["outputs"][0]] for operator in operators) == locate_models.NET_TENSORS


def test_svdf_remembers(random: np.random.Generator) -> None:
    frames = uniform(random, (7, 6))
    interpreter = make_interpreter("ai_edge_litert", locate_models.svdf())
    found = [sequence(interpreter, frame[None])[0][0] for frame in frames]
    near(np.array(found), -numpy_layers.svdf(frames, *locate_models.svdf_weights()))


def test_constants_in_fp16(random: np.random.Generator) -> None:
    image = uniform(random, (1, 8, 8, 3))
    (found,) = outputs(locate_models.fp16_constants(), image)
    near(found, numpy_layers.conv(image, *locate_models.conv_weights()))


def test_resize_with_half_pixel_centers(random: np.random.Generator) -> None:
    image = uniform(random, (1, 4, 5, 2))
    (found,) = outputs(locate_models.resize(), image)
    near(found, numpy_layers.resize_bilinear(image, 7, 10))


def test_broadcast_add(random: np.random.Generator) -> None:
    image, colour = uniform(random, (1, 4, 4, 3)), uniform(random, (1, 1, 1, 3))
    (found,) = outputs(locate_models.broadcast_add(), image, colour)
    near(found, image + colour)


def test_pad_and_conv(random: np.random.Generator) -> None:
    image = uniform(random, (1, 8, 8, 3))
    (found,) = outputs(locate_models.pad_and_conv(), image)
    padded = np.pad(image, [(0, 0), (1, 1), (1, 1), (0, 0)])
    near(found, numpy_layers.conv(padded, *locate_models.conv_weights(), 2, "VALID"))


def test_same_conv(random: np.random.Generator) -> None:
    image = uniform(random, (1, 8, 8, 3))
    (found,) = outputs(locate_models.same_conv(), image)
    near(found, numpy_layers.conv(image, *locate_models.conv_weights(), 2))


@pytest.mark.parametrize(
    "model", [pytest.param(*entry[1:], id=entry[0]) for entry in locate_models.all_models().items()]
)
def test_each_tensor_has_a_name_of_its_own(model: bytes) -> None:
    details = make_interpreter("ai_edge_litert", model).get_tensor_details()
    names = [
        detail["name"] for detail in details if detail["name"] and not re.match("(scratch|im2col)", detail["name"])
    ]
    assert len(names) == len(set(names))
