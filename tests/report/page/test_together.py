"""Several results on one page: those of a task in one table, with what differs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from evaltools.gates.baseline import Baseline, make_baseline
from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, Found
from evaltools.gates.outcome import outcome_of
from evaltools.metrics.latency import summarise_latency
from evaltools.report.page.content.sources import Sources
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.markdown import markdown_of
from evaltools.result.benchmark import Phase
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult, ExecutionUsed
from evaltools.result.locate import Verdict
from evaltools.result.section import Chart
from tests.report.benchmark_samples import a_round, benchmark, row
from tests.report.page.samples import classifier, read, search
from tests.report.tables.test_device_run import PHONE, run_of
from tests.results import classified, configuration, result

EXECUTION = ExecutionUsed(1, 4, None, 0, None, {}, {"decode": 3.0, "inference": 1.0}, "input")


def markdown(sources: Sources) -> str:
    return markdown_of(page_of(sources)).decode()


def table(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading; its own headings first."""
    below = text[text.index(f"\n## {heading}") :].splitlines()
    start = next(place for place, line in enumerate(below) if line.startswith("| "))
    end = next((place for place in range(start, len(below)) if not below[place].startswith("| ")), len(below))
    head, _, *rows = below[start:end]
    return [[cell.strip() for cell in line[2:-2].split(" | ")] for line in (head, *rows)]


def timed(name: str, milliseconds: float, role: str = "test") -> ConfigurationResult:
    return replace(configuration(name, role), inference_latency=summarise_latency([1000 * milliseconds] * 3))


def alone(file: str, milliseconds: float, top1: float) -> EvaluationResult:
    """One configuration and no reference."""
    made = result(timed("test", milliseconds), answered={"test": classified(top1, 1.0)})
    return replace(made, model=replace(made.model, file=file, sha256=file), execution=EXECUTION)


def on(made: EvaluationResult, processor: str = "c", evaltools: str = "0", started: str = "now") -> EvaluationResult:
    environment = replace(made.environment, processor=processor, evaltools=evaltools, started_at=started)
    return replace(made, environment=environment)


def test_accuracy_needs_no_reference() -> None:
    sources = Sources({"a": alone("a.tflite", 1, 0.5), "b": alone("b.tflite", 2, 0.75), "c": alone("c.tflite", 3, 0.5)})
    own = ["4", "c, 2 CPUs", "evaltools 0, ai-edge-litert 2.3.0"]
    assert table(markdown(sources), "All together: imagenet") == [
        [
            *("result", "model", "configuration", "top-1", "p50", "delegated", "model MB", "on the front"),
            *("examples", "machine", "versions"),
        ],
        ["a", "a", "test", "50.00 %", "1 ms", "9/10", "0.00", "yes", *own],
        ["b", "b", "test", "75.00 %", "2 ms", "9/10", "0.00", "yes", *own],
        ["c", "c", "test", "50.00 %", "3 ms", "9/10", "0.00", "", *own],
    ]
    labels = [svg.attributes["aria-label"] for svg in read(sources).all("svg")]
    assert any("On the front, where none is as good and as fast: a, test: 50 at 1 ms" in label for label in labels)
    assert any("a: input 75 % (decode 75 %), inference 25 %" in label for label in labels)


def test_a_configuration_that_fell_back_is_on_no_front() -> None:
    fast = alone("a.tflite", 1, 0.75)
    fallen = replace(fast, configurations=[replace(fast.configurations[0], fallback="no GPU")])
    found = table(markdown(Sources({"a": fallen, "b": alone("b.tflite", 2, 0.5)})), "All together: imagenet")
    assert [line[5:8] for line in found[1:]] == [["FALLBACK, 9/10", "0.00", ""], ["9/10", "0.00", "yes"]]


def test_models_of_one_name_have_their_checksums() -> None:
    first, second = alone("x/m.tflite", 1, 0.5), alone("y/m.tflite", 2, 0.5)
    found = table(markdown(Sources({"a": first, "b": second})), "All together: imagenet")
    assert [line[1] for line in found[1:]] == ["m (x/m.tf)", "m (y/m.tf)"]


def other_examples(made: EvaluationResult) -> EvaluationResult:
    return replace(made, pictures_digest="others")


def other_runtime(made: EvaluationResult) -> EvaluationResult:
    entries = [
        replace(entry, runtime=replace(entry.runtime, version="2.4.0"))
        for entry in made.configurations
        if entry.runtime is not None
    ]
    return replace(made, configurations=entries)


