"""The picture in the README is of the present command line, and shows what a run says now."""

from __future__ import annotations

import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

SAMPLE = Path(__file__).resolve().parent.parent / "scripts" / "sample"
TIME = re.compile(r"[\d.]+(?= ms)|(about )?[\d.]+x( \([\d.]+ to [\d.]+\)| \[times jumped\])?")
OF_THE_MACHINE = re.compile(
    r"ai-edge-litert \S+,|XNNPACK \(?\d+ of \d+ nodes( in \d+ partitions?)?(, CPU keeps (\w+ x\d+,? ?)+)?|\d+/\d+"
    r"|\w+: its times .*? hides most of it"
    r"|warning ?: the machine was busy: (\d+ other process(es)? on \d+ cores?,? ?)?"
    r"(its hypervisor gave \d+ % of the time to others,? ?)?(heat slowed it down \d+ times?)?"
)


@pytest.fixture
def screenshot(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("pty", reason="this system has no such terminals")
    monkeypatch.syspath_prepend(str(SAMPLE))
    return import_module("screenshot")


def shown_lines(picture: str) -> list[str]:
    """The lines of text in an SVG of a terminal, its title left out."""
    lines: dict[float, str] = defaultdict(str)
    for text in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text"):
        if "clip-path" in text.attrib:
            lines[float(text.attrib["y"])] += f" {text.text or ''}"
    return [" ".join(line.split()) for _, line in sorted(lines.items())]


def outside_the_table(lines: list[str]) -> str:
    """All but the table, whose columns are those that fit beside times of whatever length."""
    start = next(place for place, line in enumerate(lines) if line.startswith("configuration "))
    end = lines.index("", start)
    return " ".join([*lines[:start], *lines[end:]])


def without_times(text: str) -> list[str]:
    """The words, without times, and without what another machine says otherwise."""
    return OF_THE_MACHINE.sub("", TIME.sub("", text)).split()


def test_the_picture_shows_the_command_and_its_answer(screenshot: ModuleType) -> None:
    lines = shown_lines(screenshot.TARGET.read_text())
    typed = [" ".join(line.split()) for line in screenshot.typed(screenshot.COMMAND)]
    assert lines[: len(typed)] == typed
    said = " ".join(lines).replace(" : ", ": ")
    assert "no answer of 200 changed (95 % confident: fewer than 1.5 % would)" in said
    assert '"nnapi" was not measured' in said


@pytest.mark.once
def test_a_run_says_what_the_picture_shows_but_for_times(screenshot: ModuleType) -> None:
    lines = screenshot.terminal_lines(screenshot.COMMAND, screenshot.ROOT / "datasets" / "sample")
    assert OF_THE_MACHINE.sub("", "XNNPACK 18 of 19 nodes in 2 partitions, CPU keeps ADD x1 nnapi not") == "nnapi not"
    now = shown_lines(screenshot.picture([*screenshot.typed(screenshot.COMMAND), *lines], "evaltools"))
    drawn = shown_lines(screenshot.TARGET.read_text())
    assert without_times(outside_the_table(now)) == without_times(outside_the_table(drawn)), "run make screenshot"
