"""What becomes of a limit, and how it is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pytest_plugin.projects import gate, result_run, run_pytest, write_gates


def earlier_result(pytester: pytest.Pytester, result: Path) -> Path:
    """The same figures from an earlier run."""
    earlier = json.loads(result.read_text())
    earlier["environment"]["started_at"] = "2020-01-01T00:00:00+00:00"
    path = pytester.path / "earlier.json"
    path.write_text(json.dumps(earlier))
    return path


UNDECIDED = "top1 drop <= 0.5 points at 95 %"


@pytest.mark.parametrize(
    ("where", "kind", "outcome"),
    [("option", "skip", "skipped"), ("ini", "xfail", "xfailed"), ("option", "fail", "failed")],
)
def test_what_is_open_may_be_a_skip_or_an_expected_failure(
    where: str, kind: str, outcome: str, pytester: pytest.Pytester, sample_result: Path
) -> None:
    write_gates(pytester, result_run("sample", sample_result), gate("sample", "xnnpack", UNDECIDED))
    if where == "ini":
        pytester.makeini(f"[pytest]\nevaltools_inconclusive = {kind}")
    result = run_pytest(pytester, *([f"--evaltools-inconclusive={kind}"] if where == "option" else []))
    result.assert_outcomes(**{outcome: 1})


def test_an_unknown_word_in_the_ini_file_is_refused(pytester: pytest.Pytester, sample_result: Path) -> None:
    write_gates(pytester, result_run("sample", sample_result), gate("sample", "xnnpack", UNDECIDED))
    pytester.makeini("[pytest]\nevaltools_inconclusive = pass")
    result = run_pytest(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "evaltools_inconclusive = pass: use fail, skip, xfail" in result.stderr.str()


def test_a_configuration_that_is_not_in_the_result_fails(pytester: pytest.Pytester, sample_result: Path) -> None:
    write_gates(pytester, result_run("sample", sample_result), gate("sample", "xnnpakc", "top1 >= 50 %"))
    result = run_pytest(pytester)
    result.assert_outcomes(failed=1)
    assert "no configuration is named 'xnnpakc' in sample; there are xnnpack, nnapi, broken" in result.stdout.str()


def test_a_run_that_is_compared_with_an_earlier_result_is_a_test_of_its_own(
    pytester: pytest.Pytester, sample_result: Path
) -> None:
    before = earlier_result(pytester, sample_result)
    same = result_run("same", sample_result) + f'against = "{before}"\n'
    write_gates(pytester, same)
    result = run_pytest(pytester, "-v", "--evaltools-report=page.md")
    assert f"gates.toml::same: no worse than {before.name} " in result.stdout.str()
    result.assert_outcomes(failed=1)
    assert "same/broken: not measured" in result.stdout.str()
    assert "same/xnnpack: fail" not in result.stdout.str()


def test_a_limit_since_an_earlier_result_is_compared_with_it(pytester: pytest.Pytester, sample_result: Path) -> None:
    old = result_run("now", sample_result) + f'against = "{earlier_result(pytester, sample_result)}"\n'
    write_gates(pytester, old, gate("now", "xnnpack", "top1 drop vs old <= 0.1 points"))
    result = run_pytest(pytester, "-k", "vs and old")
    result.assert_outcomes(passed=1, deselected=1)


def test_a_result_that_is_none_fails_every_limit_on_it(pytester: pytest.Pytester) -> None:
    (pytester.path / "result.json").write_text("{}")
    write_gates(pytester, result_run("old", Path("result.json")), gate("old", "*", "top1 >= 50 %", "top1 >= 60 %"))
    result = run_pytest(pytester)
    result.assert_outcomes(failed=2)
    assert result.stdout.str().count("result.json is not an evaltools result") >= 2
