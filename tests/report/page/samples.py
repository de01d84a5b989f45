"""What pages are made of in these tests."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace
from PIL import Image

from evaltools.gates.accuracy_verdict import in_words
from evaltools.locate.rows import ACCUMULATED
from evaltools.metrics.interval import Interval
from evaltools.metrics.means import MeanChange
from evaltools.operators.answer import Answer
from evaltools.report.content import Sources
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.html import html_of
from evaltools.result.facts import DelegateUsed, DelegationProof
from evaltools.result.figure import Figure, Spread
from evaltools.result.result import ALL, Result, Row
from evaltools.result.section import Drawing, Panel
from evaltools.result.verdict import Verdict as TaskVerdict
from evaltools.result_file import read_result
from evaltools.suite.conclude import conclude as conclude_suite
from evaltools.tasks.framework.definition import Better, Example, Mean, Task
from evaltools.tasks.framework.figures import DrawnExample
from evaltools.tasks.framework.report import sections
from evaltools.tasks.framework.topk_report import ChangedAnswer, Comparison, FirstAnswer
from tests import results
from tests.locate import found as located
from tests.report.page.reading import PageRead
from tests.results import ratio, result_with, row_with, with_own, with_ratios

STORED: Final = Path(__file__).resolve().parent / "stored"


def stored(task: str) -> Result:
    return read_result(STORED / f"{task}.json")


def changed(count: int, example: str = "{}.jpg") -> list[ChangedAnswer]:
    cat, dog = FirstAnswer("cat", 0.75), FirstAnswer("dog", 0.5)
    return [ChangedAnswer(example.format(number), "cat", cat, dog, "lost", tie=False) for number in range(count)]


def classifier(changes: list[ChangedAnswer] | None = None, folder: str = "") -> Result:
    """200 pictures, of which 7 were lost and 2 gained; with a speed."""
    found = changed(9) if changes is None else changes
    worse = TaskVerdict("worse", "top1", "reference", "", -0.025, -0.05, -0.001, 0.005, 0.18, None)
    worse = in_words(worse, 200)
    reference = row_with(results.configuration("reference", "reference"), examples=200)
    test = row_with(results.configuration("xnnpack"), verdicts=[worse], flags=["--use_xnnpack=true"], examples=200)
    answered = {
        "reference": results.classified(0.525, 0.75, count=200),
        "xnnpack": results.classified(0.5, 0.75, count=200),
    }
    compared = Comparison(
        "reference", "xnnpack", [7], [2], count=200, same=200 - len(found), identical=3, ties=1, changed=found
    )
    made = results.result(reference, test, answered=answered, comparisons=[compared], folder=folder)
    made = replace(made, examples_done=200, example_count=200)
    return with_ratios(made, {"xnnpack": ratio(0.5, Interval(0.4, 0.625), 20)})


def search(count: int = 4) -> Result:
    """The last of so many operators is wrong."""
    return searched(operators(count))


def operators(count: int = 4) -> list[Row]:
    right, wrong = (1e-7, 1e-7), (0.5, 0.125)
    rows = [
        located.operator(
            number, "CONV_2D", f"tensor {number}", "right", right, right,
            ran_on="XNNPACK", gain=1.0, size=1e-6, tolerance=2e-6,
        )
        for number in range(count - 1)
    ]  # fmt: skip
    last = located.operator(
        count - 1, "ADD", "sum", "wrong", wrong, wrong, ran_on="CPU", gain=9.0, size=0.5, tolerance=0.125
    )
    texts = [f"single operator, operator {count - 1}: 5 of 5 runs beyond the tolerance"]
    texts += ["cause: broadcast: the second input is broadcast", "what to do: give both inputs one shape"]
    shown = {"shown_by": "the second input is broadcast", "remedy": "give both inputs one shape"}
    return [*rows, located.suspected(last, texts, Row("broadcast", "cause", texts=shown))]


def searched(rows: Sequence[Row], answer: Answer | None = None, *parts: Row, **more: Any) -> Result:
    """A search that is concluded; one of its outputs is off."""
    made = classifier()
    entry = made.rows[1]
    output = Row("sum", "output", figures=located.errors(ACCUMULATED, 0.5, 0.125))
    row = Row(
        entry.name, flags=entry.flags, runtime=entry.runtime, delegates=entry.delegates, delegation=entry.delegation,
        rows=[output, *parts],
    )  # fmt: skip
    environment = replace(made.environment, elapsed_s=2.0)
    return located.concluded(located.search(row, made.model, environment, rows, answer, **more))


def png(size: tuple[int, int] = (4, 3)) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", size).save(buffer, "PNG")
    return buffer.getvalue()


def own(task: str, text: str, better: Better = "higher", folder: str = "d") -> Result:
    """Of a task with one metric and a drawing of each kind; ``text`` is what others gave: names, examples, reasons."""
    made = results.result(results.configuration("reference", "reference"), results.configuration(text))
    worse = TaskVerdict("worse", text, "reference", "", -0.25, None, -0.001, 0.005, None, None)
    worse = in_words(worse, 4, is_share=False)
    figure = Figure(0.5, better=better, count=4, spread=Spread(0.1))
    entries = [with_own(row, {text: figure, "none": Figure(None)}) for row in made.rows]
    entries[1] = replace(entries[1], verdicts=[worse])
    panels = (Panel(text, png()), Panel(text, png(), is_over=True), Panel("no picture", text.encode()))
    drawn = DrawnExample(text, Drawing(0.5, text, f"{folder}/{text}", panels))
    task_of_it = Task(
        examples=[Example(text, None), Example("b", None)],
        prepare=lambda value, tensors: [],
        metrics=[Mean(text, better)],
    )
    changes = {("reference", text): {text: MeanChange(4, -0.25, 0.1, 2)}}
    both: dict[str, list[float | None]] = {text: [0.5, 0.5]}
    scores: dict[str, dict[str, list[float | None]]] = {"reference": {**both}, text: {text: [None, None]}}
    blocks = [section for section in sections(task_of_it, changes, scores, {text: [drawn]}, {}) if section.blocks]
    return result_with(
        made, command=task, subject=text if task == "own" else "", rows=entries, blocks=blocks, warnings=[text]
    )


def suite_row(name: str, kind: str, ratio: float, proof: DelegationProof, **figures: Figure) -> Row:
    """So many times as long as the reference."""
    times = {"latency_ms": Figure(0.09, "ms", "lower"), "latency_ratio": Figure(ratio)}
    verdicts, used = [TaskVerdict(kind, "outputs")], [DelegateUsed("XNNPACK", True, {}, 1, 1)]
    named = {"accuracy": next(iter(figures))} if figures else {}
    return Row(name, verdicts=verdicts, delegates=used, delegation=proof, texts=named, figures={**times, **figures})


def suite(text: str, rows: Sequence[Row] | None = None, command: Sequence[str] = ()) -> Result:
    """One model is worse, one was not measured, of one there is no result; ``text`` is what others gave.

    Given ``rows`` are of a model each.
    """
    if rows is None:
        accuracy = Figure(0.5, is_share=True, heading="top-1")
        rows = [
            suite_row(text, "equivalent", 0.5, DelegationProof(9, 7, {})),
            suite_row(text, "worse", 0.8, DelegationProof(1, 1, {}), top1=accuracy),
            Row(text, status="not measured", reason=text),
        ]
        rows = [replace(row, texts={**row.texts, "result": f"entries/{each}/r.json"}) for each, row in enumerate(rows)]
        rows.append(Row(ALL, job=text, status="not measured", reason=text, texts={"state": "failed"}))
    of_jobs = [replace(row, model=number, job=row.job or "diff") for number, row in enumerate(rows)]
    made = classifier()
    models = [replace(made.model, file=f"{text}{number}.tflite") for number in range(len(rows))]
    return conclude_suite(replace(made.environment, command=list(command)), models, of_jobs, text)


def read(sources: Sources, images: Path | None = None) -> PageRead:
    return PageRead(html_of(page_of(sources), images))
