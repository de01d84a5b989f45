"""What every test finds, whatever ran before it."""

from __future__ import annotations

import signal

import pytest

from evaltools.signals import INTERRUPTS


def test_no_handler_of_a_signal_is_left_for_the_next_test(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("from tests.conftest import pytest_runtest_protocol")
    pytester.makepyfile(
        """
        import signal
        from evaltools.signals import ignore_interrupts
        def test_ignores_them(): ignore_interrupts()
        def test_hears_ctrl_c(): assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        """
    )
    before = {number: signal.getsignal(number) for number in INTERRUPTS}
    ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as where pytest is started in the background
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    signal.signal(signal.SIGINT, ignored)
    assert {number: signal.getsignal(number) for number in INTERRUPTS} == before
