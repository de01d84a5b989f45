"""What a person sees of a benchmark."""

from __future__ import annotations

import io
import re

import pytest
from msgspec.structs import replace

from evaltools.cli.shared.terminal import make_console
from evaltools.metrics.op_profile import OpProfile, OpTimes
from evaltools.report.tables.benchmark import print_benchmark
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow, Phase
from evaltools.result.evaluation import DelegateUsed, DelegationProof, RuntimeUsed
from evaltools.stats.interval import Interval
from evaltools.stats.latency_ratio import LatencyRatio
from tests.report.benchmark_samples import PROFILE, a_round, benchmark, on_front, row

ROUND = a_round(Phase([90]), Phase([100], [1], [0]))
TWICE_AS_FAST = LatencyRatio(3, 0.5, Interval(0.4, 0.625))
HINT = "a wider terminal also shows"
WIDE = 300
DOCTOR = "next: evaltools doctor says what runs on this machine, and what is missing for the rest"


def printed(made: BenchmarkResult, width: int = WIDE) -> list[str]:
    text = io.StringIO()
    console = make_console(text)
    console.width = width
    print_benchmark(made, console)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def cells(line: str) -> list[str]:
    """Columns are two blanks or more apart."""
    return re.split(r" {2,}", line.strip())


def failed(name: str, reason: str) -> BenchmarkRow:
    return replace(row(name, 1), status="failed", reason=reason, figures=None)


def disturbed(made: BenchmarkRow, *rounds: tuple[str, ...]) -> BenchmarkRow:
    return replace(made, rounds=[replace(ROUND, disturbances=list(texts)) for texts in rounds])


def test_rows_stand_by_latency_and_failed_ones_below_with_their_reasons() -> None:
    made = benchmark(row("slow", 3000), failed("[gone]", "no such driver"), row("fast", 500), row("middle", 1000))
    lines = printed(made)
    assert [cells(line)[0] for line in lines[:4]] == ["configuration", "fast", "middle", "slow"]
    assert cells(lines[1])[2] == "0.5 ms [0.45, 0.55]"
    assert lines[4] == "[gone]: not measured: no such driver"
    assert sum("[gone]" in line for line in lines) == 1


def test_where_nothing_was_measured_only_the_reasons_are_printed() -> None:
    made = benchmark(failed("a", "first"), failed("b", "second"), failed("c", "first"))
    assert printed(made) == ["a, c: not measured: first", "b: not measured: second", DOCTOR]


def test_a_row_that_failed_after_some_rounds_has_figures() -> None:
    ran = RuntimeUsed("litert", "ai-edge-litert", "2.3.0", "default")
    made = benchmark(replace(row("a", 1000), status="failed", reason="it died", runtime=ran))
    assert printed(made) == ["a: failed: it died"]


@pytest.mark.parametrize(("high", "said"), [(3000, "1 ms [1, 3]"), (3001, "1 ms [too uneven]")])
def test_an_interval_that_says_nothing_is_left_out(high: int, said: str) -> None:
    made = row("a", 1000)
    assert made.figures is not None
    made = replace(made, figures=replace(made.figures, median_interval=Interval(1000, high)))
    uneven = LatencyRatio(3, 0.5, Interval(0.1, 5.0))
    lines = printed(benchmark(made, replace(row("b", 2000), versus_first=uneven)))
    assert cells(lines[1])[2] == said
    assert cells(lines[2])[3] == "2.00x"


def test_the_answer_alone_is_the_fastest_one_and_what_was_not_measured() -> None:
    made = benchmark(disturbed(row("slow", 3000), ("hot",)), failed("gone", "no driver"), row("fast", 500))
    text = io.StringIO()
    print_benchmark(made, make_console(text), is_quiet=True)
    assert text.getvalue().splitlines() == [
        "fastest by median: fast with 0.5 ms [0.45, 0.55], 6.00x the speed of slow",
        "gone: not measured: no driver",
    ]
    text = io.StringIO()
    print_benchmark(benchmark(row("test", 500)), make_console(text), is_quiet=True)
    assert text.getvalue() == "test: 0.5 ms [0.45, 0.55]\n"


def test_the_cpu_in_place_of_an_accelerator_is_marked() -> None:
    delegation = DelegationProof(10, 9, {"SOFTMAX": 1})
    software = DelegateUsed("GPU", True, {}, 9, 1, "llvmpipe", True)
    added = DelegateUsed("XNNPACK", False, {}, 9, 1, "", True)
    made = benchmark(
        replace(row("gpu", 1000), delegates=[software], delegation=delegation),
        replace(row("plain", 2000), delegates=[added], delegation=delegation),
        replace(row("fallen", 3000), fallback="no such library", delegation=delegation),
    )
    lines = printed(made)
    assert [cells(line)[:2] for line in lines[1:4]] == [
        ["gpu [software]", "9/10"],
        ["plain", "9/10"],
        ["fallen [FALLBACK]", "-"],
    ]
    assert lines[4:] == [
        "fallen: FALLBACK: no such library",
        "next: evaltools diff models/a.tflite says whether its outputs are still those of the CPU",
        "next: evaltools inspect models/a.tflite says what delegates take of the model, and what not",
    ]


