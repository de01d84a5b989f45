"""Pages about results made by hand, as a reader gets them: every text in its order, kept in files and compared.

``python -m tests.report.page.pages [NAME ...]`` writes them anew, to be looked at and committed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, Found
from evaltools.locate.rows import figure, figures
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import Drift, summarise_latency
from evaltools.report.content import Sources
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.markdown import markdown_of
from evaltools.report.words.facts import drift_in_words
from evaltools.result.device import DeviceConditions
from evaltools.result.execution import ExecutionUsed, InferenceSeconds, ProcessMemory
from evaltools.result.facts import RuntimeUsed
from evaltools.result.figure import Figure
from evaltools.result.result import DRIFT, Result, Row
from evaltools.result.rounds import Phase
from evaltools.tasks.framework.definition import Better
from tests.limits import outcome
from tests.locate import found as located
from tests.report.benchmark_samples import PROFILE, QUIET, a_round, benchmark, changed, row
from tests.report.device_samples import BOARD, PHONE, lost, run_of, work
from tests.report.page.reading import PageRead, transcript
from tests.report.page.samples import classifier, operators, own, read, search, searched, stored, suite
from tests.results import classified, configuration, result, result_with, row_with, with_execution, with_own

FOLDER: Final = Path(__file__).with_name("pages")
EXECUTION: Final = ExecutionUsed(
    2, 200, 20, {"opening": 0.5}, {"read": 1.0, "decode": 4.0, "inference": 5.0}, "inference",
    worker_seconds=[{"read": 0.5, "decode": 3.0, "inference": 1.0}, {"read": 0.5, "decode": 2.0, "inference": 1.0}],
    inference_seconds={"reference": InferenceSeconds(0.25, 1.0, 0.125), "a/~b": InferenceSeconds(0.5, 0.0625, 0.0625)},
    memory=[ProcessMemory("evaltools", None, [0.0, 0.5, 1.0], [50.0, 70.0, 60.0])],
)  # fmt: skip


def timed() -> Result:
    """A classifier that is worse than its reference, with all that is known of how it was run."""
    made = classifier()
    first, second = made.rows
    texts = second.texts | {DRIFT: drift_in_words(Drift(0.31, 1e-6))}
    drifting = row_with(second, texts=texts, peak_memory_mb=104.5)
    return with_execution(replace(made, rows=[first, drifting]), EXECUTION)


def with_slashes() -> Result:
    """Names that are no plain steps of a path."""
    made = timed()
    first, second = made.rows
    return replace(
        made,
        rows=[
            first,
            with_own(replace(second, name="a/~b"), {"mAP 50/95": Figure(0.25), "a~1b": Figure(0.125)}),
        ],
    )


def not_as_asked() -> Result:
    """One was not measured, one fell back, one crashed on its way, one has a figure without a number."""
    made = classifier([])
    first, second = made.rows
    gone = row_with(
        configuration("gpu"),
        status="not measured",
        reason="no Vulkan",
        runtime=None,
        delegates=[],
        delegation=None,
        latency=None,
    )
    entries = [
        first,
        gone,
        replace(second, name="fallen", fallback="no GPU"),
        row_with(second, name="crashed", not_clean="crashed", crashes=2),
        with_own(
            replace(second, name="empty", verdicts=[]),
            {"top1": Figure(None, is_share=True, heading="top-1"), "agreement": Figure(0.5, is_share=True)},
        ),
    ]
    without = [replace(row, figures={name: each for name, each in row.figures.items() if name != "latency_ratio"})
               for row in entries]  # fmt: skip
    return result_with(made, rows=without, warnings=["mind the labels"])


def bare() -> Result:
    """A reference alone, without times."""
    untimed = row_with(configuration("reference", "reference"), latency=None)
    return replace(result(untimed), failed=[])


def measured_benchmark() -> Sources:
    """Two rows that overlap, one that fell back, one that is slow, one that failed after it had figures."""
    phase = Phase([100.0, 110.5, 120.25], [1.0, 1.0, 1.0], [0, 200, 400])
    cool, hot = (replace(QUIET, temperatures={"x": warmth}) for warmth in (30.5, 41.25))
    warm = replace(a_round(Phase(), phase), disturbances=["the load was 9"], before=cool, after=hot)
    rows = [
        row("a", 90, rounds=[a_round(Phase(), phase)], profile=PROFILE),
        row("b", 80, rounds=[warm], profile=PROFILE),
        row("fallen", 70, fallback="no GPU"),
        row("slow", 90_000, ratio=Figure(1000.0, interval=Interval(500.0, 1250.0), count=3)),
        row("broken", 1, accuracy=0.9, status="not measured", reason="died"),
        row("c", 100, accuracy=0.5),
        row("d", 200, accuracy=0.75),
    ]
    runtime = RuntimeUsed("litert", "ai-edge-litert", "2.3.0", "default")
    opened = [changed(each, runtime=runtime) if each.measured.is_measured else each for each in rows]
    return Sources(results={"bench": benchmark(*opened)})


def alone(file: str, milliseconds: float, top1: float) -> Result:
    """One configuration and no reference."""
    entry = row_with(configuration("test"), latency=summarise_latency([1000 * milliseconds] * 3))
    made = result(entry, answered={"test": classified(top1, 1.0)})
    execution = ExecutionUsed(1, 4, None, {}, {"decode": 3.0, "inference": 1.0}, "input")
    return with_execution(replace(made, models=[replace(made.model, file=file, sha256=file)]), execution)


def ranked() -> Sources:
    """Two models of one name, and one that is both better and faster, but fell back."""
    best = alone("c.tflite", 0.5, 1.0)
    fallen = replace(best, rows=[replace(best.rows[0], fallback="no GPU")])
    return Sources({"a": alone("x/m.tflite", 1, 0.5), "b": alone("y/m.tflite", 2, 0.75), "c": fallen})


def disturbed() -> Sources:
    """Benchmarks of three rows, of which one, two or all were disturbed."""
    quiet = a_round(Phase(), Phase())
    loud = replace(quiet, disturbances=["the load was 9"])
    rows = {
        names: [row(name, 1000, rounds=[loud if name in names else quiet]) for name in "abc"]
        for names in ("a", "ac", "abc")
    }
    return Sources(results={names: benchmark(*of) for names, of in rows.items()})


def several() -> Sources:
    """Results of two machines and a phone, benchmarks, and limits."""
    host = classifier([])
    fast = [row_with(entry, latency=summarise_latency([500.0] * 3)) for entry in host.rows]
    gone = row_with(configuration("gpu"), status="not measured", reason="no OpenCL", runtime=None, latency=None)
    phone = result_with(host, rows=[*fast, gone], device_run=run_of(devices=(PHONE,)), warnings=["mind"])
    here = benchmark(row("a", 20_000), row("b", 10_000))
    there = replace(here, environment=replace(here.environment, processor="other CPU"))
    kept, broken = Decision("x", "top1 >= 50 %", "pass"), Decision("x", "top1 >= 90 %", "fail", Found("top1", 0.5))
    return Sources(
        {
            **{"host": result_with(host, warnings=["mind"]), "phone": phone, "diff": stored("inference_diff")},
            **{"x": here, "y": there},
            "gate": outcome("gates.toml", GateDecisions("run", "m.tflite", (kept, broken))),
        },
    )


def lone(file: str, figure: float | None, better: Better = "higher") -> Result:
    """Of a task of one's own: one configuration and no reference; without a ``figure`` it was not measured."""
    made = own("own", "depth", better)
    known = replace(made.rows[1].figures["depth"], value=figure)
    entry = with_own(replace(made.rows[1], name="x", verdicts=[]), {"depth": known})
    if figure is None:
        entry = row_with(entry, status="not measured", reason="no GPU", runtime=None, latency=None, figures={})
    return replace(made, rows=[entry], blocks=[], models=[replace(made.model, file=file, sha256=file)])


