"""What is quoted of native code that has ended, and what is printed of names from elsewhere."""

from __future__ import annotations

import pytest

from evaltools.cli.shared.streams import complain, say
from evaltools.cli.shared.terminal import make_console
from evaltools.text import last_words

GLOG = """\
INFO: Initialized the delegate with 12 kernels.
F0000 00:00:1764038400.123456  4242 tensor.cc:512] Check failed: CanReadValue(src, dst) cannot read a value of this type
*** Check failure stack trace: ***
    @     0x7f2a1c0b4d31  absl::log_internal::LogMessage::Flush()
    @     0x7f2a1c0b6f0a  (unknown)
    @     0x55d0aa001234  main
"""
ABSL_FRAMES = """\
*** SIGABRT received by PID 4242 (TID 4242) on cpu 1 from PID 4242; stack trace: ***
PC: @     0x7f2a1c0b4d31  (unknown)  raise
#3 0x00007f00 in clCreateContext
"""


def test_the_line_that_says_why_is_kept_and_the_stack_is_not() -> None:
    assert last_words(GLOG + ABSL_FRAMES, 300) == (
        "INFO: Initialized the delegate with 12 kernels. F0000 00:00:1764038400.123456 4242 tensor.cc:512] "
        "Check failed: CanReadValue(src, dst) cannot read a value of this type"
    )


def test_it_is_kept_where_more_was_printed_after_it_than_is_quoted() -> None:
    after = "".join(f"frame {number} of the driver\n" for number in range(100))
    said = last_words(GLOG + after, 300)
    why = "Check failed: CanReadValue(src, dst) cannot read a value of this type"
    assert why in said
    assert said.index(why) < said.index("...")
    assert said.endswith("frame 99 of the driver")
    assert len(said) <= 310


def test_a_line_that_is_too_long_begins_with_the_words_that_say_why() -> None:
    said = last_words(f"{'/a/long/path' * 30}.cc:1] Check failed: x {'and y ' * 100}\n", 100)
    assert said.startswith("Check failed: x and y and")
    assert said.endswith("and y ...") or said.endswith("and ...")
    assert len(said) <= 104


def test_without_such_a_line_the_end_is_quoted_from_a_word_on() -> None:
    assert last_words("".join(f"word{number} " for number in range(100)), 20) == "... word98 word99"


@pytest.mark.parametrize("text", ["", "\n \n", "    @ 0x7f2a1c0b4d31  main\n"])
def test_nothing_is_quoted_of_nothing(text: str) -> None:
    assert last_words(text, 20) == ""


def test_one_endless_word_is_cut() -> None:
    assert last_words("x" * 1000, 20) == f"... {'x' * 20}"


@pytest.mark.parametrize(
    "name", ["a\n::error::b", "::error file=x,line=1::b", "a\n \t::set-output name=x::1", "a ##[error]b"]
)
def test_no_line_of_what_is_printed_is_a_command_to_github_actions(
    capfd: pytest.CaptureFixture[str], name: str
) -> None:
    """GitHub Actions takes ``::command`` at the start of a line, behind blanks, and ``##[command]`` anywhere."""
    complain(f"{name}: no such file")
    say(name)
    make_console().print(name)
    printed = "".join(capfd.readouterr())
    assert "error" in printed or "set-output" in printed
    assert not any(line.lstrip().startswith("::") or "##[" in line for line in printed.splitlines())
