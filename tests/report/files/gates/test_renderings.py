"""Verdicts as a table, JUnit XML, Markdown and JSON, whatever the names hold."""

from __future__ import annotations

import html
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from msgspec.structs import replace

from evaltools.cli.judge.github import markdown_summary
from evaltools.cli.judge.verdict_files import badge_json
from evaltools.cli.shared.terminal import make_console
from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, Found
from evaltools.gates.outcome import counts
from evaltools.report.files.rows import junit_of_rows
from evaltools.report.page.rendering.markdown import escape
from evaltools.report.page.screens import print_result
from evaltools.result.figure import Figure
from evaltools.result.json_file import encode_json
from evaltools.result.obstacles import why_not_measured
from evaltools.result.reading import rows_in
from evaltools.result.result import SHARD, Result, Row
from evaltools.result.verdict import GateVerdict, Verdict
from tests.limits import outcome as outcome_of
from tests.report.page import samples

NASTY = 'a|b <script>&amp; `x` *y* _z_ [l](u) \\| "q" \x1b[31m\x00\udc80\ufffe line\r\nbreak\n\n# h'


def outcome(*reports: GateDecisions) -> Result:
    return outcome_of("ci/gates.toml", *reports)


def decision(verdict: GateVerdict = "pass", configuration: str = "fast", **more: object) -> Decision:
    found = None if verdict in ("not measured", "skipped") else Found("top1", 0.9)
    return Decision(configuration, "top1 >= 90 %", verdict, found, **more)  # type: ignore[arg-type]


MIXED = outcome(
    GateDecisions("a", "m.tflite", (decision(), decision("fail"))),
    GateDecisions("b", "n.tflite", (decision("inconclusive", reason="about 500 would do", examples_needed=500),)),
    GateDecisions("a", "m.tflite", (decision("not measured", reason="it died"),)),
    GateDecisions("b", "n.tflite", (decision("skipped", reason="no NNAPI"),)),
)
HOSTILE = outcome(
    GateDecisions(
        NASTY,
        NASTY,
        (
            Decision(NASTY, NASTY, "fail", Found(NASTY, 1.0, output=NASTY), NASTY),
            Decision(NASTY, NASTY, "not measured", reason=NASTY),
            Decision("1. x", "- y", "not measured", reason=NASTY),
        ),
    )
)


def printed(made: Result, width: int = 160) -> list[str]:
    text = io.StringIO()
    console = make_console(text)
    console.width = width
    print_result(made, console)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def read_junit(made: Result, folder: Path) -> dict[str | None, list[TestCase]]:
    """The suites as another program reads them, after its own check of the numbers."""
    path = folder / "junit.xml"
    path.write_bytes(junit_of_rows(made))
    suites = JUnitXml.fromfile(str(path))
    found: dict[str | None, list[TestCase]] = {}
    total = 0
    for suite in suites:
        assert isinstance(suite, TestSuite)
        stated = (suite.tests, suite.failures, suite.errors, suite.skipped)
        suite.update_statistics()  # type: ignore[no-untyped-call]
        assert (suite.tests, suite.failures, suite.errors, suite.skipped) == stated
        found[suite.name] = list(suite)
        total += suite.tests
    assert suites.tests == total
    return found


@pytest.mark.parametrize("width", [160, 20])
def test_no_name_commands_the_terminal_or_breaks_the_lines(width: int) -> None:
    text = "\n".join(printed(HOSTILE, width))
    assert text.replace("\n", "").isprintable()
    assert counts(HOSTILE) in text


def test_junit_has_a_suite_per_run_and_a_case_per_decision(tmp_path: Path) -> None:
    suites = read_junit(MIXED, tmp_path)
    kinds = {
        run: [[(type(entry), entry.type) for entry in case.result] for case in cases] for run, cases in suites.items()
    }
    assert kinds == {
        "a": [[], [(Failure, "fail")], [(Error, "not measured")]],
        "b": [[(Failure, "inconclusive")], [(Skipped, None)]],
    }
    case = suites["b"][0]
    assert (case.classname, case.name, case.system_out) == ("b", "fast: top1 >= 90 %", "top1 0.9")
    assert case.result[0].message == "inconclusive: found top1 0.9; about 500 would do"
    assert suites["b"][1].result[0].message == "skipped: no NNAPI"
    root = ElementTree.fromstring(junit_of_rows(MIXED))
    reasons = [element for element in root.iter() if element.get("message")]
    assert [element.text for element in reasons] == [None] * 4, "each reason is there once"
    assert [entry.get("value") for entry in root.iter("property")] == ["m.tflite", "n.tflite"]


