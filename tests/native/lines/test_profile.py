"""Operator profiles in the native layout, compared with tables worked out by hand."""

from __future__ import annotations

from google.protobuf import text_format

from evaltools.metrics.op_profile import CalledGraph, Opening, OpProfile, OpTimes
from evaltools.native.lines import profile
from evaltools.native.lines.profile import opening_steps, profile_file, profile_report
from evaltools.proto import PROFILING, message_class

CONV = OpTimes("Convolution (NHWC, F32) IGEMM", "Delegate/Convolution (NHWC, F32) IGEMM:0", 0, True, [700, 500])
SPLIT = OpTimes("SPLIT", "[left, right]:1", 1, False, [250, 350])
SOFTMAX = OpTimes("SOFTMAX", "[scores]:2", 2, False, [101, 100])
PROFILE = OpProfile("", 2, [SOFTMAX, CONV, SPLIT])
STEPS = [("ModifyGraphWithDelegate", 794), ("AllocateTensors", 206)]


def as_text(profiled: OpProfile) -> str:
    return profile_report(profiled, (), profile.TEXT)


def as_csv(profiled: OpProfile) -> str:
    return profile_report(profiled, (), profile.CSV)


def row(*cells: str) -> str:
    """A row of a table, the name of the type in 40 columns, then each cell as it stands."""
    kind, *others = cells
    return "\t".join(["", kind.rjust(40), *others])


HEAD = row(
    "[node type]", "  [first]", " [avg ms]", "     [%]", "  [cdf%]", "  [mem KB]", "[times called]", "[Name]"
)  # fmt: skip
SOFTMAX_CELLS = ("SOFTMAX", "    0.101", "    0.101", " 10.045%")
TEXT = [
    "Operator-wise Profiling Info for Regular Benchmark Runs:",
    "============================== Run Order ==============================",
    HEAD,
    row(*SOFTMAX_CELLS, " 10.045%", "     0.000", "        1", "[scores]:2"),
    row("Convolution (NHWC, F32) IGEMM", "    0.700", "    0.600", " 59.970%", " 70.015%", "     0.000", "        1",
        "Delegate/Convolution (NHWC, F32) IGEMM:0"),
    row("SPLIT", "    0.250", "    0.300", " 29.985%", "100.000%", "     0.000", "        1", "[left, right]:1"),
    "",
    "============================== Top by Computation Time ==============================",
    HEAD,
    row("Convolution (NHWC, F32) IGEMM", "    0.700", "    0.600", " 59.970%", " 59.970%", "     0.000", "        1",
        "Delegate/Convolution (NHWC, F32) IGEMM:0"),
    row("SPLIT", "    0.250", "    0.300", " 29.985%", " 89.955%", "     0.000", "        1", "[left, right]:1"),
    row(*SOFTMAX_CELLS, "100.000%", "     0.000", "        1", "[scores]:2"),
    "",
    "Number of nodes executed: 3",
    "============================== Summary by node type ==============================",
    row("[Node type]", "  [count]", "  [avg ms]", "    [avg %]", "    [cdf %]", "  [mem KB]", "[times called]"),
    row("Convolution (NHWC, F32) IGEMM", "        1", "     0.600", "    60.000%", "    60.000%", "     0.000",
        "        1"),
    row("SPLIT", "        1", "     0.300", "    30.000%", "    90.000%", "     0.000", "        1"),
    row("SOFTMAX", "        1", "     0.100", "    10.000%", "   100.000%", "     0.000", "        1"),
    "",
    "Timings (microseconds): count=2 first=1051 curr=950 min=950 max=1051 avg=1000.5 std=50",
    "Memory (bytes): count=0",
    "3 nodes observed",
    "",
    "",
]  # fmt: skip
CSV = """Profiling Info for Benchmark Initialization:
============================== Run Order ==============================
node type, first, avg_ms, %, cdf%, mem KB, times called, name
ModifyGraphWithDelegate, 0.794, 0.794, 79.4%, 79.4%, 0, 1, ModifyGraphWithDelegate/0
AllocateTensors, 0.206, 0.206, 20.6%, 100%, 0, 1, AllocateTensors/0

============================== Top by Computation Time ==============================
node type, first, avg_ms, %, cdf%, mem KB, times called, name
ModifyGraphWithDelegate, 0.794, 0.794, 79.4%, 79.4%, 0, 1, ModifyGraphWithDelegate/0
AllocateTensors, 0.206, 0.206, 20.6%, 100%, 0, 1, AllocateTensors/0

Number of nodes executed: 2
============================== Summary by node type ==============================
node type, count, avg_ms, avg %, cdf %, mem KB, times called
ModifyGraphWithDelegate, 1, 0.794, 79.4%, 79.4%, 0, 1
AllocateTensors, 1, 0.206, 20.6%, 100%, 0, 1

Timings (microseconds): count=1 curr=1000
Memory (bytes): count=0
2 nodes observed


"""


def test_a_report_as_text() -> None:
    assert as_text(PROFILE).split("\n") == [*TEXT, ""]


def test_a_report_as_csv() -> None:
    assert profile_report(PROFILE, STEPS, profile.CSV) == CSV + as_csv(PROFILE)


def test_commas_in_names_become_tabs_in_csv_and_those_of_types_stay() -> None:
    lines = as_csv(PROFILE).split("\n")
    assert lines[5] == "SPLIT, 0.25, 0.3, 29.985%, 100%, 0, 1, [left\t right]:1"
    assert lines[4].startswith("Convolution (NHWC, F32) IGEMM, 0.7, 0.6, 59.97%, 70.015%, 0, 1, Delegate/Conv")
    assert lines[4].endswith("(NHWC\t F32) IGEMM:0")


