"""Frames, tables of notebooks and charts of results."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas
import pytest

import evaltools as et
from evaltools.datasets import sample
from evaltools.result.metrics import of_task
from tests import tiny_models
from tests.api.test_evaluations import DATA, ONE, PICTURES
from tests.tasks.framework.task_files import write_task, write_values

TESTS = {"<fast>": et.Configuration(use_xnnpack=True), "nowhere": "use_hexagon=true"}


@pytest.fixture(scope="module")
def result() -> et.Result:
    model = sample.model_file("int8")
    return et.imagenet(model, **DATA, num_images=PICTURES, label_check=False, record_examples=True, tests=TESTS)


@pytest.fixture(scope="module")
def two_models() -> et.Models:
    """The int8 model is compared with the float one, which gives other answers to two of the pictures."""
    models = [sample.model_file("float32"), sample.model_file("int8")]
    return et.imagenet(models, **DATA, label_check=False, tests=ONE)


def test_a_frame_has_a_row_per_configuration_with_its_model_and_intervals(result: et.Result) -> None:
    frame = result.to_dataframe()
    assert list(frame.index) == ["reference", "<fast>", "nowhere"]
    assert list(frame["model"]) == ["int8"] * 3
    fast = frame.loc["<fast>"]
    assert fast["top1"] == result["<fast>"].top1
    assert fast["top1_low"] < fast["top1"] < fast["top1_high"]
    assert fast["change_low"] <= fast["change"] <= fast["change_high"]
    assert pandas.isna(frame.loc["nowhere", "top1"])


def test_examples_have_a_row_for_each_configuration(result: et.Result, two_models: et.Models) -> None:
    frame = result.examples()
    assert len(frame) == 2 * PICTURES
    assert frame.groupby("configuration")["is_right"].mean()["<fast>"] == result["<fast>"].top1
    assert set(frame["model"]) == {"int8"}
    with pytest.raises(et.UsageError, match="record_examples=True"):
        two_models.examples()


def test_truth_and_answer_are_labels_with_their_numbers(result: et.Result) -> None:
    labels = Path(DATA["labels"]).read_text().splitlines()
    frame = result.examples()
    for name in ("truth", "answer"):
        assert [labels[number] for number in frame[f"{name}_index"]] == list(frame[name])
    assert list(frame["is_right"]) == list(frame["truth"] == frame["answer"])


def test_what_is_taken_for_what_is_a_frame_and_a_picture(result: et.Result, tmp_path: Path) -> None:
    frame = result.confusion("<fast>")
    own = result.examples().query("configuration == '<fast>'")
    assert (frame.configuration, frame.to_numpy().sum(), list(frame.index)) == ("<fast>", PICTURES, list(frame.columns))
    right = sum(frame.loc[name, name] for name in frame.index)
    assert right / PICTURES == result["<fast>"].top1
    wrong = own[~own["is_right"]].iloc[0]
    assert frame.loc[wrong["truth"], wrong["answer"]] >= 1
    plot = frame.plot()
    marks = {(mark.y, mark.x): mark.size for mark in plot.chart.marks}
    assert sum(filter(None, marks.values())) == PICTURES
    plot.save(tmp_path / "confusion.svg")
    assert "checkerboard" in (tmp_path / "confusion.svg").read_text()
    with pytest.raises(et.UsageError, match="'fast' is named|named 'fast'.*<fast>"):
        result.confusion("fast")


def test_each_class_has_what_was_right_lost_and_gained(result: et.Result) -> None:
    frame = result.classes()
    own = frame.loc["<fast>"]
    assert (own["examples"].sum(), own["answers"].sum()) == (PICTURES, PICTURES)
    assert own["right"].sum() - frame.loc["reference", "right"].sum() == own["gained"].sum() - own["lost"].sum()
    rings = own.loc["rings"]
    assert rings["recall"] == rings["right"] / rings["examples"]
    assert rings["precision"] == rings["right"] / rings["answers"]


def test_a_result_without_classes_has_no_confusion(tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    model.write_bytes(tiny_models.vector_input(length=4))
    task = f"{write_task(tmp_path)}:brightness"
    found = et.run(task, model, values=write_values(tmp_path), record_examples=True, tests=ONE)
    with pytest.raises(et.UsageError, match=r"has no class for each example; imagenet has"):
        found.confusion()


def test_the_first_table_is_there_in_markdown_and_in_latex(result: et.Result, two_models: et.Models) -> None:
    """A column for each of the first screen; what LaTeX takes for commands is written so that it reads as it is."""
    for found in (result, two_models):
        markdown, latex = found.to_markdown().splitlines(), found.to_latex().splitlines()
        columns = markdown[0].count("|") - 1
        assert 6 <= columns <= 11
        body = latex[latex.index("\\midrule") + 1 : latex.index("\\bottomrule")]
        assert (len(body), {row.count(" & ") for row in body}) == (len(markdown) - 2, {columns - 1})
    assert "\\textless{}fast\\textgreater{}" in result.to_latex()
    assert "\\%" in result.to_latex()


def test_examples_of_a_task_of_ones_own_have_its_scores(tmp_path: Path) -> None:
    model = tmp_path / "m.tflite"
    model.write_bytes(tiny_models.vector_input(length=4))
    task = f"{write_task(tmp_path)}:brightness"
    found = et.run(task, model, values=write_values(tmp_path), record_examples=True, tests=ONE)
    frame = found.examples()
    name = next(iter(of_task(found.result.rows[1])))
    assert frame[frame.configuration == "test"][name].mean() == pytest.approx(found["test"].figures[name])
    changed = found.changed()
    assert (changed["before"] != changed["after"]).all()
    assert set(changed["metric"]) == {name}


def test_a_diff_has_no_examples() -> None:
    found = et.diff(sample.model_file("int8"), inputs="noise", num_runs=2, tests=ONE)
    with pytest.raises(et.UsageError, match="says nothing of single examples"):
        found.examples()


def test_a_time_of_the_reference_that_a_ratio_is_by_stands_beside_it(two_models: et.Models) -> None:
    """The float model was timed in turns with each model's configurations; it has one row."""
    frame = two_models.to_dataframe()
    timed = two_models["int8"]["reference"].latency_ms
    assert timed != frame.loc[("float32", "reference"), "latency_ms"]
    assert frame.loc[("int8", "test"), "reference_latency_ms"] == timed
    assert (
        f"compared with float32.tflite on the same examples, {timed:.3g} ms in turns with it" in two_models.short.below
    )


