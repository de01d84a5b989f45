"""What pages say in any case, whatever the results hold: safe, bounded, and never better than what was measured."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from PIL import Image

from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, Found
from evaltools.operators.answer import Answer
from evaltools.report.content import Sources
from evaltools.report.files.output_file import require_output_file
from evaltools.report.page.make import page_of
from evaltools.report.page.rendering.html import html_of
from evaltools.report.page.rendering.markdown import markdown_of
from evaltools.report.screen.first import first_screen
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result
from evaltools.result.verdict import Verdict as JudgedVerdict
from evaltools.tasks.framework.definition import Better
from tests.limits import outcome
from tests.report.benchmark_samples import benchmark, row
from tests.report.page.pages import alone, lone, not_as_asked, timed
from tests.report.page.reading import PageRead
from tests.report.page.samples import changed, classifier, operators, own, read, search, searched, stored, suite
from tests.results import configuration, result, result_with, row_with


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
    assert "too large for a page" in page.source
    page = read(Sources({"r": timed()}, saved={"r": b"[" + b" " * 3_000_000 + b"]"}))
    assert page.results == [[]]


def test_what_was_not_measured_as_asked_is_never_good_and_has_no_figure() -> None:
    page = read(Sources({"r": not_as_asked()}))
    words = [word for word in page.of_class("word") if "td" in word.inside]
    tones = {word.text: word.attributes["class"].split()[-1] for word in words}
    assert tones["not measured"] == "tone-missing"
    assert tones["fell back"] == tones["not clean"] == "tone-bad"
    assert "tone-good" not in tones.values()
    assert not [path for path in page.figures if path.startswith("rows/1/")]
    assert "no number" in [cell.text for cell in page.all("td")]
    assert "rows/4/figures/top1" not in page.figures
    assert page.figures["rows/4/figures/agreement/value"] == 0.5


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\n\x1b[31m\u202e{{7*7}}"


DECLARED = ("segmentation", "keypoints", "audio", "text", "own")


def hostile() -> Sources:
    """Every text that others give: names, labels, reasons, files."""
    made = classifier([replace(found, truth=HOSTILE, example=HOSTILE) for found in changed(3)], folder=HOSTILE)
    first, second = made.rows
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
    evaluation = result_with(
        made, rows=entries, environment=environment, models=[model], warnings=[HOSTILE],
        failed=[replace(made.failed[0], example=HOSTILE, reason=HOSTILE)],
    )  # fmt: skip
    texts = {"operator": HOSTILE, "tensor": HOSTILE, "ran_on": HOSTILE}
    hostile = [replace(row, name=HOSTILE + row.name, texts=row.texts | texts) for row in operators()]
    decision = Decision(HOSTILE, HOSTILE, "fail", Found("top1", 0.5))
    return Sources(
        {
            **{HOSTILE: evaluation, "other": made},
            **{task: own(task, HOSTILE, folder=HOSTILE) for task in DECLARED},
            "bench": benchmark(row(HOSTILE, 10), row(f"{HOSTILE}2", 20)),
            "search": searched(hostile),
            "suite": suite(HOSTILE),
            f"{HOSTILE}3": outcome(HOSTILE, GateDecisions(HOSTILE, HOSTILE, (decision,))),
        },
    )


_OUTER = "html head meta title style body header h1 main nav footer script a section details summary wbr"


_INNER = "code h2 h3 h4 span dl div dt dd p b small ul li table caption thead tbody tr th td figure figcaption"


OURS = {*_OUTER.split(), *_INNER.split(), *["svg", "g", "path", "line", "rect", "text", "img"]}


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
    assert "<script" not in markdown(hostile())


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


def test_the_page_stays_small_with_a_hundred_pictures_of_many(tmp_path: Path) -> None:
    noise = Image.effect_noise((320, 240), 90).convert("RGB")
    for number in range(60):
        noise.save(tmp_path / f"{number}.jpg")
    one = classifier(changed(60), folder=str(tmp_path))
    page = read(Sources(dict.fromkeys("abc", one)))
    assert len(page.all("img")) == 96
    assert len(page.source) < 6_000_000
    assert "0 of these 48 are drawn" in page.source


def test_pictures_are_found_where_they_lie_now(tmp_path: Path) -> None:
    Image.new("RGB", (40, 20)).save(tmp_path / "0.jpg")
    sources = Sources({"r": classifier(changed(2), folder="gone")})
    assert read(sources).all("img") == []
    assert read(Sources({"a": sources.results["r"], "b": sources.results["r"]})).source.count("--images=") == 1
    (picture,) = read(sources, tmp_path).all("img")
    assert (picture.attributes["alt"], picture.attributes["width"], picture.attributes["height"]) == (
        "0.jpg: lost; right: cat; reference: cat 0.75; xnnpack: dog 0.50",
        "40",
        "20",
    )


def test_results_of_many_examples_make_a_bounded_page() -> None:
    many = changed(300)
    page = read(Sources({"r": classifier(many)}, located={"r": [search(600)]}))
    assert len(page.of_class("picture")) == 48
    assert len(page.source) < 1_000_000
    assert "A bar is the worst of 5 operators in a row" in page.source


def test_a_search_that_found_no_fault_is_not_on_the_first_screen() -> None:
    none = Answer("no difference", "no difference", "good")
    right = searched(operators()[:3], none)
    page = read(Sources({"r": timed()}, located={"r": [right]}))
    assert not [word for word in page.of_class("word") if "layer by layer" in word.text]


def test_the_search_for_an_operator_is_no_next_step_where_it_is_on_the_page() -> None:
    diverged = JudgedVerdict("diverged", "outputs", "reference")
    made = stored("inference_diff")
    tests = [replace(entry, verdicts=[diverged]) if entry.role == "test" else entry for entry in made.rows]
    differing = replace(made, rows=tests)
    assert [step for step in first_screen({"r": differing}).steps if "evaltools locate" in step.command]
    page = read(Sources({"r": differing}, located={"r": [search()]}))
    assert not [line.text for line in page.all("li") if "evaltools locate" in line.text]


def test_of_several_that_differ_one_search_is_suggested_and_of_counts_of_examples_the_largest() -> None:
    open_one, worst = (
        row_with(configuration(name), flags=[f"--{name}"], verdicts=[JudgedVerdict(kind, "outputs", "reference")])
        for name, kind in (("open", "not decided"), ("worst", "diverged"))
    )
    made = stored("inference_diff")
    several = replace(made, rows=[made.rows[0], open_one, worst])
    (step,) = [step for step in first_screen({"r": several}).steps if step.command.startswith("evaltools locate")]
    assert "--worst" in step.command
    counts = {
        name: result(
            configuration("reference", role="reference"),
            row_with(
                configuration("x"), verdicts=[JudgedVerdict("not decided", "top1", "reference", examples_needed=n)]
            ),
        )
        for name, n in (("a", 765), ("b", 1762))
    }
    steps = " ".join(step.line for step in first_screen(counts).steps)
    assert "1762" in steps
    assert "765" not in steps


def test_a_page_may_be_written_anew_also_in_a_folder_that_is_read(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes(html_of(page_of(Sources({"s": suite("xnnpack")}))))
    require_output_file(page, "--report", [tmp_path])


def test_no_line_ends_within_a_flag_or_between_a_number_and_its_sign_or_unit() -> None:
    warning = "--use_gpu=<b>, 12.5 % of 3 ms; 4 msec, -0.5 points (-1.5 to +2) of 2.0e-5"
    page = read(Sources({"r": result_with(timed(), warnings=[warning])}))
    (line,) = [each for each in page.all("li") if warning in each.text]
    kept = [each.text for each in page.of_class("kept") if each.text in line.text]
    together = {"--use_gpu=<b>,", "12.5 %", "3 ms", "-0.5 points", "(-1.5 to +2)"}
    assert {text for text in kept if text in (*together, "4 ms", "-5")} == together


def markdown(sources: Sources) -> str:
    return markdown_of(page_of(sources)).decode()


def table(text: str) -> list[list[str]]:
    """The cells of the first table; its own headings first."""
    below = text.splitlines()
    start = next(place for place, line in enumerate(below) if line.startswith("| "))
    end = next((place for place in range(start, len(below)) if not below[place].startswith("| ")), len(below))
    head, _, *rows = below[start:end]
    return [[cell.strip() for cell in line[2:-2].split(" | ")] for line in (head, *rows)]


def elsewhere(made: Result, **changed: str) -> Result:
    return replace(made, environment=replace(made.environment, **changed))


def with_other_runtime(made: Result) -> Result:
    (entry,) = made.rows
    assert entry.runtime is not None
    return replace(made, rows=[replace(entry, runtime=replace(entry.runtime, version="2.4.0"))])


@pytest.mark.parametrize(
    ("changed", "cells"),
    [
        (lambda made: replace(made, given=made.given | {"pictures": "others"}), {}),
        (lambda made: replace(made, examples_done=5), {"examples": "5"}),
        (lambda made: elsewhere(made, processor="other CPU"), {"machine": "other CPU, 2 CPUs"}),
        (lambda made: elsewhere(made, evaltools="1"), {"versions": "evaltools 1, ai-edge-litert 2.3.0"}),
        (with_other_runtime, {"versions": "evaltools 0, ai-edge-litert 2.4.0"}),
    ],
    ids=["examples", "number", "machine", "evaltools", "runtime"],
)
def test_what_differs_stands_in_its_column_and_there_is_no_front(
    changed: Callable[[Result], Result], cells: dict[str, str]
) -> None:
    made = {"a": alone("a.tflite", 1, 0.5), "b": changed(alone("b.tflite", 2, 0.75))}
    headings, _first, second = table(markdown(Sources(made)))
    assert "on the front" not in headings
    assert {name: second[headings.index(name)] for name in cells} == cells
    page = read(Sources(made))
    assert "Not all of it was measured on one machine" in page.source
    assert not [svg for svg in page.all("svg") if "Accuracy against" in svg.attributes["aria-label"]]


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        (Sources({"a": replace(result(configuration("x")), rows=[])}), "no configurations"),
        (
            Sources({"a": replace(result(configuration("x")), rows=[], stopped="interrupted")}),
            "inter",
        ),
        (Sources(results={"b": benchmark()}), "Nothing was measured"),
        (Sources({"gate": outcome("gates.toml")}), "No limit was checked"),
    ],
    ids=["evaluation", "interrupted", "benchmark", "gates"],
)
def test_where_there_is_nothing_the_first_screen_says_so(sources: Sources, said: str) -> None:
    page = read(sources)
    (answer,) = page.of_class("answer")
    assert said in answer.text
    assert not page.of_class("tone-good")


@pytest.mark.parametrize(("better", "front"), [("higher", ["", "yes"]), ("lower", ["yes", ""])])
def test_tasks_of_ones_own_are_ranked_by_their_first_metric(better: Better, front: list[str]) -> None:
    results = {"a": lone("a.tflite", 0.25, better), "b": lone("b.tflite", 0.75, better)}
    found = table(markdown(Sources(results)))
    assert [line[found[0].index("on the front")] for line in found[1:]] == front
