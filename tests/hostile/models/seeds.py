"""Small sound models that are damaged, of many operators and types."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from evaltools.datasets import sample
from tests import tiny_models


@cache
def sound_models() -> dict[str, bytes]:
    """They are drawn here, or come with evaltools; none has more than a few kilobytes, so that tables are hit."""
    return {
        "chain": tiny_models.add_chain(length=3),
        "chain_int8": tiny_models.add_chain(dtype="int8"),
        "negate": tiny_models.add_and_negate(),
        "two_inputs": tiny_models.two_inputs(right_shape=(1, 1, 1, 3)),
        "fed_filter": tiny_models.conv_with_fed_filter(),
        "depthwise": tiny_models.depthwise(),
        "classifier": tiny_models.classifier(output_rank=4),
        "classifier_int8": tiny_models.classifier(input_dtype="int8", output_dtype="int8"),
        "classifier_float16": tiny_models.classifier(input_dtype="float16", output_dtype="float16"),
        "signatures": tiny_models.two_signatures(),
        "text": (Path(sample.__file__).parent / "text" / "model.tflite").read_bytes(),
    }