@pytest.mark.parametrize(
    ("changed", "cells"),
    [
        (other_examples, {}),
        (lambda made: replace(made, examples_done=5), {"examples": "5"}),
        (lambda made: on(made, "other CPU"), {"machine": "other CPU, 2 CPUs"}),
        (lambda made: on(made, evaltools="1"), {"versions": "evaltools 1, ai-edge-litert 2.3.0"}),
        (other_runtime, {"versions": "evaltools 0, ai-edge-litert 2.4.0"}),
    ],
    ids=["examples", "number", "machine", "evaltools", "runtime"],
)
def test_what_differs_stands_in_its_column_and_there_is_no_front(
    changed: Callable[[EvaluationResult], EvaluationResult], cells: dict[str, str]
) -> None:
    made = {"a": alone("a.tflite", 1, 0.5), "b": changed(alone("b.tflite", 2, 0.75))}
    headings, _first, second = table(markdown(Sources(made)), "All together: imagenet")
    assert "on the front" not in headings
    assert {name: second[headings.index(name)] for name in cells} == cells
    page = read(Sources(made))
    assert "Not all of it was measured on one machine" in page.source
    assert not [svg for svg in page.all("svg") if "Accuracy against" in svg.attributes["aria-label"]]


def test_host_and_phone_stand_in_one_table() -> None:
    host = classifier()
    fast = [replace(entry, inference_latency=summarise_latency([500.0] * 3)) for entry in host.configurations]
    gone = replace(
        fast[1],
        name="gpu",
        status="not measured",
        reason="no OpenCL",
        runtime=None,
        figures={},
        verdicts=[],
        inference_latency=None,
    )
    phone = replace(host, configurations=[*fast, gone], device_run=run_of(devices=(PHONE,)))
    headings, *rows = table(markdown(Sources({"host": host, "phone": phone})), "All together: imagenet")
    shown = [headings.index(name) for name in ("result", "configuration", "top-1", "verdict", "p50", "machine")]
    assert [[cells[place] for place in shown] for cells in rows] == [
        ["host", "reference", "50.00 %", "", "2 ms", "c, 2 CPUs"],
        ["host", "xnnpack", "50.00 %", "worse", "2 ms", "c, 2 CPUs"],
        ["phone", "reference", "50.00 %", "", "0.5 ms", "Pixel 7 R58M (Google GS201)"],
        ["phone", "xnnpack", "50.00 %", "worse", "0.5 ms", "Pixel 7 R58M (Google GS201)"],
        ["phone", "gpu", "-", "not measured", "-", "Pixel 7 R58M (Google GS201)"],
    ]


def test_benchmarks_stand_in_one_table_the_fastest_first() -> None:
    here = benchmark(row("a", 20_000), row("b", 10_000))
    there = replace(here, environment=replace(here.environment, processor="other CPU"))
    found = table(markdown(Sources(benchmarks={"x": here, "y": there})), "All together: benchmark")
    assert [[*line[:4], line[-2]] for line in found] == [
        ["result", "model", "configuration", "median", "machine"],
        ["x", "a", "b", "10 ms", "c, 2 CPUs"],
        ["y", "a", "b", "10 ms", "other CPU, 2 CPUs"],
        ["x", "a", "a", "20 ms", "c, 2 CPUs"],
        ["y", "a", "a", "20 ms", "other CPU, 2 CPUs"],
    ]


def test_markdown_says_whose_tables_it_shows() -> None:
    decision = Decision("xnnpack", "top1 >= 0.9", "fail", Found("top1", 0.5))
    outcome = outcome_of("1", "gates.toml", [GateDecisions("run", "m.tflite", (decision,))])
    sources = Sources(
        {"a": classifier(), "b": classifier()}, {"bench": benchmark(row("x", 2000))}, outcomes={"gate": outcome}
    )
    text = markdown(sources)
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert {"## a: Accuracy", "## b: Accuracy", "## bench: Speed", "## gate: Limits"} <= set(headings)
    assert len(headings) == len(set(headings))
    assert table(text, "gate: Limits")[1] == ["run", "m.tflite", "xnnpack", "top1 &gt;= 0.9", "0.5", "fail"]
    assert table(text, "bench: Speed")[1][:3] == ["x", "2 ms", "2 ms"]


def test_markdown_of_one_result_names_no_source() -> None:
    assert "\n## Accuracy\n" in markdown(Sources({"a": classifier()}))
    assert "\n## Speed\n" in markdown(Sources(benchmarks={"b": benchmark(row("x", 2000))}))


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        (Sources({"a": replace(result(configuration("x")), configurations=[])}), "no configurations"),
        (
            Sources({"a": replace(result(configuration("x")), configurations=[], stopped="interrupted")}),
            "inter",
        ),
        (Sources(benchmarks={"b": benchmark()}), "the result has no rows"),
        (Sources(outcomes={"gate": outcome_of("1", "gates.toml", [])}), "no limit was held"),
    ],
    ids=["evaluation", "interrupted", "benchmark", "gates"],
)
def test_where_there_is_nothing_the_first_screen_says_so(sources: Sources, said: str) -> None:
    (saying,) = read(sources).of_class("saying")
    assert said in saying.text
    assert "tone-good" not in saying.attributes["class"]


def disturbed(names: str) -> Sources:
    quiet = a_round(Phase(), Phase())
    loud = replace(quiet, disturbances=["the load was 9"])
    rows = [replace(row(name, 1000), rounds=[loud if name in names else quiet]) for name in "abc"]
    return Sources(benchmarks={"bench": benchmark(*rows)})