def test_versus_first_is_how_many_times_as_fast() -> None:
    """Half the time is twice as fast; times of 0.4 and 0.625 are speeds of 2.5 and 1.6."""
    single, slow = LatencyRatio(1, 4.0, None), LatencyRatio(3, 480.0, Interval(400.0, 500.0))
    made = benchmark(
        row("first", 1000),
        replace(row("second", 500), versus_first=TWICE_AS_FAST),
        replace(row("third", 4000), versus_first=single),
        replace(row("last", 480_000), versus_first=slow),
    )
    heading, *lines = printed(made)
    place = cells(heading).index("vs first")
    assert cells(lines[0])[place] == "2.00x [1.60, 2.50]"
    assert "x" not in lines[1].replace("first", "")
    assert cells(lines[2])[place] == "0.25x"
    assert cells(lines[3])[place] == "0.0021x [0.002, 0.0025]"


def test_columns_drop_out_where_the_terminal_is_narrow_and_no_number_is_cut() -> None:
    made = benchmark(
        replace(row("first", 123_456), rounds=[ROUND] * 3),
        replace(row("second", 61_728), rounds=[ROUND] * 3, versus_first=TWICE_AS_FAST),
    )
    headings = []
    for width in (60, 80, 200):
        lines = printed(made, width)
        assert all(len(line) <= width for line in lines[:3])
        assert not any("…" in line for line in lines)
        assert "61.7 ms [55.6, 67.9]" in lines[1]
        assert "123 ms [111, 136]" in lines[2]
        headings.append(cells(lines[0]))
        hint = " ".join(lines[3:]).partition(f"{HINT}: ")[2]
        left_out = hint.split(", ") if hint else []
        assert sorted(headings[-1] + left_out) == sorted(cells(printed(made, 200)[0]))
    narrow, usual, wide = map(set, headings)
    assert narrow < usual < wide
    assert {"delegated", "median [95 %]"} <= narrow
    assert "vs first" in usual
    assert {"peak MB", "vs first", "runs", "average", "p95", "with reading", "load", "first run", "steady MB"} <= wide
    line = cells(printed(made, 200)[1])
    assert "3 rounds" in line[4]
    assert line[-2:] == ["1.8", "1.6"]


@pytest.mark.parametrize("width", [60, 80])
def test_no_number_is_cut_beside_the_long_name_of_a_sweep(width: int) -> None:
    name = "num_threads=4 use_xnnpack=false"
    made = benchmark(replace(row(name, 123_456, 0.7654), rounds=[ROUND]), row("other", 61_728, 0.5))
    text = "\n".join(printed(made, width))
    for number in ("123 ms [111, 136]", "61.7 ms [55.6, 67.9]", "top-1 76.54 %", "top-1 50.00 %"):
        assert number in text


def test_no_number_is_in_scientific_notation() -> None:
    assert not re.search(r"\de[+-]\d", "\n".join(printed(benchmark(row("slow", 1_500_000)))))


def test_models_are_named_with_their_folders_where_their_names_are_equal() -> None:
    made = benchmark(row("x", 1000), row("x", 2000, model=1), row("x", 3000, model=2), sizes=(4_000_000, 10_000, 1))
    files = ["old/m.tflite", "new/m.tflite", "new/n.tflite"]
    named = replace(made, models=[replace(model, file=file) for model, file in zip(made.models, files, strict=True)])
    assert [cells(line)[:3] for line in printed(named)[:4]] == [
        ["model", "model MB", "configuration"],
        ["old/m.tflite", "4.00", "x"],
        ["new/m.tflite", "0.01", "x"],
        ["n", "0.00", "x"],
    ]
    gone = replace(named, rows=[named.rows[0], replace(failed("x", "why"), model=1)])
    assert printed(gone)[-2:] == ["x of new/m.tflite: not measured: why", DOCTOR]


def test_accuracy_and_the_front_stand_in_the_table() -> None:
    lines = printed(benchmark(on_front(row("a", 1000, 0.7654)), row("b", 2000, 0.5), row("c", 3000)))
    assert cells(lines[0])[-2:] == ["accuracy", "on the front"]
    assert cells(lines[1])[-2:] == ["top-1 76.54 %", "yes"]
    assert cells(lines[2])[-1] == "top-1 50.00 %"
    assert cells(lines[3])[-1] == "-"


