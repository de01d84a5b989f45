from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.locate.bundle.anatomy import anatomy
from evaltools.locate.bundle.issue import Facts, block, code, delegate_words, headline, issue
from evaltools.locate.bundle.trial import Trial
from evaltools.locate.parts.case import Case
from evaltools.result.locate import Cause, Evidence, LocateResult, SweptOption
from evaltools.runtime.session import Array
from tests.locate.bundle.cases import CPU, addition, case_of, result_of

REPRODUCED = Trial(True, False, "failing.tflite: wrong in 3 of 3 runs\nreproduced")


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return case_of(addition(), CPU, tmp_path)


def with_given(case: Case, given: Array, expected: Array | None = None) -> Case:
    np.savez(case.arrays, input_7=given, expected=case.expected if expected is None else expected, given=given)
    return replace(case)


def text_of(case: Case, result: LocateResult | None = None, trial: Trial | None = REPRODUCED) -> str:
    found = result or result_of(case)
    return issue(
        Facts(
            result=found,
            case=case,
            culprit=found.culprits[0],
            part=anatomy(case.model.read_bytes()),
            model_bytes=748,
            neighbour_bytes=None,
            install=["ai-edge-litert==2.3.0", "numpy"],
            trial=trial,
            no_script="" if trial else "the runtime theirs has no script",
        )
    )


def test_an_issue_has_everything_that_a_reader_needs(case: Case) -> None:
    given = case.expected.copy()
    given[1, 2] = -1
    cause = Cause("the sum is beyond 65 504", "fp32 is right", "force fp32", "https://github.com/a/b/issues/1")
    result = result_of(
        case,
        [Evidence("single operator", "operator 0", True, 4, 5, "with clean inputs")],
        [cause],
        [SweptOption("gpu_precision_loss_allowed=false", False, "it is a matter of precision")],
        {"ai-edge-litert": "2.3.0"},
    )
    text = text_of(with_given(case, given), result)
    for line in (
        "# ADD gives wrong values with the builtin kernels",
        "* Wrong: `sum`. Largest difference 113 (in the unit of the output), where 1e-05 is allowed, "
        "0.373 of the values (root mean square)",
        "* Too far off in 4 of 5 runs (single operator)",
        "1 of 8 elements are too far off:",
        "| [1, 2] | 112 | -1 |",
        "`failing.tflite` has 748 bytes.",
        "pip install ai-edge-litert==2.3.0 numpy",
        "python reproduce.py",
        "* the sum is beyond 65 504. Shown by: fp32 is right. What helps: force fp32 (https://github.com/a/b/issues/1)",
        "* single operator, operator 0: agrees, 4 of 5 runs (with clean inputs)",
        "* with `gpu_precision_loss_allowed=false` it is right: it is a matter of precision",
        "* ai-edge-litert 2.3.0",
    ):
        assert line in text.splitlines(), line


def test_what_was_not_reproduced_is_said_first(case: Case) -> None:
    text = text_of(case, trial=Trial(False, False, "not reproduced"))
    assert text.split("\n\n")[1].startswith("**Not reproduced:** the attached script did not show this")


def test_a_bundle_without_a_script_says_why(case: Case) -> None:
    text = text_of(case, trial=None)
    assert text.split("\n\n")[1] == "**Not tried:** the runtime theirs has no script."
    assert "python reproduce.py" not in text


def test_only_the_first_wrong_elements_are_shown(case: Case) -> None:
    expected = np.zeros((1000, 1000), np.int8)
    begun = time.monotonic()
    text = text_of(with_given(replace(case, unit="steps", tolerance=1.0), expected + np.int8(3), expected))
    assert time.monotonic() - begun < 5
    assert "1000000 of 1000000 elements are too far off, the first:" in text
    assert text.count("| 0 | 3 |") == 8
    assert "Largest difference 3 (steps of the output's scale), where 1 is allowed" in text


