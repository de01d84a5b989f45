"""Rows from recorded logs of the native C++ tool, which exits with 0 where a delegate is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.configuration import Configuration
from evaltools.native.logs.benchmark import measured_of_logs
from evaltools.result.facts import RuntimeUsed
from evaltools.result.rounds import Measured


def measured_in(shared: Path, case: str, *asked: str) -> Measured:
    folder = shared / "oracle" / "benchmark" / case
    texts = [file.read_text() for file in (folder / "stdout.txt", folder / "stderr.txt") if file.exists()]
    flags = {"EXTERNAL": "external_delegate_path=a.so"}
    configuration = Configuration.from_text(
        case, " ".join(flags.get(name, f"use_{name.lower()}=true") for name in asked)
    )
    return measured_of_logs(
        0, configuration, 31, RuntimeUsed("native", "benchmark_model", "", "default"), ["".join(texts)]
    )


@pytest.mark.parametrize(
    ("case", "delegate", "reason"),
    [
        ("use_gpu", "GPU", 'the log says "GPU acceleration is unsupported on this platform."'),
        ("use_nnapi", "NNAPI", 'the log says "NNAPI acceleration is unsupported on this platform."'),
        (
            "ext_missing",
            "EXTERNAL",
            "no line of the log says that it took nodes; its figures would be those of the CPU",
        ),
    ],
)
def test_a_success_on_the_cpu_is_no_measurement_of_a_delegate(
    shared: Path, case: str, delegate: str, reason: str
) -> None:
    assert (shared / "oracle" / "benchmark" / case / "rc.txt").read_text().strip() == "0"
    found = measured_in(shared, case, delegate)
    assert found.row.status == "not measured"
    assert found.row.reason.startswith(f"{delegate} was asked for, but {reason}")


@pytest.mark.parametrize("case", ["xnn_mnv1_025", "xnn_mnv1_025_float"])
def test_the_word_of_the_tool_proves_and_no_number_is_made_up(shared: Path, case: str) -> None:
    """There the runtime does not log how many nodes it replaced."""
    found = measured_in(shared, case, "XNNPACK")
    assert (found.row.status, found.row.delegation) == ("measured", None)
    assert [(entry.nodes, entry.partitions) for entry in found.row.delegates] == [(None, 2)]


def test_xnnpack_that_was_added_is_not_counted_as_nothing(shared: Path) -> None:
    found = measured_in(shared, "default_mnv1_025")
    assert (found.row.status, found.row.delegation) == ("measured", None)
    assert [(entry.name, entry.requested, entry.nodes) for entry in found.row.delegates] == [("XNNPACK", False, None)]
    without = measured_in(shared, "noxnn_mnv1_025")
    assert without.row.delegates == []
    assert without.row.delegation is not None
    assert without.row.delegation.delegated_nodes == 0


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("missing_file", "the log says \"Could not open '/nonexistent.tflite'."),
        ("input_file_missing", 'the log says "Failed to read the input_layer_value_file:/nonexistent.bin"'),
        ("bad_value", "the log says \"Failed to parse flag 'num_runs' against argv"),
        ("unknown_flag", "the program does not know --bogus=1 and ran without"),
        ("list_sigs", 'the log says "Benchmarking failed."'),
    ],
)
def test_a_run_that_failed_says_why(shared: Path, case: str, reason: str) -> None:
    found = measured_in(shared, case)
    assert (found.row.status, found.logged) == ("not measured", [])
    assert found.row.reason.startswith(reason)


def test_without_full_delegation_the_tool_gives_up(shared: Path) -> None:
    reason = measured_in(shared, "require_full_delegation", "XNNPACK").row.reason
    assert reason == 'XNNPACK was asked for, but the log says "Disallowed CPU fallback detected."'


@pytest.mark.parametrize("case", ["default_mnv1_025", "xnn_mnv1_025", "op_profiling_mnv1_025", "dry_run"])
def test_the_figures_are_those_of_the_stat_line(shared: Path, case: str) -> None:
    found = measured_in(shared, case)
    (line,) = (shared / "oracle" / "benchmark" / case / "stdout.txt").read_text().split("INFO: count=")[2:]
    (only,) = found.logged
    assert only.regular.count == int(line.split()[0])
    median = None if only.regular.median_us is None else f"median={only.regular.median_us:.0f}"
    assert median is None or f" {median} " in line.partition("\n")[0]
