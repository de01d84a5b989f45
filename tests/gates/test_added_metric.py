"""A new metric is one object and one line in a task's list: limits, gates and tables follow."""

from __future__ import annotations

import io
import re
import runpy
from pathlib import Path

import pytest

from evaltools.cli.shared.terminal import make_console
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.gate_file import Gate
from evaltools.gates.other_results import hold_all
from evaltools.report.page.screens import print_result
from evaltools.report.words.gates import found_in_words
from evaltools.result.evaluation import EvaluationResult
from evaltools.tasks.framework import topk_result as metrics
from tests.results import classified, configuration, result

FILE = '''
"""How much of an accuracy is lost between five answers and one."""

from evaltools.metrics.metric import ABSENT, Metric


def _gap(result, configuration):
    accuracies = result.part.topk.classified[configuration.name].metrics.topk.accuracies
    return accuracies[-1] - accuracies[0] if accuracies else ABSENT


GAP = Metric("topk_gap", "accuracy of the k best less that of the best, 0..1", _gap, better="lower", is_share=True,
             heading="gap")
'''


def made(*accuracies: float) -> EvaluationResult:
    """The test configuration has such accuracies."""
    both = (configuration("reference", "reference"), configuration("fast"))
    return result(*both, answered={"fast": classified(*accuracies)})


@pytest.fixture(autouse=True)
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file, and the line."""
    path = tmp_path / "topk_gap.py"
    path.write_text(FILE)
    monkeypatch.setattr(metrics, "METRICS", (*metrics.METRICS, runpy.run_path(str(path))["GAP"]))


@pytest.mark.parametrize(
    ("limit", "verdict", "found"),
    [("topk_gap <= 30 %", "pass", "topk_gap 25 %"), ("topk_gap <= 0.2", "fail", "topk_gap 0.25")],
)
def test_results_have_it_and_gates_limit_it(limit: str, verdict: str, found: str) -> None:
    assert made(0.5, 0.75).configurations[1].figures["topk_gap"] == 0.25
    gate = Gate("", "", "", "*", (parse_criterion(limit),))
    ((decision,),) = (report.decisions for report in hold_all([gate], {"nightly": made(0.5, 0.75)}))
    assert (decision.verdict, found_in_words(decision.found)) == (verdict, found)


def test_the_table_has_a_column_for_it() -> None:
    text = io.StringIO()
    print_result(made(0.5, 0.75), make_console(text), "all")
    (gap,) = (line for line in text.getvalue().splitlines() if line.startswith("gap "))
    assert re.split("  +", gap)[1:] == ["25.00 %", "25.00 %"]