def test_other_shapes_numbers_and_truths_are_shown(case: Case) -> None:
    assert "The shape is (2, 3) where the CPU has (2, 4)." in text_of(with_given(case, np.zeros((2, 3), np.float32)))
    odd = np.full((2, 4), np.nan, np.float32)
    assert "| [0, 0] | 100 | nan |" in text_of(with_given(case, odd))
    assert "| [0] | True | False |" in text_of(with_given(case, np.array([False]), np.array([True])))
    assert "| [] | 2 | 1 |" in text_of(with_given(case, np.array(1.0), np.array(2.0)))
    assert "too far off" not in text_of(with_given(case, odd, odd)).partition("## Expected")[2]


def test_nobody_is_mentioned_and_nothing_is_linked(case: Case) -> None:
    result = result_of(
        case,
        [Evidence("prefix", "operators 0 to 1 of @team", True, 1, 1, "#12 <b>|x|</b>")],
        [Cause("a `cause`", "*this*", "see [there](http://x)", "javascript:alert(1)")],
    )
    text = text_of(case, result)
    assert "@<!-- -->team" in text
    assert "#<!-- -->12 &lt;b&gt;&#124;x&#124;&lt;/b&gt;" in text
    assert "javascript" not in text
    assert "see \\[there\\](http://x)" in text


def test_folders_of_this_machine_are_not_told(case: Case, tmp_path: Path) -> None:
    flags = f"external_delegate_path={tmp_path}/npu.so external_delegate_options=a:1"
    text = text_of(replace(case, configuration=Configuration.from_text("c", flags)))
    assert str(tmp_path) not in text
    assert "`external_delegate_path=npu.so external_delegate_options=a:1`" in text


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("", "XNNPACK"),
        ("kernels=reference", "the reference kernels"),
        ("use_gpu=true", "the GPU delegate"),
        ("use_xnnpack=true xnnpack_force_fp16=true", "XNNPACK in fp16"),
        ("external_delegate_path=/a/b.so external_delegate_path=c.so", "b.so and c.so"),
        ("external_delegate_path=b.so use_xnnpack=true", "b.so and XNNPACK"),
    ],
)
def test_delegates_are_named_in_words(flags: str, words: str) -> None:
    assert delegate_words(Configuration.from_text("c", flags)) == words


def test_several_operators_are_named_by_their_culprit(case: Case) -> None:
    culprit = replace(result_of(case).culprits[0], last=1, name="ADD to SUM")
    assert headline(case, culprit, False).startswith("ADD to SUM gives wrong values")
    assert headline(case, culprit, True).startswith("ADD to SUM crashes")


@pytest.mark.parametrize(
    ("text", "written"),
    [("a", "`a`"), ("`", "`` ` ``"), ("a``b", "```a``b```"), ("two\nlines", "`two lines`"), ("\x1b[2J", "`\\x1b[2J`")],
)
def test_code_holds_whatever_it_is_given(text: str, written: str) -> None:
    assert code(text) == written


def test_long_names_are_cut() -> None:
    assert code("x" * 1000) == f"`{'x' * 200}...`"


def test_a_block_cannot_be_left() -> None:
    assert block("```\nx") == "````\n```\nx\n````"


def test_looks_that_found_it_right_are_not_said_to_be_too_far_off(case: Case) -> None:
    given = case.expected.copy()
    given[0, 1] += 2
    seen = [Evidence("single", "0", True, 60, 60), Evidence("taps", "0-1", False, 0, 60, "a copy of it is right")]
    text = text_of(with_given(case, given), result_of(case, seen))
    assert "* Too far off in 60 of 60 runs (single)\n" in text
    assert "taps, 0-1: does not agree, 0 of 60 runs (a copy of it is right)" in text


def test_a_fault_of_all_elements_together_is_told_by_its_mean(case: Case) -> None:
    expected = np.array([[127, 5, 4, 3], [2, 1, 0, 127]], np.int8)
    given = np.clip(expected.astype(int) + 1, -128, 127).astype(np.int8)
    moved = replace(with_given(case, given, expected), unit="steps", tolerance=0.4, on_average=True)
    assert "On average +1 (steps of the output's scale) where values are not at an end of their type" in text_of(moved)