def on_devices() -> Sources:
    """A phone that became warm, and a board that lost its work once."""
    cool, warm = DeviceConditions(temperatures={"skin": 30.5}), DeviceConditions(temperatures={"skin": 41.25})
    run = run_of(
        work(PHONE.serial, before=cool, after=warm),
        work(BOARD.serial, lost=(lost(BOARD.serial),)),
        devices=(PHONE, BOARD),
    )
    return Sources({"r": replace(classifier([]), device_run=run)})


def searches() -> Sources:
    """One that found an operator, one with NaN, one that looked at none, tensors compared by name, and two models."""
    rows, by_name = operators(), located.by_name("4 of 4")
    endless = {name: figure(math.inf) for name in ("single", "accumulated")}
    broken = replace(rows[2], texts={**rows[2].texts, "status": "wrong"}, figures={**rows[2].figures, **endless})
    compared = [
        replace(
            row,
            texts={**row.texts, "status": "compared"},
            figures={name: each for name, each in row.figures.items() if name.startswith(("accumulated", "gain"))},
            counts={"index": row.counts["index"]},
            verdicts=[],
            rows=[],
        )
        for row in rows
    ]
    weights = figures(weights_sqnr_db=40.0)
    alone = [replace(row, figures={**row.figures, **weights, **singly(row)}) for row in compared]
    alone[1] = located.in_float(alone[1], 42.0, 2.0, rank=1, interval=Interval(0.5, 3.5))
    alone[3] = located.in_float(alone[3], 39.0, -1.0)
    tried = located.tried_in_float("'sum'", 40.0, 4, 2)
    return Sources(
        results={
            "nan": searched([*rows[:2], broken, rows[3]]),
            "refused": searched([], located.not_decided("no such kernel")),
            "by name": searched(compared, by_name),
            "two models": searched(alone, by_name, tried, warnings=["weights differ"]),
        }
    )


