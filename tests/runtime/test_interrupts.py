"""Ctrl-C while native code must not be left half-way."""

from __future__ import annotations

import os
import signal

import pytest

from evaltools.signals import deferred_interrupt, noted_interrupts


def test_the_block_is_finished_before_the_interrupt_takes_effect() -> None:
    steps = []

    def interrupted() -> None:
        with deferred_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("finished")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert steps == ["finished"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_is_noted_ends_nothing_and_a_handler_that_raises_nothing_is_only_called() -> None:
    called: list[int] = []
    with noted_interrupts() as interrupted:
        os.kill(os.getpid(), signal.SIGINT)
        assert list(interrupted) == [signal.SIGINT]
    before = signal.signal(signal.SIGTERM, lambda number, _frame: called.append(number))
    try:
        with noted_interrupts() as interrupted:
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (called, list(interrupted)) == ([signal.SIGTERM], [])
    with noted_interrupts() as interrupted:
        _interrupt()
    assert list(interrupted) == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def _interrupt() -> None:
    raise KeyboardInterrupt
