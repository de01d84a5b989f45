"""What is known to go wrong on the GPU is named, confirmed and explained; nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaltools.model import read_model
from tests import locate_models
from tests.command import Completed, evaltools_here
from tests.locate.reading import read
from tests.runtime.openers import gpu_or_skip

MODELS = locate_models.all_models()
GPU = ("--runtime=compiled", "--use_gpu", "--num_inputs=2", "--num_runs=10", "--progress=none")


def locate(folder: Path, name: str, *flags: str) -> tuple[Completed, dict[str, Any]]:
    model = folder / "model.tflite"
    model.write_bytes(MODELS["net"])
    gpu_or_skip(read_model(model))
    model.write_bytes(MODELS[name])
    completed = evaltools_here("locate", str(model), *GPU, f"--output={folder / 'found.json'}", *flags)
    return completed, read(folder / "found.json")


def test_an_output_that_is_an_operand_too_is_wrong_in_context_alone(tmp_path: Path) -> None:
    """LiteRT#8599."""
    completed, found = locate(
        tmp_path,
        "add that is also an output",
        "--gpu_precision_loss_allowed=false",
        f"--bundle={tmp_path / 'bundle'}",
    )
    assert completed.code == 0, completed.err
    assert (found["kind"], found["at_fault"]) == ("fault in context", [0])
    (suspect,) = found["suspects"]
    assert (suspect["first"], suspect["last"], suspect["sure"]) == (0, 1, "confirmed in context")
    assert suspect["evidence"][-1]["note"] == "a copy of the tensor is right: fusion or memory"
    assert suspect["cause"][0]["name"].startswith("an operand was returned")
    assert {operator["status"] for operator in found["operators"]} == {"right"}
    assert found["bundle"]["reproduced"], found["bundle"]["printed"]


def test_a_sum_beyond_fp16_is_at_fault_and_right_in_fp32(tmp_path: Path) -> None:
    """LiteRT#9249."""
    _, found = locate(tmp_path, "sum beyond fp16", "--input_range=image:0:20")
    assert found["at_fault"] == [0]
    (suspect,) = found["suspects"]
    assert suspect["sure"] == "confirmed"
    assert suspect["cause"][0]["name"].startswith("fp16 overflow")
    assert [(option["name"], option["found"]) for option in suspect["setting"]] == [
        ("--gpu_precision_loss_allowed=false", "right")
    ]


@pytest.mark.parametrize(
    ("flags", "verdict"),
    [("--gpu_precision_loss_allowed=false", "no difference"), ("--gpu_precision_loss_allowed=true", "precision")],
)
def test_a_net_has_no_operator_at_fault(tmp_path: Path, flags: str, verdict: str) -> None:
    _, found = locate(tmp_path, "net", flags)
    assert found["kind"] == verdict
    assert found["suspects"] == []
