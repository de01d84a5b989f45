"""Where the native lines go."""

from __future__ import annotations

import pytest

from evaltools.cli import carry_out
from evaltools.cli.carry_out import has_native_lines
from tests.requests import request_of
from tests.results import configuration, result

REFERENCE = configuration("reference", "reference")
ONE = result(REFERENCE, configuration("a"))
TWO = result(REFERENCE, configuration("a"), configuration("b"))


def test_a_program_that_reads_stdout_always_gets_them() -> None:
    assert has_native_lines(TWO, request_of("imagenet", "--quiet").options, is_one_model=False)


def test_on_a_terminal_they_are_those_of_one_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carry_out, "stdout_is_terminal", lambda: True)
    plain, quiet, native = (
        request_of("imagenet", *flags).options for flags in ((), ("--quiet",), ("--compat=native",))
    )
    assert has_native_lines(ONE, plain)
    assert not has_native_lines(ONE, quiet)
    assert not has_native_lines(TWO, plain)
    assert not has_native_lines(ONE, plain, is_one_model=False)
    assert has_native_lines(TWO, native, is_one_model=False)
