"""The test models load and run in both runtimes, with every kind of kernels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tests import tiny_models
from tests.interpreters import RUNTIMES, make_interpreter, random_inputs, run
from tests.tflite_writer import Quantization

MODELS = {
    "add_chain": tiny_models.add_chain(),
    "add_chain int32": tiny_models.add_chain(dtype="int32"),
    "add_chain int8": tiny_models.add_chain(dtype="int8"),
    "add_chain uint8": tiny_models.add_chain(dtype="uint8"),
    "add_and_negate": tiny_models.add_and_negate(),
    "two_inputs": tiny_models.two_inputs(),
    "conv": tiny_models.conv(),
    "conv_with_fed_filter": tiny_models.conv_with_fed_filter(),
    "depthwise": tiny_models.depthwise(),
    "vector_input": tiny_models.vector_input(),
    "classifier rank 2": tiny_models.classifier(output_rank=2),
    "classifier rank 4": tiny_models.classifier(output_rank=4),
}
TYPES = ("float32", "float16", "uint8", "int8", "int16")
KERNELS = ("AUTO", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES")

in_every_runtime = pytest.mark.parametrize("runtime", RUNTIMES)
with_all_kernels = pytest.mark.parametrize("kernels", KERNELS)


@in_every_runtime
@with_all_kernels
@pytest.mark.parametrize("name", MODELS)
def test_runs(runtime: str, kernels: str, name: str) -> None:
    interpreter = make_interpreter(runtime, MODELS[name], kernels=kernels)
    output = run(interpreter, random_inputs(interpreter))
    assert len(np.unique(output)) > 1


@in_every_runtime
@with_all_kernels
@pytest.mark.parametrize("output_dtype", TYPES)
@pytest.mark.parametrize("input_dtype", TYPES)
def test_classifier_types(runtime: str, kernels: str, input_dtype: str, output_dtype: str) -> None:
    """All types give the scores of the float32 model, as far as their steps allow."""
    model = tiny_models.classifier(input_dtype=input_dtype, output_dtype=output_dtype)
    interpreter = make_interpreter(runtime, model, kernels=kernels)
    pixels = np.random.default_rng(0).integers(-128, 128, (1, 16, 16, 3)) / 128
    image = store(pixels, input_dtype, tiny_models.INPUT_QUANTIZATION)
    expected = run(make_interpreter(runtime, tiny_models.classifier()), [pixels.astype(np.float32)])
    output = run(interpreter, [image])
    assert (image.dtype.name, output.dtype.name) == (input_dtype, output_dtype)
    scores = load(output, output_dtype, tiny_models.SCORE_QUANTIZATION)
    np.testing.assert_allclose(scores, expected, atol=1 / 256)


def store(
    values: npt.NDArray[np.float64],
    dtype: str,
    quantization: dict[str, Quantization],
) -> npt.NDArray[np.generic]:
    """Real numbers as the elements of a tensor."""
    if dtype not in quantization:
        return values.astype(dtype)
    parameters = quantization[dtype]
    return np.asarray(values / parameters.scale + parameters.zero_point).astype(dtype)


def load(
    values: npt.NDArray[np.generic],
    dtype: str,
    quantization: dict[str, Quantization],
) -> npt.NDArray[np.float64]:
    """The elements of a tensor as real numbers."""
    numbers = values.astype(np.float64)
    if dtype not in quantization:
        return numbers
    parameters = quantization[dtype]
    real: npt.NDArray[np.float64] = (numbers - parameters.zero_point) * parameters.scale
    return real


def test_same_arguments_give_the_same_bytes() -> None:
    assert tiny_models.classifier(seed=3) == tiny_models.classifier(seed=3)
    assert tiny_models.classifier(seed=3) != tiny_models.classifier(seed=4)


@in_every_runtime
def test_best_class_depends_on_the_image(runtime: str) -> None:
    interpreter = make_interpreter(runtime, tiny_models.classifier())
    best = {int(run(interpreter, random_inputs(interpreter, seed)).argmax()) for seed in range(20)}
    assert len(best) > 3
