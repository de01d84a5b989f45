"""The verdicts of gates as files for CI: a badge, JUnit XML, Markdown for the summary of a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from xml.etree import ElementTree

from evaltools.gates.decide import GateVerdict
from evaltools.gates.ending import ending_of
from evaltools.gates.outcome import GateOutcome
from evaltools.report.content import Sources
from evaltools.report.words.gates import GateLine, counts, lines, warnings_by_run
from evaltools.result.json_file import encode_json

_COLOURS: Final[Mapping[GateVerdict, str]] = {
    "skipped": "lightgrey",
    "pass": "brightgreen",
    "inconclusive": "yellow",
    "fail": "red",
    "not measured": "orange",
}
_COUNTED: Final = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def badge_json(outcome: GateOutcome) -> bytes:
    """The numbers of verdicts; red where anything failed, else the colour of the worst."""
    failed = any(decision.verdict == "fail" for decision in outcome.decisions)
    colour = _COLOURS["fail" if failed else outcome.verdict]
    return encode_json({"schemaVersion": 1, "label": "evaltools", "message": counts(outcome), "color": colour})


def junit_xml(outcome: GateOutcome) -> bytes:
    """A test suite per run, a test case per limit and configuration.

    Each that is no pass says why in its message; :func:`~evaltools.gates.ending.ending_of` says which element that is.
    The time of a suite is that of its run, which configurations share by what each took itself, and the limits of one
    evenly.
    """
    suites: dict[str, list[GateLine]] = {}
    for line in lines(outcome):
        suites.setdefault(line.run, []).append(line)
    seconds = {run: max(line.elapsed_s for line in found) for run, found in suites.items()}
    numbers = _numbers(outcome, list(lines(outcome)), sum(seconds.values()))
    root = ElementTree.Element("testsuites", {"name": f"evaltools {outcome.command}", **numbers})
    warnings = warnings_by_run(outcome)
    for run, found in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": run, **_numbers(outcome, found, seconds[run])})
        properties = ElementTree.SubElement(suite, "properties")
        for model in dict.fromkeys(line.model for line in found):
            ElementTree.SubElement(properties, "property", name="model", value=model)
        for warning in warnings.get(run, ()):
            ElementTree.SubElement(properties, "property", name="warning", value=warning)
        for line in found:
            suite.append(_case(line, _element(outcome, line), seconds[run] * _share(line, found)))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)
    return bytes(text) + b"\n"


def _share(line: GateLine, found: Sequence[GateLine]) -> float:
    """The share, 0..1, of its run's time that a configuration took; equal shares where the times are not known."""
    own = {other.configuration: other.own_s for other in found}
    if not sum(own.values()):
        return 1 / len(found)
    cases = sum(other.configuration == line.configuration for other in found)
    return own[line.configuration] / sum(own.values()) / cases


def _numbers(outcome: GateOutcome, found: Sequence[GateLine], seconds: float) -> dict[str, str]:
    kinds = [_element(outcome, line) for line in found]
    counted = {name: str(kinds.count(kind)) for name, kind in _COUNTED.items()}
    return {"tests": str(len(found)), **counted, "time": f"{seconds:.3f}"}


def _element(outcome: GateOutcome, line: GateLine) -> str | None:
    """The name of the element that says why it is not a pass; None for a pass."""
    return ending_of(line.verdict, outcome.inconclusive_allowed).junit


def _case(line: GateLine, kind: str | None, seconds: float) -> ElementTree.Element:
    name = f"{line.configuration}: {line.limit}"
    case = ElementTree.Element("testcase", classname=line.run, name=name, time=f"{seconds:.3f}")
    if kind is not None:
        reason = ElementTree.SubElement(case, kind, message=f"{line.verdict}: {line.explanation}")
        if kind != "skipped":
            reason.set("type", line.verdict)
    if line.found or line.examples:
        of = f"of {line.examples} examples" if line.examples else ""
        ElementTree.SubElement(case, "system-out").text = " ".join(filter(None, (line.found, of)))
    return case


def markdown_summary(outcome: GateOutcome) -> bytes:
    """The first screen of the page about it in Markdown."""
    from evaltools.report.page.make import page_of
    from evaltools.report.page.rendering.markdown import markdown_of

    return markdown_of(page_of(Sources(outcomes={"gates": outcome})))