def test_only_ten_operators_are_on_top() -> None:
    many = OpProfile("", 1, [OpTimes("ADD", f"[sum]:{node}", node, False, [node + 1]) for node in range(12)])
    lines = as_text(many).split("\n")
    top = lines[lines.index("============================== Top by Computation Time ==============================") :]
    assert [line.rpartition("\t")[2] for line in top[2:12]] == [f"[sum]:{node}" for node in range(11, 1, -1)]
    assert top[12] == ""


def test_operators_of_one_name_are_one_row_as_in_the_native_tool() -> None:
    """Both partitions of XNNPACK begin to count at 0."""
    first = OpTimes("Add (ND)", "Delegate/Add (ND):0", 0, True, [10, 20])
    second = OpTimes("Add (ND)", "Delegate/Add (ND):0", 4, True, [4, 6])
    lines = as_csv(OpProfile("", 2, [first, second])).split("\n")
    assert lines[3] == "Add (ND), 0.01, 0.01, 100%, 100%, 0, 2, Delegate/Add (ND):0"
    assert "Number of nodes executed: 1" in lines
    assert lines[-5:] == ["Memory (bytes): count=0", "1 nodes observed", "", "", ""]


def test_called_graphs_have_tables_of_their_own() -> None:
    loop = OpTimes("WHILE", "[out]:0", 0, False, [50, 52])
    body = OpTimes("ADD", "[sum]:0", 0, False, [20, 24], calls_per_run=4, first_call_us=7)
    lines = as_csv(OpProfile("", 2, [loop], called=[CalledGraph(2, "body", [body])], graph_name="main")).split("\n")
    assert lines[1] == "Primary graph (name: main) profile:"
    second = lines.index("Subgraph (index: 2, name: body) profile:")
    assert lines[second + 3] == "ADD, 0.007, 0.0055, 100%, 100%, 0, 4, [sum]:0"
    assert lines[second - 4] == "Timings (microseconds): count=2 first=50 curr=52 min=50 max=52 avg=51 std=1"
    assert (
        "Subgraph (index: 2, name: body) Timings (microseconds): count=2 first=20 curr=24 min=20 max=24 avg=22 std=2"
        in lines
    )


def test_shares_of_types_are_summed_up_in_single_precision() -> None:
    """0.992063 thrice: the native tool's sum of floats is 100.00001 before it is cut to six digits."""
    times = {"A": 297, "B": 156, "C": 103, "D": 2, "E": 2, "F": 0}
    ops = [OpTimes(name, f"[{name}]:0", 0, False, [time]) for name, time in times.items()]
    lines = as_csv(OpProfile("", 1, ops)).split("\n")
    start = lines.index("node type, count, avg_ms, avg %, cdf %, mem KB, times called") + 1
    assert [line.split(", ")[4] for line in lines[start : start + 6]] == [
        "53.0357%", "80.8929%", "99.2857%", "99.6428%", "100%", "100%",
    ]  # fmt: skip


def test_without_operators_the_tables_are_empty() -> None:
    lines = as_text(OpProfile("", 2)).split("\n")
    assert "Number of nodes executed: 0" in lines
    assert "Timings (microseconds): count=0" in lines


def test_the_protobuf_has_the_same_figures() -> None:
    again = message_class("BenchmarkProfilingData", PROFILING).FromString(profile_file(PROFILE, STEPS, profile.PROTO))
    as_read = text_format.Parse(profile_report(PROFILE, STEPS, profile.PROTO), type(again)())
    assert as_read == again
    (initial,) = again.init_profile.subgraph_profiles
    assert [(op.node_type, op.name, op.run_order) for op in initial.per_op_profiles] == [
        ("ModifyGraphWithDelegate", "ModifyGraphWithDelegate/0", 0),
        ("AllocateTensors", "AllocateTensors/0", 1),
    ]
    (graph,) = again.runtime_profile.subgraph_profiles
    assert (graph.subgraph_index, graph.HasField("subgraph_name"), again.HasField("model_name")) == (0, True, False)
    softmax = graph.per_op_profiles[0]
    time = softmax.inference_microseconds
    assert (time.first, time.last, time.avg, time.min, time.max, time.sum, time.count) == (
        101, 100, 100, 100, 101, 201, 2,
    )  # fmt: skip
    assert (time.stddev, time.variance) == (0, 0)
    assert (softmax.times_called, softmax.name, softmax.mem_kb.count, softmax.mem_kb.HasField("sum")) == (
        1, "[scores]:2", 2, True,
    )  # fmt: skip
    conv = graph.per_op_profiles[1].inference_microseconds
    assert (conv.variance, conv.stddev) == (10000, 100)


def test_the_protobuf_has_no_initialisation_where_nothing_is_known_of_it() -> None:
    content = profile_file(OpProfile("", 1, [], called=[CalledGraph(3, "body", [])]), (), profile.PROTO)
    message = message_class("BenchmarkProfilingData", PROFILING).FromString(content)
    assert not message.HasField("init_profile")
    assert [graph.subgraph_index for graph in message.runtime_profile.subgraph_profiles] == [0, 3]


def test_steps_are_those_that_the_runtime_tells_apart() -> None:
    assert opening_steps(Opening(0, 80, 5, 20, 30)) == [("ModifyGraphWithDelegate", 20), ("AllocateTensors", 30)]
    assert opening_steps(Opening(0, 80, 5, None, None)) == []