def singly(row: Row) -> dict[str, Figure]:
    """The figures of the whole model as those of an operator by itself."""
    found = {name: each for name, each in row.figures.items() if name.startswith("accumulated")}
    return {name.replace("accumulated", "single"): each for name, each in found.items()}


DEPTHS: Final[Mapping[str, float | None]] = {"a": 0.25, "b": 0.75, "c": None}
PAGES: Final[Mapping[str, Callable[[], Sources]]] = {
    "classifier": lambda: Sources({"r": timed()}, located={"r": [search()]}),
    "not as asked": lambda: Sources({"r": not_as_asked()}),
    "bare": lambda: Sources({"r": bare()}),
    "imagenet": lambda: Sources({"r": stored("imagenet")}),
    "diff": lambda: Sources({"r": stored("inference_diff")}),
    "coco": lambda: Sources({"r": stored("coco")}),
    "drawings": lambda: Sources({"r": own("segmentation", "gpu")}),
    "own": lambda: Sources({name: lone(f"{name}.tflite", figure) for name, figure in DEPTHS.items()}),
    "benchmark": measured_benchmark,
    "benchmarks": lambda: Sources(results={**measured_benchmark().results, "only": benchmark(row("only", 90))}),
    "several": several,
    "ranked": ranked,
    "disturbed": disturbed,
    "slashes": lambda: Sources({"a": timed(), "b": with_slashes()}, located={"b": [search()]}),
    "searches": searches,
    "suite": lambda: Sources(results={"suite": suite("xnnpack")}),
    "devices": on_devices,
}


MADE_OF_OTHERS: Final = {"bare", "benchmarks", "imagenet", "own", "slashes"}
"""Of these pages nothing is kept: other ones have the same sections."""
KEPT: Final = tuple(name for name in PAGES if name not in MADE_OF_OTHERS)
IN_MARKDOWN: Final = {"benchmark", "classifier", "searches"}


@cache
def page_read(name: str) -> PageRead:
    """The page; its charts take a second to draw."""
    return read(PAGES[name]())


def shown(name: str) -> str:
    """The texts of the page, then of some the same in Markdown."""
    page = transcript(page_read(name))
    if name not in IN_MARKDOWN:
        return f"{page}\n"
    return f"{page}\n\n== in Markdown\n\n{markdown_of(page_of(PAGES[name]())).decode()}"


def kept(name: str) -> Path:
    """The file of a page."""
    return FOLDER / f"{name.replace(' ', '-')}.txt"


def main(names: list[str]) -> None:
    """Write the pages named, or all."""
    FOLDER.mkdir(exist_ok=True)
    for name in names or KEPT:
        kept(name).write_text(shown(name))


if __name__ == "__main__":
    main(sys.argv[1:])