def test_what_changed_is_a_frame_that_shows_the_pictures(two_models: et.Models) -> None:
    frame = two_models.changed()
    (test,) = (each for each in two_models["int8"].result.rows if each.name == "test")
    of_test = frame[frame.configuration == "test"]
    assert len(of_test) == round((1 - (test.value("agreement") or 0.0)) * test.finished_examples) > 0
    assert (of_test.before != of_test.after).all()
    shown = of_test[:1].gallery()
    assert re.findall(r'class="name"[^>]*>([^<]+)', shown.html) != []
    assert set(re.findall(r'class="name"[^>]*>([^<]+)', shown.html)) == {of_test.example.iloc[0]}
    assert "&lt;img src=&quot;data:image/jpeg" in shown._repr_html_()


def test_where_no_answer_changed_the_frame_is_empty(result: et.Result) -> None:
    frame = result.changed()
    assert len(frame[frame.effect == "lost"]) == 0
    with pytest.raises(et.UsageError, match="there are no pictures"):
        frame.gallery()


def test_a_table_of_a_notebook_is_short_and_escaped(result: et.Result, two_models: et.Models) -> None:
    for shown in (result._repr_html_(), two_models._repr_html_()):
        assert "verdict" in columns(shown)
        assert len(columns(shown)) < 12
    shown = result._repr_html_()
    assert "<td>&lt;fast&gt;</td>" in shown
    assert "<fast>" not in shown
    assert "<p>nowhere: " in shown
    assert {"top7", "top1_low"} <= set(columns(result.full._repr_html_()))


def columns(shown: str) -> list[str]:
    return re.findall(r"<th>([^<]*)</th>", shown)


def test_decisions_on_limits_are_a_table(result: et.Result) -> None:
    report = et.gate(result, ["top1 >= 50 %", "top1 >= 100 %"], "<fast>")
    frame = report.to_dataframe()
    assert list(frame["verdict"]) == [decision.verdict for decision in report]
    assert list(frame["value"]) == [result["<fast>"].top1] * 2
    assert "<td>top1 &gt;= 50 %</td>" in report._repr_html_()


def test_figures_are_drawn_against_each_other(result: et.Result, two_models: et.Models, tmp_path: Path) -> None:
    plot = result.plot("latency_ms", "top1")
    points = plot.spec["data"]["values"]
    assert [point["of"] for point in points] == ["reference", "<fast>"]
    assert [point["y"] for point in points] == [result[name].top1 for name in ("reference", "<fast>")]
    for ending, start in ((".png", b"\x89PNG"), (".svg", b"<svg"), (".html", b"<!doctype html>")):
        plot.save(tmp_path / f"plot{ending}")
        assert (tmp_path / f"plot{ending}").read_bytes().startswith(start)
    assert {point["shape"] for point in two_models.plot("model_mb", "top1").spec["data"]["values"]} == {
        "float32",
        "int8",
    }
    with pytest.raises(et.UsageError, match="no configuration has a figure 'top_1'. Did you mean top1?"):
        result.plot("latency_ms", "top_1")
    with pytest.raises(et.UsageError, match="FILE.svg, FILE.png or FILE.html"):
        plot.save(tmp_path / "plot.pdf")


def test_without_pandas_it_says_what_to_install(result: et.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    for call in (result.to_dataframe, result.examples, result.changed):
        with pytest.raises(et.UsageError, match="need pandas: pip install pandas"):
            call()


def test_a_result_is_saved_as_what_its_name_says(result: et.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "r.json")
    assert et.load(tmp_path / "r.json").result == result.result
    result.save(tmp_path / "r.csv")
    frame = pandas.read_csv(tmp_path / "r.csv", index_col="configuration", float_precision="round_trip")
    assert frame.loc["<fast>", "top1"] == result["<fast>"].top1
    with pytest.raises(et.EvaltoolsError, match=r"r\.txt: a result is saved as FILE\.json"):
        result.save(tmp_path / "r.txt")


def test_what_python_cannot_do_is_said_in_a_sentence(result: et.Result) -> None:
    with pytest.raises(et.EvaltoolsError, match=r"a plot needs two figures: plot\(x, y\)\. Known are .*top1"):
        result.plot()
    with pytest.raises(et.EvaltoolsError, match="num_images=-5: use 0 for all pictures, or how many to take"):
        et.imagenet(sample.model_file("int8"), **DATA, num_images=-5, tests=ONE)