@pytest.mark.parametrize(
    ("of_reference", "of_test", "counts_for_gates"),
    [
        (Row(""), Row(""), True),
        (Row(""), Row("", figures={"nan_outputs": Figure(3)}), False),
        (Row(""), Row("", figures={"failed_examples": Figure(1)}), False),
        (Row(""), Row("", figures={"crashes": Figure(1)}), False),
        (Row(""), Row("", texts={"stopped": "interrupted"}), False),
        (Row(""), Row("", given={SHARD: "0/2"}), False),
        (Row("", figures={"crashes": Figure(1)}), Row(""), False),
        (Row("", figures={"nan_outputs": Figure(3)}), Row(""), True),
    ],
)
def test_a_row_that_no_gate_counts_is_no_pass_in_junit(of_reference: Row, of_test: Row, counts_for_gates: bool) -> None:
    test = replace(of_test, name="fast", verdicts=[Verdict("unchanged", "top1")])
    rows = [replace(each, job="diff") for each in (replace(of_reference, name="cpu", role="reference"), test)]
    root = ElementTree.fromstring(junit_of_rows(replace(samples.suite("x", [test]), rows=rows)))
    assert [case.find("error") is None for case in root.iter("testcase")] == [counts_for_gates]
    assert (why_not_measured(rows[1], rows) == "") == counts_for_gates


def test_junit_can_be_read_whatever_the_names_hold(tmp_path: Path) -> None:
    (cases,) = read_junit(HOSTILE, tmp_path).values()
    assert len(cases) == 3
    content = junit_of_rows(HOSTILE)
    for element in ElementTree.fromstring(content).iter():
        for text in (element.text or "", *element.attrib.values()):
            assert text.replace("\n", "").isprintable()
    assert "a|b <script>&amp; `x`" in str(cases[0].classname)


def test_configurations_share_the_time_of_their_run_by_what_each_took() -> None:
    decisions = (decision(configuration="slow"), decision("fail", configuration="slow"), decision(configuration="fast"))
    gone = decision("not measured", configuration="gone", reason="it died")
    report = GateDecisions("a", "m", (*decisions, gone), 8.0, {"slow": 0.3, "fast": 0.1, "reference": 5.0})
    root = ElementTree.fromstring(junit_of_rows(outcome(report)))
    assert [case.get("time") for case in root.iter("testcase")] == ["3.000", "3.000", "2.000", "0.000"]


def test_the_time_of_a_run_is_that_of_its_suite() -> None:
    reports = [
        GateDecisions("a", "m", (decision(), decision("fail")), 1.5),
        GateDecisions("a", "m", (decision(),), 1.5),
        GateDecisions("b", "m", (decision(),), 0.25),
    ]
    root = ElementTree.fromstring(junit_of_rows(outcome(*reports)))
    assert [element.get("time") for element in root.iter()  if element.get("time")] == [
        "1.750", "1.500", "0.500", "0.500", "0.500", "0.250", "0.250",
    ]  # fmt: skip


def test_no_name_breaks_out_of_the_markdown_table() -> None:
    text = markdown_summary(HOSTILE).decode()
    lines = text.splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert [row.count("|") for row in rows] == [5] * 5
    assert [line[:5] for line in lines if line and not line.startswith("|")] == [
        "# gat",
        "**Non",
        "All r",
        "* **a",
        "* **a",
        "* **n",
        "evalt",
    ]
    assert "<" not in text
    assert text.replace("\n", "").isprintable()


def test_escaped_text_reads_as_it_was() -> None:
    """Undone as Markdown does it: a backslash before a punctuation mark, and entities."""
    for text in ("a|b", "<b>", "&lt;", r"\|", "`x` *y* _z_ [l](u) ~s~ $m$ !", "100 % of 3 - 1"):
        escaped = escape(text)
        assert html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", escaped)) == text
        assert "|" not in escaped
        assert re.search(r"(?<!\\)[`*_\[\]~$]", escaped) is None


def test_the_result_has_every_limit_and_can_be_read_again() -> None:
    content = encode_json(MIXED)
    assert rows_in(content, Path("o.json")) == MIXED
    found = json.loads(content)
    assert (found["command"], found["given"]["gates"], found["limits_broken"]) == ("gate", "ci/gates.toml", True)
    night = found["rows"][1]
    assert (night["job"], night["name"], night["verdicts"][0]["kind"]) == ("b", "fast", "inconclusive")
    limit = night["rows"][0]
    assert (limit["name"], limit["figures"]["top1"]["value"]) == ("top1 >= 90 %", 0.9)
    verdict = limit["verdicts"][0]
    assert (verdict["kind"], verdict["examples_needed"]) == ("inconclusive", 500)
    assert verdict["texts"] == ["found top1 0.9", "about 500 would do"]
    assert json.loads(encode_json(HOSTILE))["rows"][0]["rows"][0]["verdicts"][0]["kind"] == "fail"


@pytest.mark.parametrize(
    ("verdicts", "colour"),
    [
        (("pass", "pass"), "brightgreen"),
        (("pass", "inconclusive"), "yellow"),
        (("not measured", "inconclusive"), "orange"),
        (("not measured", "fail", "pass"), "red"),
    ],
)
def test_a_badge_is_red_where_anything_failed(verdicts: tuple[GateVerdict, ...], colour: str) -> None:
    made = outcome(GateDecisions("r", "m", tuple(map(decision, verdicts))))
    badge = json.loads(badge_json(made))
    assert badge == {"schemaVersion": 1, "label": "evaltools", "message": counts(made), "color": colour}
