"""The plug-in is part of every run of pytest wherever evaltools is installed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.pytest_plugin.projects import pytest_of_its_own

_LOADED = (
    "import sys, pytest; before = set(sys.modules); import evaltools.pytest_plugin; print(*set(sys.modules) - before)"
)


def test_importing_it_imports_pytest_and_little_else() -> None:
    completed = subprocess.run([sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True)
    ours = {"evaltools", "evaltools.pytest_plugin", "evaltools.pytest_plugin.settings"}
    assert set(completed.stdout.split()) == ours


def test_a_session_without_gates_loads_nothing_heavy(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_what_is_loaded(pytestconfig):
            assert pytestconfig.pluginmanager.has_plugin("evaltools")
            heavy = {"numpy", "scipy", "msgspec", "PIL", "ai_edge_litert", "tflite_runtime", "filelock"}
            assert heavy.isdisjoint(name.split(".")[0] for name in sys.modules)
            ours = {name for name in sys.modules if name.startswith("evaltools.")}
            assert ours == {"evaltools.pytest_plugin", "evaltools.pytest_plugin.settings"}
        """
    )
    pytest_of_its_own(pytester, "-W", "error").assert_outcomes(passed=1)
