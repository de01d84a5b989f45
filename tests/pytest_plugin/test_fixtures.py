"""Evaluations within tests of a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.datasets import sample
from evaltools.pytest_plugin.outcome import diff_words
from tests.cli.evaluate.sample_runs import inference_diff
from tests.pytest_plugin.projects import count_runs, plain_pytest

FLOAT32 = str(sample.model_file("float32"))


@pytest.mark.once
def test_the_same_words_run_once(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = count_runs(pytester, monkeypatch)
    words = inference_diff("--config=xnnpack: use_xnnpack=true", runs=2)
    pytester.makepyfile(
        f"""
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_result(number, evaltools_run):
            result = evaltools_run(*{words!r})
            assert result is evaltools_run(*{words!r})
            assert result.rows[1].delegation.delegated_nodes == 19
        """
    )
    plain_pytest(pytester).assert_outcomes(passed=4)
    assert len(runs.started()) == 1


@pytest.mark.parametrize("words", [["diff", "--model_file=nowhere.tflite"], []])
def test_a_run_without_result_fails_the_test_with_what_it_said(words: list[str], pytester: pytest.Pytester) -> None:
    pytester.makepyfile(f"def test_result(evaltools_run):\n    evaltools_run(*{words!r})")
    result = plain_pytest(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*Failed: run *: no result (exit code 2): *", "E*evaltools* said:"])
    assert "session_runs.py" not in result.stdout.str()


@pytest.mark.once
def test_a_delegate_is_compared_with_a_grade(pytester: pytest.Pytester, rounding_delegate: Path) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        BF16 = "bf16: external_delegate_path={rounding_delegate} --external_delegate_options=precision:bf16"

        @pytest.mark.parametrize("within", ["equivalent", "fp16", "bf16", "int8"])
        def test_rounded(within, assert_equivalent):
            assert_equivalent({FLOAT32!r}, BF16, num_runs=5, within=within)
        """
    )
    result = plain_pytest(pytester, "-v")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "*test_rounded[[]equivalent] FAILED*",
            "*test_rounded[[]fp16] FAILED*",
            "*test_rounded[[]bf16] PASSED*",
            ">*assert_equivalent(*",
            "E*float32.tflite, bf16: within expected precision of bf16, asked for equivalent or better: *",
        ]
    )


@pytest.mark.once
def test_a_delegate_that_did_not_run_is_not_equivalent(pytester: pytest.Pytester) -> None:
    (pytester.path / "broken.so").write_text("no library")
    pytester.makepyfile(
        f"""
        def test_absent(assert_equivalent):
            assert_equivalent({FLOAT32!r}, "nnapi: use_nnapi=true", num_runs=1)

        def test_allowed(assert_equivalent):
            assert_equivalent({FLOAT32!r}, "nnapi: use_nnapi=true", num_runs=1, allow_missing=True)

        def test_broken(assert_equivalent):
            assert_equivalent({FLOAT32!r}, "broken: external_delegate_path=broken.so", num_runs=1)

        def test_no_such_grade(assert_equivalent):
            assert_equivalent({FLOAT32!r}, "nnapi: use_nnapi=true", num_runs=1, within="diverged")
        """
    )
    result = plain_pytest(pytester, "-rs")
    result.assert_outcomes(skipped=1, failed=3)
    result.stdout.fnmatch_lines(
        [
            "E*Failed: float32.tflite, nnapi: not measured: *; allow_missing=True skips what cannot exist here",
            "E*Failed: float32.tflite, broken: not measured: *",
            "E*Failed: within='diverged': no such grade. Use identical, equivalent, fp16, bf16, int8",
            "SKIPPED*test_a_delegate*.py:5: float32.tflite, nnapi: not measured: the NNAPI delegate cannot be created*",
        ]
    )


def test_inputs_become_the_flags_for_them(tmp_path: Path) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.JPG").write_text("")
    (tmp_path / "arrays").mkdir()
    (tmp_path / "arrays" / "a.npy").write_text("")
    words = ["inference-diff", "--model_file=m.tflite", "--config=x: use_xnnpack=true"]
    given = ["arrays", "pictures", "image=a.npy"]
    flags = ["--input_files=arrays", "--input_images=pictures", "--input_files=image=a.npy"]
    assert diff_words(tmp_path, "m.tflite", "x: use_xnnpack=true", given) == words + flags
    assert diff_words(tmp_path, "m.tflite", "x: use_xnnpack=true", "photos") == [*words, "--inputs=photos"]
    assert diff_words(tmp_path, Path("m.tflite"), "x: use_xnnpack=true", tmp_path / "arrays") == [
        *words,
        f"--input_files={tmp_path / 'arrays'}",
    ]
