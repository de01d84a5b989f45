"""A result of a task that is not ours goes the way of all results, and nothing names the task."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools import task_kind
from evaltools.cli.shared.terminal import make_console
from evaltools.errors import DataError
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.gate_file import Gate
from evaltools.gates.other_results import hold_all
from evaltools.native.lines.evaluation import native_lines
from evaltools.report.page.screens import print_result
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.json_file import encode_json
from evaltools.result_file import read_result
from tests.result.own_task import KIND, Part
from tests.results import configuration, result


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> EvaluationResult:
    monkeypatch.setitem(task_kind.tree_kinds(), "own", KIND)
    both = configuration("reference", "reference"), configuration("test")
    found = result(*(replace(entry, finished_examples=1000) for entry in both))
    part = Part(1000, {"reference": 900, "test": 700})
    return task_kind.with_task_figures(replace(found, task="own", part=part, failed=[], examples_done=1000))


def test_it_is_written_and_read_with_its_own_part(made: EvaluationResult, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(encode_json(made))
    assert read_result(tmp_path / "r.json") == made
    (tmp_path / "r.json").write_bytes(encode_json(replace(made, part={"pixels": "many", "right": {}})))
    with pytest.raises(DataError, match=r"Expected `int`, got `str` - at `\$\.part\.pixels`"):
        read_result(tmp_path / "r.json")


def test_it_is_gated(made: EvaluationResult) -> None:
    gate = Gate("", "own", "", "*", tuple(map(parse_criterion, ("top1 >= 0.6 at 95 %", "top1 >= 0.72 at 95 %"))))
    (report,) = hold_all([gate], {"run": made})
    assert [decision.verdict for decision in report.decisions] == ["pass", "inconclusive"]


def test_it_is_shown_by_its_own_report(made: EvaluationResult) -> None:
    text = io.StringIO()
    print_result(made, make_console(text))
    assert "right: {'reference': 900, 'test': 700}" in text.getvalue().splitlines()
    assert native_lines(made) == []
