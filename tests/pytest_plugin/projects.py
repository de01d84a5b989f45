"""Projects whose tests hold gates, and what pytest makes of them."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest
import scipy.stats  # noqa: F401
from msgspec import Struct

import evaltools.pytest_plugin.collect  # noqa: F401
from tests.cli.evaluate.sample_runs import imagenet

PICTURES = 20
_COUNTER = """
import os, sys
if "evaltools.cli.main" in sys.orig_argv or "evaltools.cli.runs.handed_over" in sys.orig_argv:
    with open({log!r}, "a") as log:
        log.write(os.getcwd() + " " + " ".join(sys.orig_argv) + chr(10))
"""


class CountedRuns(Struct, frozen=True):
    """A log to which every start of the command ``evaltools`` adds a line."""

    log: Path

    def started(self) -> list[str]:
        """The lines."""
        return self.log.read_text().splitlines() if self.log.exists() else []


def sample_command(*configurations: str) -> list[str]:
    """The float classifier on 20 pictures."""
    return imagenet(*(f"--config={text}" for text in configurations), pictures=PICTURES)


def command_run(name: str, words: Sequence[str]) -> str:
    """A table of gates.toml for a run of a command."""
    return f"[runs.{name}]\ncommand = {json.dumps(shlex.join(words))}\n"


def result_run(name: str, result: Path) -> str:
    """A table of gates.toml for a result that exists."""
    return f"[runs.{name}]\nresult = {json.dumps(str(result))}\n"


def gate(run: str, configuration: str, *limits: str) -> str:
    """A gate of gates.toml."""
    return (
        f"[[gates]]\nrun = {json.dumps(run)}\nconfiguration = {json.dumps(configuration)}\n"
        f"limits = {json.dumps(limits)}\n"
    )


def write_gates(pytester: pytest.Pytester, *tables: str) -> Path:
    """Write gates.toml."""
    file = pytester.path / "gates.toml"
    file.write_text("\n".join(tables))
    return file


def count_runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> CountedRuns:
    """Have every start of ``evaltools`` logged."""
    folder = pytester.mkdir("counter")
    log = folder / "started.log"
    (folder / "sitecustomize.py").write_text(_COUNTER.format(log=str(log)))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return CountedRuns(log)


def run_pytest(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest with ``gates.toml``; nothing of ours may show up as a traceback."""
    result = plain_pytest(pytester, "--evaltools-gates=gates.toml", *arguments)
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert "def runtest" not in result.stdout.str()
    return result


def plain_pytest(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in this process, which takes a fifth of the time.

    It forgets the modules that such a run imports. Those that cannot be imported twice, or not quickly, are imported
    above.
    """
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


def pytest_of_its_own(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in a process of its own, where nothing is imported yet."""
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments, timeout=200)
