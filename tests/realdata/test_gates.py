"""Statistics and gates on photos: XNNPACK of ai-edge-litert compared with the kernels of tflite-runtime."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from junitparser import Error, Failure, JUnitXml
from scipy import stats

from tests.command import evaltools_here

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(package) is None for package in ("tflite_runtime", "ai_edge_litert")),
    reason="both runtimes are compared",
)
LIMITS = ["top1 drop <= 5 points at 95 %", "top1 >= 70 %", "top1 drop <= 0.5 points at 95 %"]
"""Kept, broken, and not decided by 200 photos."""


@pytest.fixture(scope="module")
def result(photos: Path, zoo: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The JSON result, in a folder with a file of gates that reads it."""
    folder = tmp_path_factory.mktemp("gates")
    completed = evaltools_here(
        "imagenet",
        f"--model_file={zoo / 'mobilenet_v1_0.25_128_quant.tflite'}",
        f"--ground_truth_images_path={photos / 'images'}",
        f"--ground_truth_labels={photos / 'validation_labels_wnid.txt'}",
        f"--model_output_labels={photos / 'model_labels_1001_wnid.txt'}",
        "--reference=runtime=tflite_runtime",
        "--config=xnnpack: runtime=litert use_xnnpack=true",
        "--config=phone: use_nnapi=true",
        "--record_examples",
        f"--output_file_path={folder / 'result.json'}",
    )
    assert completed.code == 3, completed.err
    (folder / "gates.toml").write_text(
        '[runs.mobilenet]\nresult = "result.json"\n\n'
        f'[[gates]]\nconfiguration = "xnnpack"\nlimits = {json.dumps(LIMITS)}\n\n'
        '[[gates]]\nconfiguration = "phone"\nlimits = ["top1 >= 50 %"]\n'
    )
    return folder / "result.json"


def figures_of(result: Path) -> list[dict[str, Any]]:
    return [entry["figures"] for entry in json.loads(result.read_text())["rows"][:2]]


def test_flips_and_p_are_those_of_the_recorded_answers(result: Path) -> None:
    reference, test = figures_of(result)
    changes = {name: figure["change"] for name, figure in test.items() if name.startswith("top")}
    for name, change in changes.items():
        right = list(zip(reference[name]["scores"], test[name]["scores"], strict=True))
        lost, gained = right.count((1, 0)), right.count((0, 1))
        assert (change["lost"], change["gained"]) == (lost, gained)
        expected = stats.binomtest(lost, lost + gained).pvalue if lost + gained else 1.0
        assert change["p_value"] == pytest.approx(expected)
        assert change["interval"]["low"] <= (gained - lost) / len(right) <= change["interval"]["high"]
    assert changes["top1"]["lost"] + changes["top1"]["gained"] > 0, "the two do not answer alike"
    (verdict,) = json.loads(result.read_text())["rows"][1]["verdicts"]
    assert verdict["kind"] == "not decided"


def test_intervals_of_accuracies(result: Path) -> None:
    from statsmodels.stats.proportion import proportion_confint

    for figures in figures_of(result):
        for each in (figure for name, figure in figures.items() if name.startswith("top")):
            low, high = proportion_confint(round(each["value"] * 200), 200, method="wilson")
            assert (each["interval"]["low"], each["interval"]["high"]) == pytest.approx((low, high))


def test_the_gate_command_has_all_four_verdicts(result: Path) -> None:
    report = result.with_name("gates.xml")
    gated = evaltools_here("gate", f"--gates={result.with_name('gates.toml')}", f"--junit={report}")
    assert gated.code == 3, gated.err
    kinds = {
        case.name: [type(entry) for entry in case.result] for suite in JUnitXml.fromfile(str(report)) for case in suite
    }
    by_limit = {limit: next(kinds[name] for name in kinds if limit in name) for limit in (*LIMITS, "top1 >= 50 %")}
    assert by_limit == {LIMITS[0]: [], LIMITS[1]: [Failure], LIMITS[2]: [Failure], "top1 >= 50 %": [Error]}
    for verdict in ("pass", "fail", "inconclusive", "not measured"):
        assert verdict in gated.out
