"""What the formats of result files hold."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.command import evaltools_here

SAMPLE = Path(__file__).resolve().parents[3] / "datasets" / "sample"

OF_TIME = {"latency_ms", "latency_ratio", "latency_cpu_ratio", "load_ms", "peak_memory_mb"}
"""They differ from run to run."""


@pytest.fixture
def wild(tmp_path: Path) -> Path:
    """A model whose name means something in Markdown."""
    return Path(shutil.copy(SAMPLE / "models" / "int8.tflite", tmp_path / "a|b*c*.tflite"))


def test_a_table_has_the_figures_of_the_json_result(wild: Path, tmp_path: Path) -> None:
    flags = ("diff", f"--model_file={wild}", "--num_runs=4", "--noise_floor_runs=2", "--config=gone: use_nnapi=true")
    results = [tmp_path / "r.json", tmp_path / "r.csv"]
    for path in results:
        assert evaltools_here(*flags, "--use_xnnpack=true", f"--output_file_path={path}").code == 3
    (_, test, gone) = json.loads(results[0].read_text())["rows"]
    with results[1].open(newline="") as lines:
        rows = {row["configuration"]: row for row in csv.DictReader(lines)}
    assert list(rows) == ["reference", "test", "gone"]
    figures = {name: figure["value"] for name, figure in test["figures"].items() if name not in OF_TIME}
    assert {name: float(rows["test"][name]) for name in figures} == figures
    assert (rows["gone"]["status"], rows["gone"]["reason"]) == ("not measured", gone["reason"])
    assert rows["gone"]["snr_db"] == rows["reference"]["snr_db"] == ""


def test_a_page_in_markdown_says_what_was_measured(wild: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.md"
    flags = ("diff", f"--model_file={wild}", "--num_runs=4", "--noise_floor_runs=2", f"--output_file_path={page}")
    told = evaltools_here(*flags, "--use_xnnpack=true", "--config=gone: use_nnapi=true")
    assert told.code == 3
    text = page.read_text()
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert "<h1>a|b*c*.tflite: inference-diff</h1>" in html
    assert html.count("<table>") >= 3
    assert re.search("<strong>gone</strong>: not measured: the NNAPI delegate cannot be created", html)
    assert " quanta" in html


@pytest.mark.parametrize("ending", ["md", "html", "csv"])
def test_a_name_that_is_no_unicode_costs_no_result(tmp_path: Path, ending: str) -> None:
    model = shutil.copy(SAMPLE / "models" / "int8.tflite", tmp_path / os.fsdecode(b"b\xffad.tflite"))
    flags = (str(model), "--num_runs=2", "--noise_floor_runs=0", "--use_xnnpack=true")
    assert evaltools_here("diff", *flags, f"--output_file_path={tmp_path}/r.{ending}").code == 0
    assert b"test" in (tmp_path / f"r.{ending}").read_bytes()
