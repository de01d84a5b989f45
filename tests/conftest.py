"""Fixtures for all tests."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final
from zlib import crc32

import pytest

from evaltools.configuration import Configuration
from evaltools.model import ModelFile
from evaltools.runtime import Open
from evaltools.runtime.process.isolated import IsolatedSession
from evaltools.signals import INTERRUPTS
from tests.example_delegate import SOURCE_DIR, CompilerMissing, build_delegate

pytest_plugins = "pytester"
QUIET_SYSTEM: Final = Path(__file__).resolve().parent / "quiet_system"
"""Has the files of ``/proc`` of a machine on which nothing else runs."""
_SECONDS_TO_OPEN: Final = 60.0
_SLOW_FOLDERS: Final = tuple(f"{Path(__file__).parent / name}{os.sep}" for name in ("device", "realdata"))


@atexit.register
def _silence_the_end_of_runtimes() -> None:
    """What ai-edge-litert says of accelerators that it lets go, after the tests, is not a result."""
    if "ai_edge_litert" in sys.modules:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stderr__.fileno() if sys.__stderr__ else 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are processors: with fewer, these wait, with more, tests take longer."""
    return (os.cpu_count() or 1) + 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole runs, devices and real models come first: what takes long is not begun when all else has ended.

    Neighbours in a folder are no neighbours here: they often wait alike, and all processes would at once.
    """
    items.sort(key=lambda item: (not _takes_long(item), crc32(item.nodeid.partition("::")[0].encode())))


def _takes_long(item: pytest.Item) -> bool:
    is_slow = str(item.path).startswith(_SLOW_FOLDERS)
    return is_slow or item.get_closest_marker("once") is not None


def pytest_collection() -> None:
    """Tests that are collected are no garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Nothing that looks for garbage goes through all tests and libraries, which takes 0.2 s each time."""
    gc.enable()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Ctrl-C works in each test and what it starts, and no handler of a signal that a test sets is left for the next.

    A script's shell has what it starts in the background, as this may be, ignore Ctrl-C.
    """
    before = {number: signal.getsignal(number) for number in INTERRUPTS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return (yield)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture(scope="session", autouse=True)
def the_machine_seems_quiet() -> Iterator[None]:
    """How busy the machine of the tests is says nothing: every process that is started here sees a quiet one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALTOOLS_SYSTEM", str(QUIET_SYSTEM))
        yield


@pytest.fixture
def busy_machine(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which a hundred thousand other processes run, too many for any."""
    proc = tmp_path_factory.mktemp("busy") / "proc"
    proc.mkdir()
    (proc / "loadavg").write_text("9.00 9.00 9.00 100001/200000 7\n")
    monkeypatch.setenv("EVALTOOLS_SYSTEM", str(proc.parent))


@pytest.fixture(scope="session", autouse=True)
def no_ci_system_runs_these() -> Iterator[None]:
    """What a gate of a test finds is nothing that the page of a run on GitHub should show."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GITHUB_ACTIONS", raising=False)
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_was_installed_before(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A GPU in software that ``evaltools doctor`` once put into this user's cache is in no test, nor in its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def time_out_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time-out of a session limits its runs alone: one that is short, for a run that hangs, ends no opening."""
    begin = IsolatedSession.__init__

    def opened(
        session: IsolatedSession, model: ModelFile, asked: Configuration, timeout_s: float, opener: Open, flag: str
    ) -> None:
        begin(session, model, asked, _SECONDS_TO_OPEN, opener, flag)
        session.timeout_s = timeout_s

    monkeypatch.setattr(IsolatedSession, "__init__", opened)


def _compiled(name: str, made: pytest.TempPathFactory, sources: Path = SOURCE_DIR) -> Path:
    try:
        return build_delegate(name, made.mktemp(name), sources)
    except CompilerMissing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def rounding_delegate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example external delegate, compiled."""
    return _compiled("rounding_delegate", tmp_path_factory)


@pytest.fixture(scope="session")
def faulty_delegate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example delegate that is wrong on purpose, compiled."""
    return _compiled("faulty_delegate", tmp_path_factory)


@pytest.fixture(scope="session")
def hostile_delegate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The delegate that does harm at a moment, compiled."""
    return _compiled("hostile_delegate", tmp_path_factory, Path(__file__).parent / "hostile")
