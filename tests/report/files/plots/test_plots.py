"""Plots: what is drawn where, read back from the SVG and from the canvas."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text
from msgspec.structs import replace
from PIL import Image

from evaltools.errors import UsageError
from evaltools.report.files.plots.benchmark import plot_benchmark
from evaltools.report.files.plots.labels import label_points
from evaltools.report.files.plots.plot import require_plot
from evaltools.result.benchmark import BenchmarkRow
from evaltools.result.evaluation import DelegateUsed
from tests.report.benchmark_samples import benchmark, on_front, row

SVG: Final = Path("plot.svg")
MARKER: Final = re.compile(r'<use xlink:href="#m\w+" x="([\d.]+)" y="([\d.]+)" style="fill: #(\w+); stroke: #(\w+)')
BLUE: Final = "1f77b4"
ORANGE: Final = "ff7f0e"
ACCURATE: Final = (on_front(row("fast", 1000, 0.5)), on_front(row("good", 10000, 0.75)), row("bad", 20000, 0.25))


def texts(svg: bytes) -> list[str]:
    """matplotlib draws text as shapes and leaves what it says in comments."""
    return re.findall(r"<!-- (.*) -->", svg.decode())


def markers(svg: bytes) -> list[tuple[float, float, bool]]:
    """Place, from the left and the top, of each point of the first model, and whether it is filled; panel by panel."""
    return [(float(x), float(y), fill == BLUE) for x, y, fill, edge in MARKER.findall(svg.decode()) if edge == BLUE]


def test_points_stand_by_latency_and_accuracy_and_those_on_the_front_are_filled() -> None:
    panel = markers(plot_benchmark(benchmark(*ACCURATE), SVG))[:3]
    (fast, good, bad) = sorted(panel)
    assert [filled for _, _, filled in (fast, good, bad)] == [True, True, False]
    assert good[1] < fast[1] < bad[1], "from the top"
    assert bad[1] - fast[1] == pytest.approx(fast[1] - good[1], rel=0.01), "25 % apart each"


def test_latency_is_logarithmic_where_it_spreads_above_ten_times() -> None:
    """1, 10 and 100 ms stand equally far apart then, 1, 5.5 and 10 ms otherwise."""
    for middle, last in ((10_000, 100_000), (5_500, 10_000)):
        rows = (row("a", 1000, 0.1), row("b", middle, 0.2), row("c", last, 0.3))
        (first, second, third) = sorted(markers(plot_benchmark(benchmark(*rows), SVG))[:3])
        assert third[0] - second[0] == pytest.approx(second[0] - first[0], rel=0.01)


def test_the_front_by_size_is_that_of_each_metric() -> None:
    """The larger model is worse, the other metric's point is compared with none."""
    rows = (row("a", 1, 0.5), row("b", 1, 0.4, model=1), row("c", 1, 0.1, model=1, metric="mAP"))
    svg = plot_benchmark(benchmark(*rows, sizes=(1_000_000, 2_000_000)), SVG)
    points = [(float(y), fill, edge) for _, y, fill, edge in MARKER.findall(svg.decode()) if edge in (BLUE, ORANGE)]
    from_the_top = [(fill, edge) for _, fill, edge in sorted(points[3:])]
    assert from_the_top == [(BLUE, BLUE), ("ffffff", ORANGE), (ORANGE, ORANGE)]
    assert "mAP and top-1 (%)" in texts(svg)


def test_names_and_units_are_written() -> None:
    found = texts(plot_benchmark(benchmark(*ACCURATE), SVG))
    assert {"Accuracy of a.tflite", "median latency (ms)", "model size (MB)", "top-1 (%)", "fast", "good"} <= set(found)


def test_without_accuracy_each_row_is_a_bar_the_fastest_on_top() -> None:
    rows = [replace(entry, accuracy=None, on_latency_front=None) for entry in reversed(ACCURATE)]
    found = texts(plot_benchmark(benchmark(*rows), SVG))
    assert "Latency of a.tflite" in found
    assert [text for text in found if text in ("fast", "good", "bad")] == ["fast", "good", "bad"]
    assert [text for text in found if text.endswith(" ms")] == ["1 ms", "10 ms", "20 ms"]


def test_what_cannot_be_drawn_is_named() -> None:
    rows = (
        *ACCURATE,
        row("unknown", 5),
        replace(row("broken", 5, 0.1), status="failed", reason="no"),
        replace(row("instead", 5, 0.1), fallback="no GPU here"),
    )
    found = "\n".join(texts(plot_benchmark(benchmark(*rows), SVG)))
    assert "no accuracy given: unknown" in found
    assert "not measured: broken" in found
    assert "instead (fallback: CPU)" in found


@pytest.mark.parametrize("accuracy", [0.5, None])
def test_what_ran_on_a_gpu_in_software_says_so(accuracy: float | None) -> None:
    gpu, software = (DelegateUsed("GPU", True, {}, 3, 1, "llvmpipe", is_cpu) for is_cpu in (False, True))
    rows = [row("cpu", 9, accuracy), replace(row("gpu", 5, accuracy), delegates=[gpu])]
    found = texts(plot_benchmark(benchmark(*rows, replace(row("soft", 7, accuracy), delegates=[software])), SVG))
    assert {"cpu", "gpu", "soft [software]"} <= set(found)


def test_nothing_measured_is_a_plot_that_says_so() -> None:
    failed = replace(row("x", 1), status="failed", reason="no", figures=None)
    assert "nothing was measured" in texts(plot_benchmark(benchmark(failed), SVG))


