"""--evaltools-report: one page about all evaluations and limits of a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.result.json_file import encode_json
from tests.pytest_plugin.projects import (
    command_run,
    gate,
    plain_pytest,
    result_run,
    run_pytest,
    sample_command,
    write_gates,
)
from tests.report.page.reading import PageRead
from tests.report.page.samples import classifier


def page_at(path: Path) -> PageRead:
    return PageRead(path.read_bytes())


@pytest.fixture
def kept(pytester: pytest.Pytester) -> Path:
    file = pytester.path / "kept.json"
    file.write_bytes(encode_json(classifier()))
    return file


def test_limits_and_results_of_files_are_on_the_page(pytester: pytest.Pytester, kept: Path) -> None:
    write_gates(pytester, result_run("nightly", kept), gate("nightly", "xnnpack", "top1 >= 40 %", "top1 >= 90 %"))
    done = run_pytest(pytester, "--evaltools-report=page.html")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["report: *page.html"])
    page = page_at(pytester.path / "page.html")
    assert "1 failed, 1 passed" in page.of_class("answer")[0].text
    assert [result["command"] for result in page.results] == ["gate", "imagenet"]


def test_gate_files_of_one_name_in_two_folders_are_both_on_the_page(pytester: pytest.Pytester, kept: Path) -> None:
    for folder in ("a", "b"):
        (pytester.path / folder).mkdir()
        run = f'[runs.nightly]\nresult = "{kept}"\n\n'
        limits = '[[gates]]\nrun = "nightly"\nconfiguration = "xnnpack"\nlimits = ["top1 >= 40 %"]\n'
        (pytester.path / folder / "gates.toml").write_text(run + limits)
    files = [f"--evaltools-gates={folder}/gates.toml" for folder in ("a", "b")]
    plain_pytest(pytester, "--evaltools-report=page.html", *files).assert_outcomes(passed=2)
    results = page_at(pytester.path / "page.html").results
    assert [result["command"] for result in results] == ["gate", "gate", "imagenet", "imagenet"]


@pytest.mark.once
def test_runs_of_all_processes_are_on_the_page(pytester: pytest.Pytester) -> None:
    command = sample_command("xnnpack: use_xnnpack=true")
    write_gates(pytester, command_run("sample", command), gate("sample", "xnnpack", "top1 >= 50 %"))
    pytester.makepyfile(f"def test_own(evaltools_run): assert evaltools_run(*{command!r}, '--quiet')")
    run_pytest(pytester, "-n", "2", "--evaltools-report=page.html", ".").assert_outcomes(passed=2)
    page = page_at(pytester.path / "page.html")
    assert {result["command"] for result in page.results} == {"gate", "imagenet"}


def test_a_session_without_evaluations_writes_no_page_and_says_so(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(): pass")
    done = plain_pytest(pytester, "--evaltools-report=page.html")
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*page.html is not written: no test evaluated anything"])
    assert not (pytester.path / "page.html").exists()


def test_a_name_that_says_no_format_is_refused_before_any_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_nothing(): pass")
    done = plain_pytest(pytester, "--evaltools-report=page.pdf")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*--evaltools-report=*page.pdf: the ending .pdf says no format*"])
