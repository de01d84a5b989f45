"""Reads ``.tflite`` files without a runtime."""

from evaltools.model.metadata import InputNormalization
from evaltools.model.model_file import ModelFile, TensorInfo, model_in_memory, read_model

__all__ = ["InputNormalization", "ModelFile", "TensorInfo", "model_in_memory", "read_model"]