def test_disturbances_stand_once_each_and_the_rest_is_counted() -> None:
    """Of a single row three; of several one, with the names where there are few."""
    made = disturbed(row("a", 1000), ("hot", "busy"), ("hot", "slow", "steal"))
    more = "; --output_file_path=result.json lists all)"
    assert printed(benchmark(made))[2:] == [
        "a: not quiet: hot",
        "a: not quiet: busy",
        f"a: not quiet: slow (and 1 more{more}",
    ]
    assert printed(benchmark(made, disturbed(row("b", 2000), ("hot",))))[3:] == [
        f"a, b: not quiet: hot (and 3 more{more}"
    ]
    noisy = [disturbed(row(name, 1000), ("hot",)) for name in "abc"]
    assert printed(benchmark(*noisy, row("quiet", 2000)))[5] == "3 of 4 configurations: not quiet: hot"
    assert printed(benchmark(*noisy))[4] == "all 3 configurations: not quiet: hot"


def test_operators_left_on_the_cpu_stand_by_time() -> None:
    """130 and 5 us in two runs are 96.3 and 3.7 % of 67.5 us per run."""
    lines = printed(benchmark(replace(row("a", 1000), profile=PROFILE)))
    assert lines[2:] == [
        "a: top operators left on the CPU, of 0.0675 ms per run",
        "   0.065 ms   96.3 %  CONV_2D node 0",
        "  0.0025 ms    3.7 %  SOFTMAX node 1",
    ]
    inside = OpProfile("litert", 1, [OpTimes("Add (ND)", "Delegate/Add (ND):0", None, True, [70])], [75])
    assert printed(benchmark(replace(row("a", 1000), profile=inside)))[2:] == [
        "a: no operator is left on plain CPU kernels"
    ]


def test_doubts_about_the_profile_are_said() -> None:
    """The sums of 75 and 60 us are 37.5 and 30 % of 200 us, which 100 us take without the profiler."""
    doubtful = replace(PROFILE, invoke_us=[200, 200], plain_us=[100, 100])
    lines = printed(benchmark(replace(row("a", 1000), profile=doubtful)))
    assert lines[2].startswith("a: the operators' times make up only 34 % of a run")
    assert lines[3] == "a: profiled runs took 2.0 times as long as others: trust shares, not times"
    without = replace(row("a", 1000), profile_failure="no profiler here")
    assert printed(benchmark(without))[2:] == ["a: operators are not profiled: no profiler here"]


def rounds_of(made: BenchmarkRow, count: int, low: float | None, high: float = 0.0) -> BenchmarkRow:
    """So many rounds, and an interval of the median in milliseconds, None: no interval."""
    assert made.figures is not None
    interval = None if low is None else Interval(1000 * low, 1000 * high)
    return replace(made, rounds=[ROUND] * count, figures=replace(made.figures, median_interval=interval))


@pytest.mark.parametrize(
    ("first", "second", "step"),
    [
        (rounds_of(row("a", 1000), 2, None), rounds_of(row("b", 2000), 2, None), "says how sure the medians are"),
        (rounds_of(row("a", 1000), 3, 0.8, 1.2), rounds_of(row("b", 1100), 3, 1.1, 1.3), "may tell the two fastest"),
        (rounds_of(row("a", 1000), 3, 0.9, 1.1), rounds_of(row("b", 2000), 3, 1.8, 2.2), ""),
        (rounds_of(row("a", 1000), 8, 0.8, 1.2), rounds_of(row("b", 1100), 8, 1.1, 1.3), ""),
        (rounds_of(row("a", 1000), 1, None), rounds_of(row("b", 2000), 1, 1.8, 2.2), "says how sure the medians are"),
    ],
    ids=["too few", "overlap", "apart", "many rounds", "one round"],
)
def test_more_rounds_are_asked_for_where_they_may_tell_more(
    first: BenchmarkRow, second: BenchmarkRow, step: str
) -> None:
    steps = [line for line in printed(benchmark(second, first)) if line.startswith("next: ")]
    assert len(steps) == bool(step)
    assert all(line.startswith(f"next: the same command with --rounds=8 {step}") for line in steps)


def test_the_fastest_delegate_is_to_be_checked_unless_its_accuracy_is_known() -> None:
    gpu = replace(row("a", 1000), delegates=[DelegateUsed("GPU", True, {}, 9, 1)], flags=["--use_gpu=true"])
    others = row("b", 9000), replace(gpu, name="c", figures=row("c", 8000).figures)
    assert printed(benchmark(gpu, *others))[-1] == (
        "next: evaltools diff models/a.tflite --use_gpu=true says whether its outputs are still those of the CPU"
    )
    known = replace(row("a", 1000, accuracy=0.5), delegates=gpu.delegates)
    assert not [line for line in printed(benchmark(known, *others)) if "evaltools diff" in line]