def test_many_rows_are_numbered_with_a_key() -> None:
    rows = [row(f"configuration {number}", 1000 + 100 * number, 0.5 + 0.01 * (number % 5)) for number in range(24)]
    found = texts(plot_benchmark(benchmark(*rows), SVG))
    assert {f"configuration {number}" for number in range(24)} <= set(found)
    assert sum(text == "24" for text in found) >= 2, "at the point and in the key"


@pytest.mark.parametrize("name", ["$x_1$ ^{", "\u65e5\u672c \U0001f600", "a -- b <&>"])
@pytest.mark.filterwarnings("error")
def test_any_name_can_be_drawn(name: str) -> None:
    for rows in ([row(name, 100, 0.5)], [row(name, 100)]):
        plot_benchmark(benchmark(*rows), Path("x.png"))
        plot_benchmark(benchmark(*rows), SVG)


def test_a_name_that_looks_like_a_formula_is_written_as_it_is() -> None:
    assert "$x_1$ ^{" in texts(plot_benchmark(benchmark(row("$x_1$ ^{", 100, 0.5)), SVG))


def test_a_latency_of_nothing_can_be_drawn() -> None:
    plot_benchmark(benchmark(row("a", 0, 0.5), row("b", 1000, 0.6)), SVG)
    plot_benchmark(benchmark(row("a", 0)), SVG)


@pytest.mark.parametrize("rows", [ACCURATE, ACCURATE[:1], (row("x", 7),)], ids=len)
def test_a_png_is_a_picture_with_something_on_it(rows: Sequence[BenchmarkRow]) -> None:
    with Image.open(io.BytesIO(plot_benchmark(benchmark(*rows), Path("plot.PNG")))) as picture:
        assert picture.format == "PNG"
        assert picture.width > 1000
        assert (np.asarray(picture.convert("L")) < 128).mean() > 0.001


@pytest.mark.once
def test_the_same_result_gives_the_same_svg_in_another_process() -> None:
    code = (
        "import sys; from pathlib import Path; from evaltools.report.files.plots.benchmark import plot_benchmark;"
        "from tests.report.files.plots.test_plots import ACCURATE, benchmark;"
        "sys.stdout.buffer.write(plot_benchmark(benchmark(*ACCURATE), Path('x.svg')))"
    )
    here = plot_benchmark(benchmark(*ACCURATE), SVG)
    there = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=120).stdout
    assert here == there
    assert b"<dc:date>" not in here


def test_settings_of_matplotlib_neither_matter_nor_change(monkeypatch: pytest.MonkeyPatch) -> None:
    before = plot_benchmark(benchmark(*ACCURATE), SVG)
    monkeypatch.setitem(rcParams, "font.size", 30.0)
    monkeypatch.setitem(rcParams, "svg.fonttype", "none")
    assert plot_benchmark(benchmark(*ACCURATE), SVG) == before
    assert (rcParams["font.size"], rcParams["svg.fonttype"]) == (30.0, "none")


@pytest.mark.parametrize("name", ["plot.pdf", "plot", "png", "plot.svg.gz"])
def test_another_ending_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"must end in \.png or \.svg"):
        plot_benchmark(benchmark(), Path(name))


def test_without_matplotlib_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install 'evaltools\[plot\]'"):
        require_plot(SVG)


def test_matplotlib_is_only_loaded_to_draw() -> None:
    code = "import sys, evaltools.report.files.plots.benchmark; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


@pytest.mark.parametrize("seed", range(3))
def test_labels_of_crowded_points_cover_neither_each_other_nor_points(seed: int) -> None:
    """Twelve points in two heaps: written beside their points, most labels would lie on one another."""
    places = np.random.default_rng(seed).normal(0, 0.05, (12, 2)) + np.repeat([[0, 0], [1, 1]], 6, axis=0)
    labels = {(float(x), float(y)): f"label {number}" for number, (x, y) in enumerate(places)}
    figure = Figure(figsize=(6, 5))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.plot(*places.T, "o")
    axes.margins(0.15)
    label_points(axes, labels)
    figure.canvas.draw()
    notes = [child for child in axes.get_children() if isinstance(child, Annotation)]
    boxes = [Text.get_window_extent(note) for note in notes]
    assert sorted(note.get_text() for note in notes) == sorted(labels.values())
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    centers = axes.transData.transform(places)
    assert not [center for center in centers for box in boxes if box.contains(*center)]


def test_labels_of_two_points_one_above_the_other_are_not_taken_for_each_others() -> None:
    """As those of two configurations of one model by size."""
    labels = {(1.4, 72.5): "3", (1.4, 72.0): "4", (0.5, 54.5): "1", (0.5, 54.0): "2"}
    figure = Figure(figsize=(6, 5))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.plot(*zip(*labels, strict=True), "o")
    axes.margins(0.15)
    label_points(axes, labels, [((0.5, 54.5), (1.4, 54.5)), ((1.4, 54.5), (1.4, 72.5))])
    figure.canvas.draw()
    centers = {text: axes.transData.transform(place) for place, text in labels.items()}
    for note in axes.get_children():
        if isinstance(note, Annotation):
            box = Text.get_window_extent(note)
            middle = np.array([(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2])
            nearest = min(centers, key=lambda text: float(np.hypot(*(centers[text] - middle))))
            assert nearest == note.get_text()
