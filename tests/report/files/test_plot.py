"""Plots: what the picture shows, read back from its SVG, and what is refused before anything runs."""

from __future__ import annotations

import importlib.util
import io
import re
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from PIL import Image

from evaltools.errors import UsageError
from evaltools.report.files.plot import plot_results, require_plot
from evaltools.result.facts import DelegateUsed
from evaltools.result.result import Result
from tests.report.benchmark_samples import Sample, benchmark, lost, on_front, row

SVG: Final = Path("plot.svg")
ACCURATE: Final = (on_front(row("fast", 1000, 0.5)), on_front(row("good", 10000, 0.75)), row("bad", 20000, 0.25))
TIMED: Final = (row("fast", 1000), row("good", 10000), row("bad", 20000))


def plot_benchmark(result: Result, path: Path) -> bytes:
    return plot_results({result.command: result}, path)


def texts(svg: bytes) -> list[str]:
    return re.split(r"<[^>]+>", svg.decode())


def test_accuracy_stands_against_latency() -> None:
    found = texts(plot_benchmark(benchmark(*ACCURATE), SVG))
    assert {"median time in ms", "top-1 in %", "fast", "good", "bad"} <= set(found)
    assert any("a.tflite" in text for text in found)


def test_without_accuracy_each_row_is_a_median_with_its_interval() -> None:
    found = texts(plot_benchmark(benchmark(*TIMED), SVG))
    assert {"ms (95 % interval)", "fast", "good", "bad"} <= set(found)


def test_what_cannot_be_drawn_or_did_not_run_as_asked_is_named() -> None:
    software = DelegateUsed("GPU", True, {}, 3, 1, "llvmpipe", True)
    rows = (
        *ACCURATE,
        row("unknown", 5),
        row("broken", 5, 0.1, status="not measured", reason="no"),
        row("instead", 5, 0.1, fallback="no GPU here"),
        row("soft", 5, 0.1, delegates=[software]),
    )
    found = "\n".join(texts(plot_benchmark(benchmark(*rows), SVG)))
    for remark in ("no accuracy given: unknown", "not measured: broken", "CPU instead: instead", "software: soft"):
        assert remark in found


def test_nothing_measured_is_a_plot_that_names_what_is_missing() -> None:
    assert "not measured: x" in texts(plot_benchmark(benchmark(lost(row("x", 1), "no")), SVG))


@pytest.mark.parametrize("name", ["\u65e5\u672c \U0001f600", "a -- b <&>", "a\x1b[2J"])
@pytest.mark.parametrize("accuracy", [0.5, None])
def test_any_name_can_be_drawn(name: str, accuracy: float | None) -> None:
    for path in (Path("x.png"), SVG):
        plot_benchmark(benchmark(row(name, 0, accuracy), row("other", 100, accuracy)), path)


@pytest.mark.parametrize("rows", [ACCURATE, TIMED, ACCURATE[:1]], ids=["accurate", "timed", "single"])
def test_a_png_is_dark_on_white(rows: tuple[Sample, ...]) -> None:
    with Image.open(io.BytesIO(plot_benchmark(benchmark(*rows), Path("plot.PNG")))) as picture:
        assert (picture.format, picture.width) == ("PNG", 880)
        grey = np.asarray(picture.convert("L"))
    assert grey[0, 0] == 255
    assert (grey < 128).mean() > 0.001


@pytest.mark.parametrize("name", ["plot.pdf", "plot", "png", "plot.svg.gz"])
def test_another_ending_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"--plot=.*\.png or \.svg"):
        require_plot(Path(name))


def test_without_vl_convert_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"evaltools\[report\]"):
        require_plot(SVG)
