"""The native benchmark's recorded reports about operators are written again."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec import Struct
from scipy.optimize import LinearConstraint, milp

from evaltools.metrics.op_profile import CalledGraph, OpProfile, OpTimes
from evaltools.native.lines.profile import CSV, TEXT, profile_report

RUNS = "Operator-wise Profiling Info for Regular Benchmark Runs:"
INITIALIZATION = "Profiling Info for Benchmark Initialization:"
_GRAPH = re.compile(r"(?:Primary graph \(name: (.*)\)|Subgraph \(index: (\d+), name: (.*)\)) profile:")
_TIMINGS = re.compile(r"Timings \(microseconds\): (count=.*)")
_NOT_FOUND_AGAIN = re.compile(r"(curr|min|max|std)=\d+")
Interval = tuple[float, float]
Rounding = Callable[[str], Interval]


class Row(Struct, frozen=True):
    """One row about an operator: its first time in microseconds, the rest as it was printed."""

    type: str
    first_us: int
    average: str
    share: str
    cumulative: str
    name: str


class Graph(Struct, frozen=True):
    """One graph of a report: its two tables of operators, microseconds by type, the sums of its runs."""

    number: int
    name: str
    run_order: list[Row]
    top: list[Row]
    types_us: Mapping[str, int]
    timings: Mapping[str, str]

    @property
    def runs(self) -> int:
        return int(self.timings["count"])


def reports(stdout: str) -> tuple[str, str]:
    """Those about the initialisation and about regular runs, as they would be in a file."""
    start, middle = stdout.index(f"INFO: {INITIALIZATION}"), stdout.index(f"INFO: {RUNS}")
    before, after = (part.removeprefix("INFO: ").removesuffix("\n") for part in (stdout[start:middle], stdout[middle:]))
    return before, after


def graphs_of(report: str) -> list[Graph]:
    """The graphs of a report."""
    return [_graph(block.splitlines()) for block in report.split("nodes observed")[:-1]]


def profile_of(report: str) -> OpProfile:
    """A profile with the figures of a report."""
    rounded = _six_digits if "node type, first" in report else _three_decimals
    main, *called = graphs_of(report)
    return OpProfile(
        runtime="",
        runs=main.runs,
        ops=_ops(main, rounded),
        called=[CalledGraph(graph.number, graph.name, _ops(graph, rounded)) for graph in called],
        graph_name=main.name,
    )


def comparable(report: str) -> str:
    """A report without what is not found again: memory, and four figures about the sums of runs."""
    return "\n".join(_NOT_FOUND_AGAIN.sub(r"\1=-", _without_memory(line)) for line in report.split("\n"))


def _without_memory(line: str) -> str:
    cells = line.split("\t")
    if len(cells) > 6 and "[" not in cells[2]:
        cells[6] = f"{'0.000':>10}"
        return "\t".join(cells)
    return re.sub(r"(%, )\d+(, \d+(?:, .*)?)$", r"\g<1>0\2", line)


def _graph(lines: Sequence[str]) -> Graph:
    named = next((match for line in lines if (match := _GRAPH.fullmatch(line))), None)
    number, name = (int(named[2] or 0), named[1] or named[3] or "") if named else (0, "")
    types = [_cells(line, 6) for line in _table(lines, "Summary by node type")]
    timings = next(match[1] for line in lines if (match := _TIMINGS.search(line)))
    return Graph(
        number,
        name,
        run_order=[_row(line) for line in _table(lines, "Run Order")],
        top=[_row(line) for line in _table(lines, "Top by Computation Time")],
        types_us={cells[0]: round(float(cells[2]) * 1000) for cells in types},
        timings=dict(re.findall(r"(\w+)=([\d.]+)", timings)),
    )


def _table(lines: Sequence[str], title: str) -> Sequence[str]:
    start = next(number for number, line in enumerate(lines) if f"= {title} =" in line) + 2
    return lines[start : lines.index("", start)]


def _row(line: str) -> Row:
    kind, first, average, share, cumulative, _memory, _calls, name = _cells(line, 7)
    return Row(kind, round(float(first) * 1000), average, share.rstrip("%"), cumulative.rstrip("%"), name)


def _cells(line: str, separators: int) -> list[str]:
    if line.startswith("\t"):
        return [cell.strip() for cell in line.split("\t")[1:]]
    return [cell.replace("\t", ",") for cell in line.rsplit(", ", separators)]


def _ops(graph: Graph, rounded: Rounding) -> list[OpTimes]:
    return [
        OpTimes(row.type, row.name, None, row.name.startswith("Delegate/"), _times(row.first_us, total, graph.runs))
        for row, total in zip(graph.run_order, _sums(graph, rounded), strict=True)
    ]


def _times(first: int, total: int, runs: int) -> list[int]:
    """So many runs with that sum, the first as stated."""
    if runs == 1:
        return [total]
    each, more = divmod(total - first, runs - 1)
    return [first, *(each + (place < more) for place in range(runs - 1))]


def _sums(graph: Graph, rounded: Rounding) -> list[int]:
    """The sums of operators; that of all of them is tried out."""
    printed = graph.timings.get("avg", graph.timings["curr"])
    for total in _whole(_six_digits(printed), graph.runs):
        found = _sums_within(graph, total, rounded)
        if found is not None:
            return found
    raise AssertionError(f"no times fit the figures of graph {graph.number} {graph.name}")


def _sums_within(graph: Graph, total: int, rounded: Rounding) -> list[int] | None:
    """Unknown are the sums of operators and their whole microseconds per run; None where nothing fits."""
    rows, runs = graph.run_order, graph.runs
    count = len(rows)
    places = {row.name: place for place, row in enumerate(rows)}
    limits = [(dict.fromkeys(range(count), 1), range(total, total + 1))]
    for table in (rows, graph.top):
        for number, row in enumerate(table, start=1):
            seen = {places[each.name]: 1 for each in table[:number]}
            limits.append((seen, _whole(rounded(row.cumulative), total / 100)))
    for place, row in enumerate(rows):
        limits.append(({place: 1}, _whole(rounded(row.share), total / 100)))
        limits.append(({place: 1}, _whole(rounded(row.average), 1000 * runs)))
        limits.append(({place: 1}, range(row.first_us, total + 1)))
        limits.append(({place: 1, count + place: -runs}, range(runs)))
    for kind, time_us in graph.types_us.items():
        members = {count + place: 1 for place, row in enumerate(rows) if row.type == kind}
        limits.append((members, range(time_us, time_us + 1)))
    if not all(values for _, values in limits):
        return None
    matrix = np.zeros((len(limits), 2 * count))
    for line, (coefficients, _) in enumerate(limits):
        matrix[line, list(coefficients)] = list(coefficients.values())
    constraint = LinearConstraint(matrix, [values[0] for _, values in limits], [values[-1] for _, values in limits])
    found = milp(np.zeros(2 * count), integrality=np.ones(2 * count), constraints=constraint)
    return [round(value) for value in found.x[:count]] if found.success else None


def _whole(interval: Interval, factor: float) -> range:
    return range(math.ceil(interval[0] * factor), math.floor(interval[1] * factor) + 1)


def _three_decimals(printed: str) -> Interval:
    """What tables print so."""
    return float(printed) - 0.0005, float(printed) + 0.0005


def _six_digits(printed: str) -> Interval:
    """What CSV and averages print so."""
    value = float(printed)
    half = 0.5 * 10.0 ** (math.floor(math.log10(value)) - 5) if value else 0.0
    return value - half, value + half


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
