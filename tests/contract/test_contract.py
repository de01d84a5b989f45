"""What a user sees is what was recorded."""

from __future__ import annotations

import pytest

from tests.contract.blanking import differences
from tests.contract.cases import CASES, REAL_DATA, Case
from tests.contract.recording import RECORDINGS, recording_of

pytestmark = pytest.mark.once


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_command_does_what_was_recorded(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.needs_real_data and not REAL_DATA.is_dir():
        pytest.skip("EVALTOOLS_REALDATA names no real data")
    monkeypatch.setenv("COLUMNS", "120")
    recorded = (RECORDINGS / f"{case.name}.txt").read_text()
    different = differences(recorded, recording_of(case), case.tolerance)
    assert not different, "\n".join([*different, f"intended? python -m tests.contract.record {case.name}"])


def test_each_recording_has_a_case() -> None:
    assert {file.stem for file in RECORDINGS.glob("*.txt")} - {"verdicts", "locate_faults"} == {
        case.name for case in CASES
    }
