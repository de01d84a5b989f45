"""What pages are made of in these tests."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from PIL import Image

from evaltools.gates.accuracy_verdict import in_words
from evaltools.gates.suite_result import SuiteEntry, SuiteResult
from evaltools.locate.conclude import conclude
from evaltools.locate.findings import (
    Answer,
    Cause,
    Errors,
    Evidence,
    Findings,
    Operator,
    OutputErrors,
    Suspect,
)
from evaltools.metrics.classification import Agreement, ClassificationMetrics, TopKAccuracy
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import summarise_latency
from evaltools.metrics.means import MeanChange
from evaltools.report.content import Sources
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.html import html_of
from evaltools.result.evaluation import (
    SCHEMA_VERSION,
    DelegateUsed,
    DelegationProof,
    EvaluationResult,
    LatencyComparison,
)
from evaltools.result.figure import Figure
from evaltools.result.result import Result, Row
from evaltools.result.section import Drawing, Panel
from evaltools.result.verdict import Verdict as TaskVerdict
from evaltools.result_file import read_result
from evaltools.tasks.framework.definition import Better, Mean
from evaltools.tasks.framework.result import DrawnExample, ExampleScores, MetricComparison, MetricMean, ScoredPart
from evaltools.tasks.framework.topk_result import ChangedAnswer, Classified, Comparison, FirstAnswer, TopKChange
from tests import results
from tests.report.page.reading import PageRead

STORED: Final = Path(__file__).resolve().parent / "stored"


def stored(task: str) -> EvaluationResult:
    return read_result(STORED / f"{task}.json")


def changed(count: int, example: str = "{}.jpg") -> list[ChangedAnswer]:
    cat, dog = FirstAnswer("cat", 0.75), FirstAnswer("dog", 0.5)
    return [ChangedAnswer(example.format(number), "cat", cat, dog, "lost", tie=False) for number in range(count)]


def classifier(changes: list[ChangedAnswer] | None = None, folder: str = "") -> EvaluationResult:
    """200 pictures, of which 7 were lost and 2 gained; with a speed."""
    found = changed(9) if changes is None else changes
    worse = TaskVerdict("worse", "top1", "reference", "", -0.025, -0.05, -0.001, 0.005, 0.18, None)
    worse = in_words(worse, 200)
    reference = replace(results.configuration("reference", "reference"), finished_examples=200)
    test = replace(
        results.configuration("xnnpack"), verdicts=[worse], flags=["--use_xnnpack=true"], finished_examples=200
    )
    answered = {
        entry.name: Classified(ClassificationMetrics(TopKAccuracy(200, (top1, 0.75)), 0, 2), [])
        for entry, top1 in ((reference, 0.525), (test, 0.5))
    }
    made = replace(results.result(reference, test, answered=answered), examples_done=200)
    topk = [TopKChange(1, 7, 2, -0.025, Interval(-0.05, -0.001), 0.18, 0.18)]
    compared = Comparison("reference", "xnnpack", Agreement(200, 200 - len(found), 7, 2), topk, 3, 1, found)
    ratio = LatencyComparison("reference", "xnnpack", 20, 0.5, Interval(0.4, 0.625))
    options = {"ground_truth_images_path": folder}
    return replace(results.with_part(made, comparisons=[compared], options=options), latency_comparisons=[ratio])


def search(count: int = 4) -> Result:
    """The last of so many operators is wrong."""
    return conclude(findings(count))


def findings(count: int = 4) -> Findings:
    right = Errors(1e-7, 1e-7, 1e-7, 5, 0)
    operators = [
        Operator(number, "CONV_2D", f"tensor {number}", "absolute", "right", "XNNPACK", right, right, 1.0, 1e-6, 2e-6)
        for number in range(count - 1)
    ]
    wrong = Errors(0.5, 0.25, 0.125, 5, 5)
    last = Operator(count - 1, "ADD", "sum", "absolute", "wrong", "CPU", wrong, wrong, 9.0, 0.5, 0.125)
    suspect = Suspect(
        count - 1, count - 1, count - 1, "ADD", "sum", "confirmed",
        (Evidence("single operator", str(count - 1), True, 5, 5),),
        (Cause("broadcast", "the second input is broadcast", "give both inputs one shape"),),
    )  # fmt: skip
    made = classifier()
    return Findings(
        model=made.model,
        configuration=made.configurations[1],
        precision="fp32",
        num_inputs=5,
        inputs=("seed 1",),
        answer=Answer("operator at fault", f"operator at fault: #{count - 1} ADD", "bad", (count - 1,)),
        suspects=(suspect,),
        operators=(*operators, last),
        outputs=(OutputErrors("sum", "absolute", wrong, 1e-3),),
        compiles=count,
        environment=replace(made.environment, elapsed_s=2.0),
    )


def png(size: tuple[int, int] = (4, 3)) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", size).save(buffer, "PNG")
    return buffer.getvalue()


def own(task: str, text: str, better: Better = "higher", folder: str = "d") -> EvaluationResult:
    """Of a task with one metric and a drawing of each kind; ``text`` is what others gave: names, examples, reasons."""
    made = results.result(results.configuration("reference", "reference"), results.configuration(text))
    worse = TaskVerdict("worse", text, "reference", "", -0.25, None, -0.001, 0.005, None, None)
    worse = in_words(worse, 4, is_share=False)
    entries = [replace(entry, figures={text: 0.5, "none": None}) for entry in made.configurations]
    panels = (Panel(text, png()), Panel(text, png(), is_over=True), Panel("no picture", text.encode()))
    part = ScoredPart(
        name=text,
        source=text,
        sha256="",
        options={"images": text},
        example_count=4,
        examples_sha256="00",
        preprocessing_latency=summarise_latency([]),
        metrics=[Mean(text, better)],
        means=[MetricMean(entry.name, text, 4, float("nan"), 0.1, None) for entry in entries],
        comparisons=[MetricComparison("reference", text, text, MeanChange(4, -0.25, 0.1, 2, 1.0), None)],
        scores=[ExampleScores(text, {"reference": [0.5], text: [None]}), ExampleScores("b", {"reference": [0.5]})],
        drawings=[DrawnExample(text, text, Drawing(0.5, text, f"{folder}/{text}", panels))],
    )
    entries[1] = replace(entries[1], verdicts=[worse])
    return replace(made, task=task, part=part, configurations=entries, warnings=[text])


def suite_row(name: str, kind: str, ratio: float, proof: DelegationProof, **figures: Figure) -> Row:
    """So many times as long as the reference."""
    times = {"latency_ms": Figure(0.09, "ms", "lower"), "latency_ratio": Figure(ratio)}
    verdicts, used = [TaskVerdict(kind, "outputs")], [DelegateUsed("XNNPACK", True, {}, 1, 1)]
    return Row(name, verdicts=verdicts, delegates=used, delegation=proof, figures={**times, **figures})


def suite(text: str) -> SuiteResult:
    """One model is worse, one was not measured, of one there is no result; ``text`` is what others gave."""
    accuracy = Figure(0.5, is_share=True, heading="top-1")
    rows = [
        suite_row(text, "equivalent", 0.5, DelegationProof(9, 7, {})),
        suite_row(text, "worse", 0.8, DelegationProof(1, 1, {}), top1=accuracy),
        Row(text, status="not measured", reason=text),
    ]
    entries = [
        SuiteEntry(
            f"{text}{number}", "m.tflite", "00", "diff", [], "done", result=f"entries/{number}/r.json", rows=[row]
        )
        for number, row in enumerate(rows)
    ]
    entries.append(SuiteEntry("gone", "m.tflite", "00", text, [], "failed", reason=text))
    return SuiteResult(SCHEMA_VERSION, classifier().environment, text, entries)


def read(sources: Sources, images: Path | None = None) -> PageRead:
    return PageRead(html_of(page_of(sources), images))
