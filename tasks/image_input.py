"""How a picture becomes the input of a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evaltools.errors import ModelError
from evaltools.model import ModelFile, TensorInfo
from evaltools.preprocess import ImageToTensor, Normalization, Quantization, decode_image, parse_normalization
from evaltools.runtime.session import Array

CLASSIFIER_CROP = 0.875


def input_transform(
    model: ModelFile,
    tensor: TensorInfo,
    normalization: str = "auto",
    native: bool = False,
    crop_fraction: float | None = CLASSIFIER_CROP,
) -> ImageToTensor:
    """The transform for an input ``[1,height,width,3]``; ``normalization`` as on the command line.

    Raises :class:`ModelError` for an integer input that needs real values and has no quantisation.
    """
    quantization = None
    if tensor.scale is not None and tensor.zero_point is not None:
        quantization = Quantization(tensor.scale, tensor.zero_point)
    chosen = _normalization(model, tensor, normalization, native)
    is_integer = not tensor.dtype.startswith("float")
    if is_integer and quantization is None and (chosen is not None or tensor.dtype == "int16"):
        message = f"{model.path}: the input {tensor} has no per-tensor quantisation, so real values cannot be converted"
        raise ModelError(message)
    _, height, width, _ = tensor.shape
    return ImageToTensor(height, width, np.dtype(tensor.dtype), chosen, quantization, crop_fraction)


def load_picture(path: Path, to_tensor: ImageToTensor) -> Array:
    """Decode a picture and make it the input; raises :class:`~evaltools.errors.ImageError`.

    Raw ``.rgb8`` pictures have the model's size and are not resized.
    """
    image = decode_image(path, to_tensor.height, to_tensor.width)
    return to_tensor(image, already_sized=path.suffix.lower() == ".rgb8")


def _normalization(model: ModelFile, tensor: TensorInfo, text: str, native: bool) -> Normalization | None:
    if text != "auto":
        return parse_normalization(text)
    stated = model.normalization
    if stated is None or native or not tensor.dtype.startswith("float") or tensor.index != model.inputs[0].index:
        return None
    return Normalization(stated.mean, stated.std, "model metadata")
