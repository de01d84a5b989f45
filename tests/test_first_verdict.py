"""The commands of the benchmark of the first verdict give one."""

from __future__ import annotations

import pytest

from benchmarks import first_verdict


@pytest.mark.once
def test_every_short_command_gives_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert first_verdict.main(["--repeats=1", "--pictures=20"]) == 0
    printed = capsys.readouterr().out
    assert [line.split("  ")[0] for line in printed.splitlines()[1:]] == list(first_verdict.SHORT)
    assert " nan " not in printed
