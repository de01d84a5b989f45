"""An inspection with delegates that take something, nothing, refuse, or end their process."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.cli.shared.terminal import make_console
from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable
from evaltools.inspection.model import inspect_model
from evaltools.model import ModelFile
from evaltools.report.page.screens import print_sections
from evaltools.result.result import Result, Row
from evaltools.runtime import DelegateCoverage, Delegation, Open, Session, open_session
from tests import tiny_models


def refuse(model: ModelFile, configuration: Configuration) -> Session:
    raise ConfigurationUnavailable("first line\nsecond line")


def refuse_at_length(model: ModelFile, configuration: Configuration) -> Session:
    raise ConfigurationUnavailable("why " * 100 + "and what to do\n" + "more")


def crash(model: ModelFile, configuration: Configuration) -> Session:
    os.abort()


def refuse_one_add(model: ModelFile, configuration: Configuration) -> Session:
    """A session that says of every delegate that it left one ADD of two on the CPU, and why."""
    session = open_session(model, Configuration("plain", kernels="builtin"))
    coverage = DelegateCoverage("GPU", True, 1, 1, device="pretended", is_cpu=True)
    session.delegation = Delegation(2, (coverage,), {"ADD": 1}, {"ADD": "too large"})  # type: ignore[misc]
    return session


def inspect(folder: Path, content: bytes, run: bool = True, opener: Open = open_session) -> Result:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return inspect_model(path, run, opener)


def runs_of(result: Result) -> list[Row]:
    return [row for row in result.rows if row.role == "delegate"]


def run_of(result: Result, delegate: str) -> Row:
    return next(row for row in runs_of(result) if row.texts["delegate"] == delegate)


def test_what_xnnpack_leaves_is_named_with_its_types(tmp_path: Path) -> None:
    run = run_of(inspect(tmp_path, tiny_models.add_chain(length=2, dtype="int32")), "XNNPACK")
    assert run.delegation is not None
    assert (run.texts["basis"], run.delegation.delegated_nodes) == ("tested here", 0)
    (left,) = run.rows
    assert (left.name, left.counts, left.texts) == ("ADD", {"nodes": 2}, {"types": "int32 -> int32", "reason": ""})


@pytest.mark.parametrize(("opener", "reason"), [(refuse, "first line"), (crash, "died while the model was loaded")])
def test_a_delegate_that_cannot_be_tried_is_not_tested_with_the_reason(
    tmp_path: Path, opener: Open, reason: str
) -> None:
    inspection = inspect(tmp_path, tiny_models.add_chain(), opener=opener)
    assert {run.texts["basis"] for run in runs_of(inspection)} == {"not tested"}
    for run in runs_of(inspection):
        assert reason in run.reason
        assert "second line" not in run.reason
        assert (run.status, run.delegation) == ("not measured", None)


def test_the_next_step_at_the_end_of_a_long_reason_is_kept(tmp_path: Path) -> None:
    for run in runs_of(inspect(tmp_path, tiny_models.add_chain(), opener=refuse_at_length)):
        assert run.reason.endswith("why and what to do")


def test_the_delegates_own_words_come_with_the_operator(tmp_path: Path) -> None:
    run = run_of(inspect(tmp_path, tiny_models.add_chain(length=2), opener=refuse_one_add), "GPU")
    (used,) = run.delegates
    assert (used.device, used.is_cpu, used.nodes) == ("pretended", True, 1)
    (left,) = run.rows
    assert (left.name, left.counts["nodes"], left.texts["reason"]) == ("ADD", 1, "too large")


def test_without_run_nothing_is_opened(tmp_path: Path) -> None:
    inspection = inspect(tmp_path, tiny_models.add_chain(), run=False, opener=crash)
    runs = runs_of(inspection)
    assert {(run.texts["basis"], run.reason) for run in runs} == {("not tested", "--run=false")}
    assert runs[-1].texts["delegate"] == "GPU"


def test_everything_but_the_runs_is_the_same_without_them(tmp_path: Path) -> None:
    with_runs, without = (inspect(tmp_path, tiny_models.classifier(), run=run) for run in (True, False))
    assert with_runs.rows[0] == without.rows[0]
    assert len(with_runs.rows) == len(without.rows)
    first, _, taken, *_ = with_runs.blocks
    assert [section for section in with_runs.blocks if section not in without.blocks] == [first, taken]
    assert first.blocks[1:] == without.blocks[0].blocks[1:]


def doubt(model: ModelFile, configuration: Configuration) -> Session:
    """A session whose runtime warned of every delegate."""
    session = refuse_one_add(model, configuration)
    session.delegation = replace(session.delegation, warnings=("shapes do not fit",))  # type: ignore[misc]
    return session


def test_what_the_runtime_warned_about_is_said(tmp_path: Path) -> None:
    found = inspect(tmp_path, tiny_models.add_chain(length=2), opener=doubt)
    assert [row.name for row in run_of(found, "GPU").rows if row.role == "warning"] == ["shapes do not fit"]
    text = io.StringIO()
    print_sections(found, make_console(text))
    assert "  warning: shapes do not fit\n" in text.getvalue()
