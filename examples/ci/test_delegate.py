"""Limits in tests of one's own, with the fixtures of the plug-in."""

from pathlib import Path

import pytest

MODELS = Path(__file__).resolve().parents[2] / "datasets" / "sample" / "models"


@pytest.mark.accuracy_gate
@pytest.mark.parametrize("model", ["float32.tflite", "float16.tflite"])
def test_xnnpack_computes_what_the_cpu_computes(model, assert_equivalent):
    assert_equivalent(MODELS / model, "xnnpack: use_xnnpack=true", num_runs=10)
