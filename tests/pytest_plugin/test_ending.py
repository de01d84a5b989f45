"""Exit code, JUnit file and pytest agree on every outcome of a limit, with and without what is allowed."""

from __future__ import annotations

from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from evaltools.result.json_file import encode_json
from evaltools.result.result import Result
from tests.cli.judge.test_never_green import MADE, fast
from tests.command import evaltools_here
from tests.pytest_plugin.projects import gate, result_run, run_pytest, write_gates


class Row(NamedTuple):
    made: Result
    limit: str
    allowed: str
    code: int
    junit: str
    outcome: str


ABSENT = fast(status="not measured", reason="the NNAPI delegate cannot be created", cannot_exist=True)
BROKEN = fast(status="not measured", reason="the GPU was lost")
KEPT = "top1 >= 50 %"
TOO_FEW = "top1 >= 90 % at 95 %"
ROWS = {
    "kept": Row(MADE, KEPT, "", 0, "", "passed"),
    "kept, all is allowed": Row(MADE, KEPT, "missing inconclusive", 0, "", "passed"),
    "broken": Row(MADE, "top1 >= 95 %", "missing inconclusive", 1, "failures", "failed"),
    "too few examples": Row(MADE, TOO_FEW, "missing", 6, "failures", "failed"),
    "too few examples, allowed": Row(MADE, TOO_FEW, "inconclusive", 0, "skipped", "skipped"),
    "cannot exist": Row(ABSENT, KEPT, "inconclusive", 3, "errors", "failed"),
    "cannot exist, allowed": Row(ABSENT, KEPT, "missing", 0, "skipped", "skipped"),
    "not measured": Row(BROKEN, KEPT, "missing inconclusive", 3, "errors", "failed"),
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_exit_code_junit_and_pytest_agree(row: Row, pytester: pytest.Pytester) -> None:
    result = pytester.path / "new.json"
    result.write_bytes(encode_json(row.made))
    allow = "allow_missing = true\n" * ("missing" in row.allowed)
    write_gates(pytester, result_run("new", result), gate("new", "fast", row.limit) + allow)
    inconclusive = "inconclusive" in row.allowed
    words = ["gate", "--junit=j.xml", *(["--allow_inconclusive"] if inconclusive else [])]
    assert evaltools_here(*words, cwd=pytester.path).code == row.code
    junit = ElementTree.parse(pytester.path / "j.xml").getroot()
    counted = {name for name in ("failures", "errors", "skipped") if junit.get(name) != "0"}
    assert counted == ({row.junit} if row.junit else set())
    session = run_pytest(pytester, *(["--evaltools-inconclusive=skip"] if inconclusive else []))
    session.assert_outcomes(**{row.outcome: 1})
    assert (session.ret == 0) == (row.code == 0) == (row.junit in ("", "skipped"))


def test_what_cannot_exist_says_how_it_is_allowed(pytester: pytest.Pytester) -> None:
    result = pytester.path / "new.json"
    result.write_bytes(encode_json(ABSENT))
    write_gates(pytester, result_run("new", result), gate("new", "fast", KEPT))
    said = "cannot be created; allow_missing = true in the gate skips what cannot exist here"
    assert said in run_pytest(pytester).stdout.str()
    assert said in " ".join(evaltools_here("gate", cwd=pytester.path).out.split())
