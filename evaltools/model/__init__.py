"""Reads ``.tflite`` files without a runtime."""

from evaltools.model.metadata import InputNormalization
from evaltools.model.model_file import ModelFile, TensorInfo, read_model

__all__ = ["InputNormalization", "ModelFile", "TensorInfo", "read_model"]
