"""Informed runs on real photos against runs of all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.result.evaluation import EvaluationResult
from evaltools.result_file import read_result
from tests.realdata.test_native_imagenet import run_imagenet

LIMITS = ("top1 drop <= 3 points", "agreement >= 90 %")


def result_of(zoo: Path, photos: Path, model: str, output: Path, *flags: str) -> EvaluationResult:
    words = ("--config=xnnpack: use_xnnpack=true", "--label_check=false", "--latency_examples=2")
    completed = run_imagenet(zoo, photos, model, *words, f"--output_file_path={output}", *flags)
    assert completed.code == 0, completed.err
    return read_result(output)


@pytest.mark.once
@pytest.mark.parametrize("model", ["mobilenet_v1_0.25_128_quant", "mobilenet_v1_0.5_160_quant"])
def test_an_informed_run_decides_as_all_photos_do_with_fewer_of_them(
    zoo: Path, photos: Path, tmp_path: Path, model: str
) -> None:
    folder = tmp_path / "run"
    whole = result_of(zoo, photos, model, tmp_path / "whole.json", f"--run_dir={folder}")
    reference, test = (entry.figures for entry in whole.configurations)
    assert reference["top1"] is not None
    assert test["top1"] is not None
    assert test["agreement"] is not None
    of_all = {"top1": test["top1"], "agreement": test["agreement"]}
    right = [reference["top1"] - of_all["top1"] <= 0.03, of_all["agreement"] >= 0.9]
    for limit, is_kept in zip(LIMITS, right, strict=True):
        flags = ("--sample=informed", "--stop=decided", f"--limit={limit}", f"--reference_run={folder}")
        sampling = result_of(zoo, photos, model, tmp_path / "drawn.json", *flags).sampling
        assert sampling is not None
        answer = sampling.answers["xnnpack"]
        assert answer.answer == ("kept" if is_kept else "broken")
        assert answer.decided_after < 200
        for figure, value in of_all.items():
            assert answer.figures[figure].low <= value <= answer.figures[figure].high
