"""fp16 in XNNPACK: where there is nothing that it could be about, that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.errors import DelegateTookNothing
from evaltools.model import read_model
from evaltools.runtime import open_session
from evaltools.runtime.compiled.xnnpack import fp16_without_effect
from evaltools.runtime.did_not_run import require_delegates_ran
from tests import tiny_models

FP16 = Configuration.from_text("x", "runtime=compiled use_xnnpack=true xnnpack_force_fp16=true")
PLAIN = Configuration.from_text("x", "runtime=compiled use_xnnpack=true")


@pytest.mark.parametrize(("dtype", "nothing_to_do"), [("float32", False), ("int8", True)])
def test_fp16_has_nothing_to_do_without_float_operators(tmp_path: Path, dtype: str, nothing_to_do: bool) -> None:
    (tmp_path / "m.tflite").write_bytes(tiny_models.add_chain(length=2, dtype=dtype))
    model = read_model(tmp_path / "m.tflite")
    assert bool(fp16_without_effect(model, FP16)) == nothing_to_do
    assert fp16_without_effect(model, PLAIN) == ""


def test_a_model_without_float_operators_is_not_measured_as_fp16() -> None:
    session = open_session(read_model(sample.model_file("int8")), FP16)
    try:
        with pytest.raises(DelegateTookNothing, match="--xnnpack_force_fp16=true had nothing to do: no operator"):
            require_delegates_ran(session.delegation)
    finally:
        session.close()
