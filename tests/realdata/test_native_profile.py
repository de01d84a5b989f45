"""The native benchmark's recorded reports about operators are written again."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.native.lines.profile import initialization_csv, initialization_text, profile_csv, profile_text
from tests.realdata.recorded_profiles import comparable, graphs_of, profile_of, reports

RECORDED = {
    "op_profiling_mnv1_025": (profile_text, initialization_text),
    "op_profiling_noxnn_mnv1_025": (profile_text, initialization_text),
    "op_profiling_csv_stdout": (profile_csv, initialization_csv),
    "op_profiling_ssd": (profile_text, initialization_text),
    "op_profiling_while": (profile_text, None),
}


@pytest.mark.parametrize("case", RECORDED)
def test_a_recorded_report_is_written_again(shared: Path, case: str) -> None:
    """Byte for byte, but for memory and for how the sums of runs are spread."""
    stdout = (shared / "oracle" / "benchmark" / case / "stdout.txt").read_text()
    initialization, runs = reports(stdout)
    render, render_initialization = RECORDED[case]
    assert comparable(render(profile_of(runs))) == comparable(runs)
    if render_initialization is not None:
        steps = [(row.type, row.first_us) for row in graphs_of(initialization)[0].run_order]
        assert comparable(render_initialization(steps)) == comparable(initialization)
