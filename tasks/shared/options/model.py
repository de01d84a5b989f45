"""The flag of the model, alike wherever there is one."""

from __future__ import annotations

from typing import Final

from evaltools.parameter import Parameter

MODEL_FILE: Final = Parameter(
    "model_file",
    "The .tflite model; it may also stand alone, as MODEL.tflite, and there may be several. Required.",
    role="input_file",
    required=True,
    short="model",
    positional=True,
)
