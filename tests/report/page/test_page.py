"""The page about results says what the JSON results say, in the order of questions, and nothing of what it lacks."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from PIL import Image

from evaltools.gates.baseline import make_baseline
from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, Found
from evaltools.gates.outcome import outcome_of
from evaltools.metrics.latency import summarise_latency
from evaltools.report.page.content.sources import Sources
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.markdown import markdown_of
from evaltools.report.page.sections.first_screen import sayings
from evaltools.report.tables.short_answers import answers_of
from evaltools.result.benchmark import Phase
from evaltools.result.evaluation import EvaluationResult, ExecutionUsed, InferenceSeconds
from evaltools.result.json_file import encode_json
from evaltools.result.locate import Errors, LocateResult, Verdict
from evaltools.result.verdict import Verdict as JudgedVerdict
from evaltools.stats.interval import Interval
from evaltools.stats.latency_ratio import LatencyRatio
from tests import results
from tests.report.benchmark_samples import PROFILE, a_round, benchmark, row
from tests.report.page.reading import PageRead, at
from tests.report.page.samples import changed, classifier, own, read, search, stored, suite

EXECUTION = ExecutionUsed(
    2, 200, None, 0, 20, {"opening": 0.5}, {"read": 1.0, "decode": 4.0, "inference": 5.0}, "inference"
)


def timed() -> EvaluationResult:
    return replace(classifier(), execution=EXECUTION)


def with_slashes() -> EvaluationResult:
    """Names that are no plain steps of a path."""
    made = timed()
    first, second = made.configurations
    spent = {"a/~b": InferenceSeconds(0.25, 1.0, 0.125), "reference": InferenceSeconds(0.5, 0.0625, 0.0625)}
    return replace(
        made,
        configurations=[first, replace(second, name="a/~b", figures={"mAP 50/95": 0.25, "a~1b": 0.125})],
        execution=replace(EXECUTION, inference_seconds=spent),
    )


def measured_benchmark() -> Sources:
    phase = Phase([100.0, 110.5, 120.25], [1.0, 1.0, 1.0], [0, 200, 400])
    rows = [
        replace(row(name, time), rounds=[a_round(Phase(), phase)], profile=PROFILE)
        for name, time in (("a", 90), ("b", 80))
    ]
    return Sources(benchmarks={"bench": benchmark(*rows)})


@pytest.mark.parametrize(
    ("sources", "fewest"),
    [
        (lambda: Sources({"r": timed()}), 30),
        (lambda: Sources({"r": stored("imagenet")}), 30),
        (lambda: Sources({"r": stored("inference_diff")}), 15),
        (lambda: Sources({"r": stored("coco")}), 40),
        (lambda: Sources(searches={"r": search()}), 15),
        (lambda: Sources({"r": timed()}, located={"r": [search(), search(6)]}), 15),
        (lambda: Sources({"a": timed(), "b": with_slashes()}, located={"b": [search()]}), 15),
        (measured_benchmark, 10),
        (lambda: Sources(suites={"r": suite("xnnpack")}), 3),
    ],
    ids=["classifier", "imagenet", "diff", "coco", "locate", "located", "several", "benchmark", "suite"],
)
def test_every_figure_on_the_page_is_that_of_the_result_it_offers(sources: Callable[[], Sources], fewest: int) -> None:
    page = read(sources())
    found = page.figures_by_source
    assert found.keys() == page.results_by_name.keys()
    for source, figures in found.items():
        assert len(figures) >= fewest
        assert figures == {path: at(page.results_by_name[source], path) for path in figures}


def test_the_result_that_is_offered_is_the_one_that_was_given() -> None:
    made = timed()
    (offered,) = read(Sources({"r": made})).results
    assert offered == msgspec.json.decode(encode_json(made))
    (offered,) = read(Sources({"r": made}, saved={"r": b'{"as": "in the file"}'})).results
    assert offered == {"as": "in the file"}


def test_a_result_that_is_too_large_for_the_page_is_left_in_its_file() -> None:
    large = random.Random(0).randbytes(3_000_000)
    page = read(Sources({"r": timed()}, saved={"r": large}))
    assert page.results == []
    assert "the result (3.0 MB) is too large for a page; it is in its own file" in page.source
    page = read(Sources({"r": timed()}, saved={"r": b"[" + b" " * 3_000_000 + b"]"}))
    assert page.results == [[]]


def test_the_first_screen_answers_the_five_questions() -> None:
    page = read(Sources({"r": timed()}))
    (saying, overview) = page.of_class("saying")
    (answer,) = answers_of(timed())
    assert answer.judged == "top-1 WORSE by 2.50 points [-5.00, -0.10]"
    text = " ".join(saying.text.split())
    assert "tone-bad" in saying.attributes["class"]
    assert answer.judged in text
    assert [question.text for question in page.all("dt")] == ["how sure", "how fast", "did it run"]
    sure, fast, ran = (found.text for found in page.all("dd"))
    assert sure == "4 examples; p 0.18"
    assert fast == "2.00x [1.60, 2.50] the speed of reference; median 2 ms, reference 2 ms"
    assert ran.startswith(
        "ai-edge-litert 2.3.0, default kernels, 1 thread, XNNPACK (added by the runtime) 9 of 10 nodes"
    )
    assert "Next evaltools diff m.tflite" in text
    assert "input 50 %" in overview.text
    assert "inference-bound" in overview.text


def test_sections_stand_in_the_order_of_questions() -> None:
    page = read(Sources({"r": timed()}, located={"r": [search()]}))
    assert page.headings[3:] == [
        "Did it run?",
        "Accuracy",
        "Lost and gained",
        "Layer by layer: xnnpack",
        "Speed",
        "Where the time goes",
        "What changed",
        "9 pictures with another first answer: xnnpack",
        "Command and environment",
    ]


def test_what_a_result_lacks_has_no_heading_and_a_hint() -> None:
    bare = replace(
        results.result(replace(results.configuration("reference", "reference"), inference_latency=None)), failed=[]
    )
    page = read(Sources({"r": bare}))
    assert page.headings[1:] == [
        "reference measured, and compared with nothing",
        "Did it run?",
        "Accuracy",
        "Command and environment",
    ]
    assert "--config=" in page.source
    hints = " ".join(line.text for line in page.all("li"))
    assert "evaltools diff m.tflite --report=FILE.html" in hints
    assert "evaltools benchmark m.tflite --report=FILE.html" in hints
    assert all(table.text.strip() for table in page.all("table"))


def test_a_configuration_that_was_not_measured_is_said_in_red_and_has_no_figure() -> None:
    lost = replace(
        results.configuration("gpu"), status="not measured", reason="no Vulkan", runtime=None, inference_latency=None
    )
    made = results.result(results.configuration("reference", "reference"), lost)
    page = read(Sources({"r": made}))
    (saying,) = page.of_class("saying")
    assert "tone-bad" in saying.attributes["class"]
    assert [element.text for element in page.of_class("said")] == ["not measured"]
    assert "no Vulkan" in [element.text for element in page.all("dd")]
    assert not [path for path in page.figures if path.startswith("configurations/1/")]


def test_no_number_is_shown_as_such() -> None:
    made = classifier()
    entry = replace(made.configurations[1], figures={"top1": None, "agreement": 0.5}, peak_memory_mb=None)
    page = read(Sources({"r": replace(made, configurations=[made.configurations[0], entry])}))
    assert "no number" in [cell.text for cell in page.all("td")]
    assert "configurations/1/figures/top1" not in page.figures
    assert page.figures["configurations/1/figures/agreement"] == 0.5


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\n\x1b[31m\u202e{{7*7}}"


DECLARED = ("segmentation", "keypoints", "audio", "text", "own")


def hostile() -> Sources:
    """Every text that others give: names, labels, reasons, files."""
    made = classifier([replace(found, truth=HOSTILE, example=HOSTILE) for found in changed(3)], folder=HOSTILE)
    first, second = made.configurations
    assert second.runtime is not None
    verdict = replace(second.verdicts[0], against=HOSTILE)
    entries = [
        replace(first, name=HOSTILE),
        replace(
            second,
            name=f"{HOSTILE}2",
            reason=HOSTILE,
            verdicts=[verdict],
            runtime=replace(second.runtime, messages=HOSTILE),
        ),
    ]
    environment = replace(made.environment, command=["evaltools", HOSTILE], processor=HOSTILE)
    model = replace(made.model, file=f"a/{HOSTILE}.tflite")
    evaluation = replace(
        made, configurations=entries, environment=environment, model=model, warnings=[HOSTILE],
        failed=[replace(made.failed[0], example=HOSTILE, reason=HOSTILE)],
    )  # fmt: skip
    located = search()
    operators = tuple(replace(each, name=HOSTILE, tensor=HOSTILE, ran_on=HOSTILE) for each in located.operators)
    decision = Decision(HOSTILE, HOSTILE, "fail", Found("top1", 0.5))
    outcome = outcome_of("1", HOSTILE, [GateDecisions(HOSTILE, HOSTILE, (decision,))])
    return Sources(
        {HOSTILE: evaluation, "other": made, **{task: own(task, HOSTILE, folder=HOSTILE) for task in DECLARED}},
        {"bench": benchmark(row(HOSTILE, 10), row(f"{HOSTILE}2", 20))},
        {"search": replace(located, operators=operators)},
        outcomes={HOSTILE: outcome},
        suites={"suite": suite(HOSTILE)},
        baselines=[replace(make_baseline(made), started_at=HOSTILE)],
    )


_OUTER = "html head meta title style body header h1 main nav footer script a section"
_INNER = "article h2 h3 h4 span dl div dt dd p b small ul li table caption thead tbody tr th td figure figcaption"
OURS = {*_OUTER.split(), *_INNER.split(), *["svg", "g", "path", "line", "rect", "text", "img"]}
"""The tags that the templates and charts make."""


@pytest.fixture(scope="module")
def hostile_page() -> PageRead:
    return read(hostile())


def test_texts_from_elsewhere_are_shown_and_never_obeyed(hostile_page: PageRead) -> None:
    assert {element.tag for element in hostile_page.elements} <= OURS
    assert len(hostile_page.all("script")) == 1
    assert hostile_page.left_open == []
    names = {name for element in hostile_page.elements for name in element.attributes}
    assert not [name for name in names if name.startswith("on")]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in hostile_page.source
    assert "{{7*7}}" in hostile_page.source
    assert not {"\x1b", "\u202e"} & set(hostile_page.source)


def test_nothing_on_the_page_leads_to_another_address(hostile_page: PageRead) -> None:
    assert "http:" not in hostile_page.source
    assert "https:" not in hostile_page.source
    addresses = [
        element.attributes[name]
        for element in hostile_page.elements
        for name in ("href", "src", "xlink:href", "action")
        if name in element.attributes
    ]
    assert addresses
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert not re.search(r"url\(|@import", hostile_page.source)


def test_links_within_the_page_lead_somewhere(hostile_page: PageRead) -> None:
    ids = [element.attributes["id"] for element in hostile_page.elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    links = [element.attributes["href"] for element in hostile_page.all("a")]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)


def test_charts_have_a_text_alternative_with_their_figures_and_tables_a_caption() -> None:
    page = read(Sources({"r": timed()}, located={"r": [search()]}))
    charts = [element for element in page.all("svg") if "aria-hidden" not in element.attributes]
    assert len(charts) >= 7
    assert all(chart.attributes["role"] == "img" for chart in charts)
    labels = [chart.attributes["aria-label"] for chart in charts]
    assert all(re.search(r"\d", label) for label in labels)
    assert "xnnpack 2.00x [1.60, 2.50] the speed of reference, 20 pairs" in "".join(labels)
    assert len(page.all("caption")) == len(page.all("table"))


def test_the_page_stays_small_with_fifty_pictures_of_many(tmp_path: Path) -> None:
    noise = Image.effect_noise((320, 240), 90).convert("RGB")
    for number in range(60):
        noise.save(tmp_path / f"{number}.jpg")
    one = classifier(changed(60), folder=str(tmp_path))
    page = read(Sources(dict.fromkeys("abc", one)))
    assert len(page.all("img")) == 50
    assert len(page.source) < 3_000_000
    assert "2 of these 24 are drawn" in page.source


def test_pictures_are_found_where_they_lie_now(tmp_path: Path) -> None:
    Image.new("RGB", (40, 20)).save(tmp_path / "0.jpg")
    sources = Sources({"r": classifier(changed(2), folder="gone")})
    assert read(sources).all("img") == []
    assert read(Sources({"a": sources.evaluations["r"], "b": sources.evaluations["r"]})).source.count("--images=") == 1
    (picture,) = read(sources, tmp_path).all("img")
    assert (picture.attributes["alt"], picture.attributes["width"], picture.attributes["height"]) == (
        "0.jpg: lost; right: cat; reference: cat 0.75; xnnpack: dog 0.50",
        "40",
        "20",
    )


def test_results_of_many_examples_make_a_bounded_page() -> None:
    many = changed(1000)
    page = read(Sources({"r": classifier(many)}, located={"r": [search(2000)]}))
    assert len(page.of_class("picture")) == 24
    assert len(page.source) < 1_000_000
    assert "A bar is the worst of 17 operators in a row" in page.source


def labels_of(result: LocateResult) -> str:
    page = read(Sources(searches={"r": result}))
    return " ".join(svg.attributes.get("aria-label", "") for svg in page.all("svg"))


def test_an_operator_that_gives_nan_is_counted_and_named() -> None:
    found = search()
    nan = Errors(math.inf, math.inf, math.inf, 5, 5, first_not_finite=0)
    broken = replace(found.operators[2], status="wrong", local=nan, accumulated=nan)
    labels = labels_of(replace(found, operators=(*found.operators[:2], broken, found.operators[3])))
    assert "2 of 4 are beyond what is tolerated, the line at 1; operator 2 gives NaN or inf." in labels


def test_texts_about_many_operators_count_each_of_them() -> None:
    found = search(600)
    operators = list(found.operators)
    far = Errors(0.5, 0.5, 0.5, 5, 5)
    for place in (10, 11, 12):
        operators[place] = replace(operators[place], status="wrong", local=far)
    labels = labels_of(replace(found, operators=tuple(operators)))
    assert "4 of 600 are beyond what is tolerated" in labels


def test_a_search_that_looked_at_no_operator_is_told_all_the_same() -> None:
    refused = replace(
        search(), verdict=Verdict("not decided", (), "refused: no such kernel"), operators=(), culprits=()
    )
    page = read(Sources({"r": timed()}, located={"r": [refused]}))
    assert "Layer by layer: xnnpack" in page.headings
    assert "not decided: refused: no such kernel" in page.source


def test_a_located_fault_is_said_on_the_first_screen() -> None:
    page = read(Sources({"r": timed()}, located={"r": [search()]}))
    (said,) = [each.text for each in page.of_class("saying") if "layer by layer" in each.text]
    assert "operator at fault: #3 ADD" in said
    right = replace(search(), verdict=Verdict("no difference"), culprits=())
    page = read(Sources({"r": timed()}, located={"r": [right]}))
    assert not [each for each in page.of_class("saying") if "layer by layer" in each.text]


def test_a_row_that_failed_is_not_ranked_by_the_runs_that_it_had() -> None:
    broken = replace(row("broken", 1, accuracy=0.9), status="failed", reason="died")
    first = benchmark(broken, row("a", 10, accuracy=0.5), row("b", 20, accuracy=0.6))
    page = read(Sources(benchmarks={"x": first, "y": benchmark(row("c", 5))}))
    (table,) = [each for each in page.all("table") if "the fastest first" in each.text]
    assert table.text.index("c") < table.text.rindex("broken")
    assert "not measured" in table.text[table.text.rindex("broken") :]
    (front,) = [svg for svg in page.all("svg") if "Accuracy against" in svg.attributes.get("aria-label", "")]
    assert "broken" not in front.attributes["aria-label"]


def test_a_configuration_that_fell_back_begins_with_that() -> None:
    made = classifier()
    fallen = replace(made.configurations[1], fallback="no GPU")
    (said,) = read(Sources({"r": replace(made, configurations=[made.configurations[0], fallen])})).of_class("saying")
    assert "FALLBACK to the CPU; top-1 WORSE by 2.50 points" in said.text


def test_several_results_are_compared() -> None:
    small = classifier()
    other = replace(small, model=replace(small.model, file="b.tflite"))
    page = read(Sources({"a": small, "b": other}))
    assert page.headings[0] == "In short"
    assert "All together: imagenet" in page.headings
    assert len(page.of_class("saying")) == 2
    assert len(page.results) == 2
    (front,) = [chart for chart in page.all("svg") if "Accuracy against latency" in chart.attributes["aria-label"]]
    assert "a, reference: 50 at 2 ms" in front.attributes["aria-label"]


def test_baselines_are_told_over_time() -> None:
    made = classifier()
    old = replace(make_baseline(made), started_at="2026-01-01")
    new = replace(made, environment=replace(made.environment, started_at="2026-03-01"))
    page = read(Sources({"r": new}, baselines=[old]))
    (chart,) = [svg for svg in page.all("svg") if "top1 over time" in svg.attributes["aria-label"]]
    assert "2026-01-01, xnnpack: 50.00 %; 2026-03-01, reference: 50.00 %" in chart.attributes["aria-label"]


def test_limits_are_told_first() -> None:
    kept, broken = Decision("x", "top1 >= 0.5", "pass"), Decision("x", "top1 >= 0.9", "fail", Found("top1", 0.5))
    outcome = outcome_of("1", "gates.toml", [GateDecisions("run", "m.tflite", (kept, broken))])
    page = read(Sources({"run": classifier()}, outcomes={"gate": outcome}))
    assert "1 failed, 1 passed" in page.of_class("saying")[0].text
    assert "Limits" in page.headings


def test_times_of_a_single_run_are_drawn_where_they_are_known() -> None:
    page = read(measured_benchmark())
    labels = [svg.attributes["aria-label"] for svg in page.all("svg")]
    assert any("a: 3 runs from 0.1 to 0.12 ms" in label for label in labels)
    assert any("start 1.0 MB, opened 1.5 MB, after the runs 1.6 MB, peak 1.8 MB" in label for label in labels)
    assert any("CONV_2D (node 0) 0.065 ms" in label for label in labels)
    assert page.of_class("saying")[0].text.split()[:2] == ["b", "fastest:"]
    facts = dict(page_of(measured_benchmark()).parts[0].sayings[0].facts)
    assert facts["operators"] == "CONV_2D 96 %, SOFTMAX 4 %"  # 130 and 5 us
    step = "the same command with --rounds=8 may tell the two fastest apart, whose intervals overlap"
    assert [each.text.split(maxsplit=1)[1] for each in page.of_class("next")] == [step]


def test_the_search_for_an_operator_is_no_next_step_where_it_is_on_the_page() -> None:
    diverged = JudgedVerdict("diverged", "outputs", "reference")
    made = stored("inference_diff")
    tests = [replace(entry, verdicts=[diverged]) if entry.role == "test" else entry for entry in made.configurations]
    differing = replace(made, configurations=tests)
    searches = [step for said in sayings(differing) for step in said.next_steps if "evaltools locate" in step]
    assert searches
    page = read(Sources({"r": differing}, located={"r": [search()]}))
    assert not [each.text for each in page.of_class("next") if "evaltools locate" in each.text]


def test_beside_others_a_benchmark_says_its_fastest_row_and_what_did_not_run_as_asked() -> None:
    fallen = replace(row("fallen", 70), fallback="no GPU")
    gone = replace(row("gone", 1), status="failed", reason="no driver", figures=None)
    many = benchmark(row("slow", 3000), row("fast", 500), fallen, row("middle", 1000), gone)
    page = read(Sources(benchmarks={"a": many, "b": benchmark(row("only", 90))}))
    said = [each.text for each in page.of_class("saying")]
    assert [text.split(":")[1].split()[0] for text in said] == ["fallen", "fast", "gone", "only"]
    assert [text.count("fastest: ") for text in said] == [0, 1, 0, 0]
    first = page_of(Sources(benchmarks={"a": many, "b": many})).parts[0].sayings[1]
    assert dict(first.facts)["the others"] == "2 more configurations, 1 ms to 3 ms: see Speed"
    assert len(page_of(Sources(benchmarks={"a": many})).parts[0].sayings) == 5


def test_a_speed_is_against_a_row_that_is_named_with_the_digits_that_it_needs() -> None:
    slow = replace(row("slow", 90000), versus_first=LatencyRatio(3, 2000.0, Interval(1000.0, 2500.0)))
    said = page_of(Sources(benchmarks={"a": benchmark(row("first", 45), slow)})).parts[0].sayings[1]
    assert dict(said.facts)["how fast"] == "0.0005x [0.0004, 0.001] the speed of first"


def test_a_warning_that_several_results_share_is_said_once() -> None:
    made = replace(timed(), warnings=["mind the labels", "mind <b>this</b>"])
    shown = read(Sources({"a": made, "b": made})).of_class("warnings")
    assert [each.text for each in shown] == ["a, b: mind the labelsa, b: mind <b>this</b>"]
    assert page_of(Sources({"a": made, "b": made})).warnings == ["a, b: mind the labels", "a, b: mind <b>this</b>"]
    assert page_of(Sources({"a": made})).warnings == ["mind the labels", "mind <b>this</b>"]


def test_no_line_ends_within_a_flag_or_between_a_number_and_its_sign_or_unit() -> None:
    warning = "--use_gpu=<b>, 12.5 % of 3 ms; 4 msec, -0.5 points [-1.5, +2] of 2.0e-5"
    page = read(Sources({"r": replace(timed(), warnings=[warning])}))
    assert warning in [line.text for line in page.all("li")]
    kept = [each.text for each in page.of_class("kept")]
    together = ["--use_gpu=<b>,", "12.5 %", "3 ms", "-0.5 points", "[-1.5,", "+2]"]
    assert [text for text in kept if text in (*together, "4 ms", "-5")] == together


def test_the_first_screen_in_markdown_is_that_of_the_page() -> None:
    sources = Sources({"r": timed()})
    text = markdown_of(page_of(sources)).decode()
    assert "* **xnnpack**: top-1 WORSE by 2.50 points \\[-5.00, -0.10\\]" in text
    cells = [
        cell.text
        for cell in read(sources).all("td")
        if "configurations/1/verdicts" in cell.attributes.get("data-path", "")
    ]
    assert len(cells) == 4
    assert f"| xnnpack | reference | {' | '.join(cells)} |" in text
    assert "<" not in text


def test_a_result_without_times_has_no_section_on_speed() -> None:
    made = classifier()
    untimed = [replace(entry, inference_latency=summarise_latency([])) for entry in made.configurations]
    assert "Speed" not in read(Sources({"r": replace(made, configurations=untimed)})).headings


def test_a_page_is_one_document_with_language_and_title() -> None:
    page: PageRead = read(Sources({"r": timed()}))
    assert page.source.lstrip().startswith("<!doctype html>")
    assert page.all("html")[0].attributes == {"lang": "en"}
    assert page.all("title")[0].text == "m.tflite: imagenet"
    assert len(page.all("h1")) == len(page.all("main")) == 1


def test_results_of_different_tasks_are_not_put_into_one_table() -> None:
    page = read(Sources({"a": classifier(), "b": stored("inference_diff")}))
    assert len(page.of_class("saying")) >= 2
    assert not [heading for heading in page.headings if heading.startswith("All together")]


@pytest.mark.parametrize("several", [False, True])
def test_no_heading_skips_a_level(several: bool) -> None:
    sources = Sources({"r": timed(), **({"b": stored("coco")} if several else {})}, located={"r": [search()]})
    levels = [int(each.tag[1]) for each in read(sources).elements if re.fullmatch("h[1-6]", each.tag)]
    assert levels[0] == 1
    assert all(below - above <= 1 for above, below in itertools.pairwise(levels))
    assert max(levels) == (4 if several else 3)
