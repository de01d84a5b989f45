"""A process of a run that is killed or stopped is told, costs little, and leaves nothing; ``strikes`` has them all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.hostile.strikes.runs import Case, problems, strike

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="other platforms do not tell what a process left"),
]


@pytest.mark.parametrize(
    ("command", "role", "signal"),
    [
        ("imagenet", "command", "SIGKILL"),
        ("imagenet", "server", "SIGSTOP"),
        ("imagenet", "decoder", "SIGKILL"),
        ("inference-diff", "warden", "SIGSTOP"),
        ("inference-diff", "child", "SIGKILL"),
        ("benchmark", "server", "SIGSTOP"),
    ],
)
def test_a_run_ends_whatever_is_done_to_its_processes(command: str, role: str, signal: str, tmp_path: Path) -> None:
    struck = strike(Case(command, role, signal), tmp_path)
    assert list(problems(struck)) == [], struck.errors
