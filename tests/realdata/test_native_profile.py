"""The native benchmark's recorded reports about operators are written again."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.native.lines.profile import CSV, TEXT, profile_report
from tests.realdata.recorded_profiles import comparable, graphs_of, profile_of, reports

RECORDED = {
    "op_profiling_mnv1_025": TEXT,
    "op_profiling_noxnn_mnv1_025": TEXT,
    "op_profiling_csv_stdout": CSV,
    "op_profiling_ssd": TEXT,
    "op_profiling_while": TEXT,
}


@pytest.mark.parametrize("case", RECORDED)
def test_a_recorded_report_is_written_again(shared: Path, case: str) -> None:
    """Byte for byte, but for memory and for how the sums of runs are spread."""
    stdout = (shared / "oracle" / "benchmark" / case / "stdout.txt").read_text()
    initialization, runs = reports(stdout)
    written = profile_report(profile_of(runs), (), RECORDED[case])
    assert comparable(written) == comparable(runs)
    if case != "op_profiling_while":
        steps = [(row.type, row.first_us) for row in graphs_of(initialization)[0].run_order]
        whole = profile_report(profile_of(runs), steps, RECORDED[case])
        assert comparable(whole.removesuffix(written)) == comparable(initialization)
