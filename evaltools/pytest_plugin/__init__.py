"""The pytest plug-in: gates as tests, and evaluations as fixtures. ``docs/gates.md`` explains it.

Every run of pytest loads this module, also those that have nothing to do with evaltools: it imports only pytest, and
what does the work is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evaltools.pytest_plugin.settings import (
    MARKER,
    REPORT,
    find_gate_files,
    pytest_addoption,
    read_settings,
    refuse_unknown_settings,
)

if TYPE_CHECKING:
    from evaltools.result.result import Result

__all__ = ("assert_equivalent", "evaltools_run", "pytest_addoption", "pytest_configure")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker; have files of gates collected, and a page written, where they are asked for."""
    config.addinivalue_line("markers", MARKER)
    refuse_unknown_settings(config)
    files = find_gate_files(config)
    if files:
        from evaltools.pytest_plugin.collect import GateCollection

        read_settings(config)
        config.pluginmanager.register(GateCollection(files), "evaltools_gates")
    page = config.getoption(REPORT)
    if page is not None and not hasattr(config, "workerinput"):
        from evaltools.pytest_plugin.report import SessionReport

        path = config.invocation_params.dir / page
        config.pluginmanager.register(SessionReport(config, path, files), "evaltools_session_report")


@pytest.fixture(scope="session")
def evaltools_run(pytestconfig: pytest.Config) -> Callable[..., Result]:
    """Run a command once per session: ``evaltools_run("imagenet", "--model_file=...")`` gives its result.

    Relative paths are meant from pytest's rootdir.
    """
    from evaltools.errors import EvaltoolsError
    from evaltools.gates.gate_file import RunSource
    from evaltools.pytest_plugin.session_runs import session_runs

    def run(*words: str | Path) -> Result:
        __tracebackhide__ = True
        command = tuple(str(word) for word in words)
        source = RunSource("".join(command[:1]), command)
        try:
            return session_runs(pytestconfig).result(source, pytestconfig.rootpath)
        except EvaltoolsError as error:
            message = str(error)
        pytest.fail(message)

    return run


@pytest.fixture(scope="session")
def assert_equivalent(pytestconfig: pytest.Config, evaltools_run: Callable[..., Result]) -> Callable[..., None]:
    """Assert that a configuration computes what the CPU computes, or what it would in a lower precision.

    ``assert_equivalent(model, configuration, inputs=None, within="equivalent", num_runs=None, allow_missing=False)``;
    the configuration is text as in ``--config``. Without ``inputs`` they are random; else files, a folder of files or a
    folder of pictures. With ``allow_missing`` a delegate that cannot exist here is skipped.
    """
    from evaltools.pytest_plugin.outcome import diff_words, judge_diff

    def check(
        model: str | Path,
        configuration: str,
        inputs: str | Path | Sequence[str | Path] | None = None,
        within: str = "equivalent",
        num_runs: int | None = None,
        allow_missing: bool = False,
    ) -> None:
        __tracebackhide__ = True
        words = diff_words(pytestconfig.rootpath, model, configuration, inputs, num_runs)
        outcome = judge_diff(evaltools_run(*words), within, allow_missing)
        if outcome.kind == "skip":
            pytest.skip(outcome.text)
        if outcome.kind != "pass":
            pytest.fail(outcome.text)

    return check
