"""JPEG, PNG or raw RGB -> input tensor, exactly as the native evaluation tools do it.

Two steps, both pure: :func:`decode_image` turns a file into RGB bytes, :class:`ImageToTensor` turns those into the
model's input. A new image format is one line in ``decode._DECODERS``; a new sizing or value rule belongs beside the
functions of ``resize``, or beside ``Normalization`` in ``tensor``.
"""

from evaltools.preprocess.decode import (
    IMAGE_EXTENSIONS,
    PictureHeader,
    decode_image,
    decode_picture,
    picture_header,
    read_picture,
)
from evaltools.preprocess.resize import central_crop_box, legacy_bilinear, resizing_by_kernel
from evaltools.preprocess.tensor import (
    NATIVE,
    NORMALIZATION_NAMES,
    ImageToTensor,
    Letterbox,
    Normalization,
    Placement,
    Quantization,
    parse_normalization,
)

__all__ = [
    "IMAGE_EXTENSIONS",
    "NATIVE",
    "NORMALIZATION_NAMES",
    "ImageToTensor",
    "Letterbox",
    "Normalization",
    "PictureHeader",
    "Placement",
    "Quantization",
    "central_crop_box",
    "decode_image",
    "decode_picture",
    "legacy_bilinear",
    "parse_normalization",
    "picture_header",
    "read_picture",
    "resizing_by_kernel",
]
