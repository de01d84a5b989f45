"""What devices, runtimes and files say stays in its line and commands no terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final

from rich.console import Console

from evaltools.cli.shared.terminal import make_console
from evaltools.report.page.screens import print_configurations, print_result
from evaltools.result.device import DeviceFacts, DeviceLeftOut
from evaltools.result.facts import FailedExample
from tests.report.device_samples import lost, run_of, work
from tests.report.tables.cases import missing, show_device_run
from tests.results import configuration, result, result_with

ODD: Final = "\x1b[31mred\nINFO: Top-1 Accuracy: 1"
SHOWN: Final = r"\x1b[31mred\nINFO: Top-1 Accuracy: 1"


def printed(show: Callable[[Any, Console], None], what: Any) -> str:
    text = io.StringIO()
    console = make_console(text)
    console.width = 160
    show(what, console)
    return text.getvalue()


def test_what_a_device_says_of_itself() -> None:
    odd = DeviceFacts("R\x1b[2J", model="Pi\nxel", soc="\x07")
    gone = [DeviceLeftOut("\r", "two\nlines\x1b[31m")]
    shown = printed(show_device_run, run_of(work(odd.serial, lost=(lost("\x1b[A"),)), devices=[odd], left_out=gone))
    assert not set(shown) & set("\x1b\x07\r")
    assert "Pi\\nxel (\\x07)" in shown
    assert "\\r: left out: two\\nlines\\x1b[31m" in shown


def test_what_an_evaluation_was_told() -> None:
    failure = FailedExample(f"{ODD}.jpg", None, "input", ODD)
    lines = printed(
        print_result, result_with(result(configuration("test")), failed=[failure], warnings=[ODD])
    ).splitlines()
    assert [line for line in lines if line.startswith("failed: ") and line.endswith(f"{SHOWN}.jpg: {SHOWN}")]
    assert f"warning: {SHOWN}" in lines
    assert printed(print_configurations, [missing("test", ODD)]) == f"test: not measured: {SHOWN}\n"
