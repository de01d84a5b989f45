"""What stands in a report of JUnit's form, read by another implementation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from junitparser import Failure, JUnitXml, Properties, Skipped, TestCase, TestSuite

from tests.pytest_plugin.projects import gate, result_run, run_pytest, write_gates


@pytest.mark.parametrize("workers", [[], ["-n", "2"]])
def test_words_and_figures_are_in_the_report(
    workers: list[str], pytester: pytest.Pytester, sample_result: Path
) -> None:
    gates = [
        gate("sample", "xnnpack", "top1 >= 50 %", "top1 >= 99 %", "top1 drop <= 0.5 points at 95 %"),
        gate("sample", "nnapi", "top1 >= 50 %") + "allow_missing = true\n",
    ]
    write_gates(pytester, result_run("sample", sample_result), *gates)
    run_pytest(pytester, "--junit-xml=report.xml", *workers)
    cases = read_cases(pytester.path / "report.xml")
    assert {case.classname for case in cases.values()} == {"gates.toml"}
    assert properties(cases["sample/xnnpack: top1 >= 50 %"]) == {
        "sample/xnnpack.model": "float32.tflite",
        "sample/xnnpack.verdict": "pass",
        "sample/xnnpack.found": "top1 95 %",
        "sample/xnnpack.top1": "0.95",
    }
    [broken] = cases["sample/xnnpack: top1 >= 99 %"].result
    assert isinstance(broken, Failure)
    assert str(broken.message).startswith("sample/xnnpack: fail: top1 95 %\n  limit   top1 >= 99 %\n")
    undecided = properties(cases["sample/xnnpack: top1 drop <= 0.5 points at 95 %"])
    assert undecided["sample/xnnpack.verdict"] == "inconclusive"
    assert int(undecided["sample/xnnpack.examples_needed"]) > 100
    [skipped] = cases["sample/nnapi: top1 >= 50 %"].result
    assert isinstance(skipped, Skipped)
    assert "NNAPI delegate cannot be created" in str(skipped.message)


def read_cases(file: Path) -> dict[str, TestCase]:
    report = JUnitXml.fromfile(str(file))
    suites = [suite for suite in report if isinstance(suite, TestSuite)]
    return {str(case.name): case for suite in suites for case in suite}


def properties(case: TestCase) -> dict[str, str]:
    groups: Iterable[Properties] = case.iterchildren(Properties)  # type: ignore[no-untyped-call]
    return {str(entry.name): str(entry.value) for group in groups for entry in group}