@pytest.mark.parametrize(("names", "who"), [("a", "a"), ("ac", "a, c"), ("abc", "all rows")])
def test_a_machine_that_was_not_quiet_is_told_once_for_all_rows(names: str, who: str) -> None:
    page = read(disturbed(names))
    (warning,) = page.of_class("warnings")
    assert f"the machine was not quiet while {who} ran" in warning.text
    assert not [each for each in page.of_class("saying") if "quiet" in each.text]
    assert read(disturbed("")).of_class("warnings") == []


def release(day: int, top1: float, milliseconds: float, sha256: str = "00", machine: str = "c, 2 CPUs") -> Baseline:
    made = result(timed("test", milliseconds), answered={"test": classified(top1, 1.0)})
    kept = make_baseline(on(made, started=f"2026-01-0{day}"))
    return replace(kept, model_sha256=sha256, machine=machine)


def test_releases_have_a_table_an_answer_and_a_line() -> None:
    sources = Sources(baselines=[release(2, 0.75, 1), release(1, 0.5, 2)])
    text = markdown(sources)
    assert "* **test**: top-1 50.00 % at first, 75.00 % now; latency_ms 2 ms at first, 1 ms now" in text.replace(
        "\\", ""
    )
    headings, latest, first = table(text, "From release to release")
    assert headings == ["measured", "configuration", "top-1", "latency\\_ms", "with", "model (content)"]
    assert latest[:4] == ["2026-01-02", "test", "75.00 %", "1 ms"]
    assert first[:4] == ["2026-01-01", "test", "50.00 %", "2 ms"]
    page = read(sources)
    assert page.all("h1")[0].text == "imagenet of m.tflite: releases"
    labels = [svg.attributes["aria-label"] for svg in page.all("svg")]
    assert any("2026-01-01, test: 50.00 %; 2026-01-02, test: 75.00 %" in label for label in labels)


def test_lines_over_releases_have_the_unit_of_the_table() -> None:
    (part,) = page_of(Sources(baselines=[release(1, 0.5, 2), release(2, 0.75, 1)])).parts
    charts = [block for block in part.sections[0].blocks if isinstance(block, Chart)]
    drawn = {
        chart.spec["encoding"]["y"]["title"]: [value["value"] for value in chart.spec["data"]["values"]]
        for chart in charts
    }
    assert drawn == {"top1 in %": [50, 75], "latency_ms in ms": [2, 1]}


def test_releases_of_another_content_and_machine_say_so() -> None:
    page = read(Sources(baselines=[release(1, 0.5, 2), release(2, 0.75, 1, sha256="01", machine="other CPU")]))
    assert "The same 4 examples in all of them. Not the same: the model file has had 2 contents" in page.source
    assert "measured on 2 machines" in page.source
    (saying,) = page.of_class("saying")
    assert "latency" not in saying.text
    labels = [svg.attributes["aria-label"] for svg in page.all("svg")]
    assert any("test, c, 2 CPUs: 2 ms; 2026-01-02, test, other CPU: 1 ms" in label for label in labels)


def test_a_configuration_that_is_not_in_every_release_says_so() -> None:
    first, second, last = release(1, 0.5, 2), release(2, 0.5, 2), release(3, 0.5, 2)
    gone, once = (replace(first.configurations[0], name=name) for name in ("gone", "once"))
    first = replace(first, configurations=[*first.configurations, gone, once])
    second = replace(second, configurations=[*second.configurations, gone])
    of_test, of_gone, of_once = read(Sources(baselines=[first, second, last])).of_class("saying")
    assert "3 releases" in of_test.text
    assert "2 releases, and not in the latest one" in of_gone.text
    assert "in one release alone, that of 2026-01-01" in of_once.text


def test_a_baseline_that_nothing_belongs_to_is_said_to_be_alone() -> None:
    text = markdown(Sources({"a": alone("a.tflite", 1, 0.5)}, baselines=[release(1, 0.5, 2)]))
    assert "## Not compared: baselines" in text
    assert "* imagenet of m.tflite, 4 examples, 2026-01-01" in text


def test_tensors_that_were_compared_by_name_are_not_told_as_run_alone() -> None:
    found = search()
    operators = tuple(replace(each, status="compared", local=None, tolerance=None) for each in found.operators)
    by_name = replace(found, operators=operators, culprits=(), verdict=Verdict("compared by name", (), "4 of 4"))
    page = read(Sources(searches={"r": by_name}))
    assert "Each tensor beside the one of the same name elsewhere" in page.source
    assert "Alone:" not in page.source
    (found_table,) = [each for each in page.all("table") if "where the error grows most" in each.text]
    assert [head.text for head in page.all("th") if head.text in ("alone", "tolerance", "SQNR")] == ["SQNR"]
    assert "18.1 dB" in found_table.text
    assert page.figures["operators/3/gain"] == 9.0
