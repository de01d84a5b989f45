"""Ctrl-C while native code must not be left half-way."""

from __future__ import annotations

import os
import signal

import pytest

from evaltools.signals import deferred_interrupt


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
