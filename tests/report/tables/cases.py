"""Results of every kind that a terminal shows in its own way, each with a few words on what is special about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.cli.judge.github import markdown_summary
from evaltools.gates.accuracy_verdict import in_words
from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, Found
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import Drift, summarise_latency
from evaltools.metrics.op_profile import OpProfile, OpTimes
from evaltools.report.page.figures import speed
from evaltools.report.page.rendering.terminal import show_block
from evaltools.report.page.screens import (
    print_configurations,
    print_devices,
    print_result,
)
from evaltools.report.page.what_ran import devices
from evaltools.report.screen.answer import answer_of
from evaltools.report.words.facts import drift_in_words
from evaltools.result.device import DeviceConditions, DeviceFinding, DeviceLeftOut, DeviceList, DeviceRun
from evaltools.result.execution import ExecutionUsed
from evaltools.result.facts import DelegateUsed, DelegationProof, FailedExample, Model, RuntimeUsed
from evaltools.result.figure import Figure
from evaltools.result.result import DRIFT, Result, Row
from evaltools.result.rounds import Phase
from evaltools.result.verdict import GateVerdict, Verdict, VerdictKind
from tests.limits import outcome
from tests.report.benchmark_samples import PROFILE, Sample, a_round, benchmark, changed, lost, on_front, row
from tests.report.device_samples import BOARD, NOTHING, PHONE, run_of, work
from tests.report.device_samples import lost as lost_once
from tests.report.tables.search_cases import SEARCH_CASES
from tests.report.tables.task_cases import TASK_CASES
from tests.results import compared, configuration, ratio, result, result_with, row_with, with_execution, with_ratios
from tests.tasks.inference_diff import results as diff

Show = Callable[[Console], None]
ROUND: Final = a_round(Phase([90]), Phase([100], [1], [0]))
REFERENCE: Final = configuration("reference", "reference")


def in_turn(cases: Mapping[str, Show]) -> Show:
    """All cases, each below what is special about it."""

    def show(console: Console) -> None:
        for title, each in cases.items():
            console.print(f"\n== {title}")
            each(console)

    return show


def failed(name: str, reason: str) -> Sample:
    """A row without figures."""
    return lost(row(name, 1), reason)


def _disturbed(name: str, *rounds: tuple[str, ...]) -> Sample:
    return row(name, 1000, rounds=[replace(ROUND, disturbances=list(texts)) for texts in rounds])


def _with_interval(name: str, high: float) -> Sample:
    return row(name, 1000, interval=Interval(1.0, high))


def _of_two_folders(*samples: Sample) -> Result:
    files = ["old/m.tflite", "new/m.tflite", "new/n.tflite"]
    models = [Model(file, "00", size, 1, [], []) for file, size in zip(files, (4_000_000, 10_000, 1), strict=True)]
    return benchmark(*samples, models=models)


def _benchmarks() -> Mapping[str, Show]:
    proof = DelegationProof(10, 9, {"SOFTMAX": 1})
    ran = RuntimeUsed("litert", "ai-edge-litert", "2.3.0", "default")
    software = DelegateUsed("GPU", True, {}, 9, 1, "llvmpipe", True)
    added = DelegateUsed("XNNPACK", False, {}, 9, 1, "", True)
    twice, uneven, single, slow = (
        Figure(0.5, interval=Interval(0.4, 0.625), count=3),
        Figure(0.5, interval=Interval(0.1, 5.0), count=3),
        Figure(4.0, withheld="few", count=1),
        Figure(480.0, interval=Interval(400.0, 500.0), count=3),
    )
    inside = OpProfile("litert", 1, [OpTimes("Add (ND)", "Delegate/Add (ND):0", None, True, [70])], [75])
    doubtful = replace(PROFILE, invoke_us=[200, 200], plain_us=[100, 100])
    profiled = {"left on the CPU": PROFILE, "none left": inside, "doubtful: 37.5 and 30 %, twice as slow": doubtful}
    gpu = changed(row("a", 1000), delegates=[DelegateUsed("GPU", True, {}, 9, 1)], flags=["--use_gpu=true"])
    others = row("b", 9000), changed(gpu, name="c", figures=row("c", 8000).row.figures)
    known = row("a", 1000, 0.5).row.figures
    noisy = [_disturbed(name, ("hot",)) for name in "abc"]
    many = _disturbed("a", ("hot", "busy"), ("hot", "slow", "steal"))
    made = {
        "by latency": benchmark(row("slow", 3000), failed("[gone]", "no driver"), row("fast", 500)),
        "nothing was measured": benchmark(failed("a", "first"), failed("b", "second"), failed("c", "first")),
        "failed after some rounds": benchmark(row("a", 1, status="not measured", reason="died", runtime=ran)),
        "an interval up to three times its low end is shown": benchmark(
            _with_interval("a", 3.0), changed(_with_interval("b", 3.001), ratio=uneven)
        ),
        "software, the runtime's own delegate, a fallback": benchmark(
            changed(row("gpu", 1000), delegates=[software], delegation=proof),
            changed(row("plain", 2000), delegates=[added], delegation=proof),
            changed(row("fallen", 3000), fallback="no such library", delegation=proof),
        ),
        "half the time is twice as fast": benchmark(
            row("first", 1000),
            changed(row("second", 500), ratio=twice, rounds=[ROUND] * 3),
            changed(row("third", 4000), ratio=single),
            changed(row("last", 480_000), ratio=slow),
        ),
        "files of one name": _of_two_folders(row("x", 1000), row("x", 2000, model=1), row("x", 3000, model=2)),
        "failed, of several models": _of_two_folders(row("x", 1000), changed(failed("x", "why"), model=1)),
        "accuracy and the front": benchmark(on_front(row("a", 1000, 0.7654)), row("b", 2000, 0.5), row("c", 3000)),
        "disturbed": benchmark(many),
        "two disturbed": benchmark(many, _disturbed("b", ("hot",))),
        "three of four disturbed": benchmark(*noisy, row("quiet", 2000)),
        "all disturbed": benchmark(*noisy),
        **{title: benchmark(changed(row("a", 1000), profile=profile)) for title, profile in profiled.items()},
        "no profiler": benchmark(changed(row("a", 1000), profile_failure="no profiler here")),
        "the fastest delegate is to be checked": benchmark(gpu, *others),
        "but not where its accuracy is known": benchmark(
            changed(gpu, figures=known, texts={"accuracy": "top1"}), *others
        ),
    }
    shows: dict[str, Show] = {title: partial(print_result, each) for title, each in made.items()}
    alone = benchmark(_disturbed("slow", ("hot",)), failed("gone", "no driver"), row("fast", 500))
    shows["the answer alone"] = partial(print_result, alone, detail="answer")
    shows["the answer alone, of one row"] = partial(print_result, benchmark(row("test", 500)), detail="answer")
    return shows


def _device_runs() -> Mapping[str, Show]:
    conditions = {
        "battery": (DeviceConditions(battery_temperature=287), NOTHING),
        "status": (NOTHING, DeviceConditions(thermal_status=0)),
        "sensors": (DeviceConditions(temperatures={"SKIN": 31.24, "BIG": 48.26}), NOTHING),
        "both": (NOTHING, DeviceConditions(battery_temperature=500, temperatures={"SKIN": 31.5})),
        "before and after": (
            DeviceConditions(thermal_status=3, battery_temperature=300),
            DeviceConditions(battery_temperature=399, thermal_status=0),
        ),
    }
    warm = [work(serial, before=before, after=after) for serial, (before, after) in conditions.items()]
    attempts = (lost_once(BOARD.serial), lost_once(BOARD.serial, "no space", 12.6))
    board = replace(BOARD, model="x")
    runs: dict[str, DeviceRun] = {
        "two devices": run_of(work("R58M"), work(BOARD.serial, elapsed_s=125.25), devices=[PHONE, BOARD]),
        "the worst before and after": run_of(*warm, devices=[replace(PHONE, serial=serial) for serial in conditions]),
        "losses": run_of(work("R58M"), work(BOARD.serial, lost=attempts), devices=[PHONE, board]),
        "one was left out": run_of(work("R58M"), left_out=[DeviceLeftOut("B", "B is full of [x]")]),
    }
    found = DeviceFinding(BOARD.serial, "device", replace(BOARD, model="board"))
    return {
        **{title: partial(show_device_run, run) for title, run in runs.items()},
        "a board without sensors": partial(print_devices, DeviceList("1", "adb", (found,))),
    }


def show_device_run(run: DeviceRun, console: Console) -> None:
    """The section that a result has about the devices of its run."""
    section = devices(run)
    for block in section.blocks if section is not None else ():
        show_block(block, console)


def missing(name: str, reason: str) -> Row:
    """A configuration that could not be opened."""
    return replace(configuration(name), status="not measured", reason=reason, runtime=None)


def _changed(count: int, same: int, lost: int, gained: int, ties: int) -> Result:
    found = compared("reference", "test", count, same, lost, gained)
    found.ties = ties
    return result(REFERENCE, configuration("test"), comparisons=[found])


def _evaluations() -> Mapping[str, Show]:
    told = DelegateUsed("XNNPACK", True, {}, None, 2, evidence="its log: XNNPACK executes the graph partially")
    gpu = DelegateUsed("GPU", True, {}, 63, 1, evidence="its log: TfLiteGpuDelegateV2 took 63 of 64 nodes")
    nnapi = DelegateUsed("NNAPI", True, {}, None, None)
    opened = [
        configuration("usual"),
        replace(configuration("native"), delegation=None, delegates=[told, gpu, nnapi], fallback="no NNAPI"),
        replace(configuration("loaded"), delegation=None, delegates=[]),
        *(missing(name, reason) for name, reason in (("gpu", "no GPU"), ("npu", "no NPU"), ("gpu fp16", "no GPU"))),
    ]
    worse = in_words(Verdict("worse", "top1", "reference", change=-0.25, low=-0.6, high=-0.1), 4)
    certain = result(REFERENCE, replace(configuration("test"), verdicts=[worse]))
    speed_of_test = ratio(0.5, Interval(0.4, 0.8), 4)
    plain = result(replace(REFERENCE, delegates=[]), configuration("test [fast]"))
    same = Verdict("not decided", "top1", "reference", texts=["not decided: +0.00 points"])
    verdicts = {name: [in_words(same, 200, 200)] for name in "ac"}
    verdicts["b"] = [same]
    drifts = {
        "rose": Drift(0.31, 1e-6),
        "fell": Drift(-0.2, 1e-12),
        "unsure": Drift(0.31, 0.01),
        "little": Drift(0.05, 1e-6),
    }
    drifted = [configuration(name) for name in drifts]
    words = {name: text for name, drift in drifts.items() if (text := drift_in_words(drift))}
    drifted = [replace(row, texts={DRIFT: words[row.name]} if row.name in words else {}) for row in drifted]
    slow = row_with(configuration("slow"), latency=summarise_latency([1_234_000]))
    late = replace(configuration("late"), status="not measured", reason="not one example succeeded")
    made = {
        "figures, comparison, failures": plain,
        "intervals and verdicts": with_ratios(certain, {"test": speed_of_test}),
        "an interval that says nothing": with_ratios(certain, {"test": ratio(0.5, Interval(0.05, 40.0), 4)}),
        "the same for several": result(
            REFERENCE, *(replace(configuration(name), verdicts=found) for name, found in sorted(verdicts.items()))
        ),
        "13 changed, 7 ties": _changed(99, 86, 4, 4, 7),
        "2 changed, one tie": _changed(200, 198, 1, 1, 1),
        "none changed": _changed(200, 200, 0, 0, 0),
        "two clear drifts of four": with_execution(result(*drifted), used(None, quiet=None)),
        "no reference, a long time, one that failed late": result(slow, configuration("second"), late),
        "on a device": replace(result(configuration("a")), device_run=run_of(work("R58M"))),
    }
    return {
        "what runs": partial(print_configurations, opened),
        **{title: partial(print_result, each) for title, each in made.items()},
        "the answer alone": lambda console: print_result(result_with(plain, warnings=["mind"]), console, "answer"),
    }


def judged(name: str, kind: VerdictKind, metric: str = "outputs", **more: Any) -> Row:
    """Compared with the reference."""
    change = -0.03 if metric == "top1" else None
    span = (-0.05, -0.01) if metric == "top1" else (None, None)
    verdict = Verdict(kind, metric, "reference", change=change, low=span[0], high=span[1], margin=0.005)
    flags = ["--use_gpu=true", "--gpu_backend=cl"]
    verdict = replace(verdict, **more)
    verdicts = [verdict if verdict.texts or metric == "outputs" else in_words(verdict, 4)]
    return replace(configuration(name), verdicts=verdicts, flags=flags)


def _diff(kind: VerdictKind, *words: str) -> Result:
    made = diff.result(diff.comparison("gpu", diff.judged()))
    error = "avg_error 0.01 in raw numbers, at most 0.02 in a run; the native tool gives nothing to compare that with"
    texts = [error] if kind == "not judged" else []
    made = replace(made, rows=[REFERENCE, judged("gpu", kind, texts=texts)])
    return replace(made, environment=replace(made.environment, command=["evaltools", "diff", "m.tflite", *words]))


def _answers() -> Mapping[str, Show]:
    kinds: tuple[VerdictKind, ...] = ("equivalent", "fp16", "not decided", "diverged", "not judged")
    plain, fallen, loaded, native = (
        row_with(judged(name, "equivalent"), latency=None) for name in ("plain", "fallen", "loaded", "native")
    )
    died = row_with(configuration("c"), status="not measured", reason="it died", latency=None)
    missed = result(REFERENCE, missing("a", "no GPU here"), missing("b", "no GPU here"), died)
    made = {
        "a change with its speed": with_ratios(
            result(REFERENCE, judged("gpu", "worse", "top1")), {"gpu": ratio(0.5, Interval(0.4, 0.8), 30)}
        ),
        **{f"outputs {kind}": _diff(kind) for kind in kinds},
        "stated inputs": _diff("diverged", "--input-images=my pictures", "--seed=2", "--num_runs=3"),
        "it searches itself": _diff("diverged", "--locate"),
        "no delegate ran": result(
            REFERENCE,
            replace(plain, delegates=[]),
            replace(fallen, fallback="no GPU"),
            replace(loaded, delegates=[], delegation=None),
            replace(native, delegation=None),
        ),
        "nothing that could be measured": result(
            REFERENCE, judged("gpu", "not compared", texts=["it has no elements, so nothing was compared"])
        ),
        "not measured": missed,
        "nothing to compare": result(REFERENCE),
        "the reference was not measured": result(replace(died, role="reference"), configuration("a")),
        "no answer in common": result(REFERENCE, configuration("a")),
        "more examples decide": result(REFERENCE, judged("gpu", "not decided", "top1", examples_needed=5642)),
        "too few pictures": result(REFERENCE, judged("gpu", "not decided", "top1", fewest_examples=50)),
        "nothing decides": result(REFERENCE, judged("gpu", "not decided", "top1")),
    }
    return {title: partial(print_result, each, detail="answer") for title, each in made.items()}


def _same(name: str, kind: VerdictKind = "equivalent", change: float = 0.0, **others: Any) -> Row:
    """Compared with the reference on classes."""
    return replace(configuration(name), verdicts=[Verdict(kind, "top1", "reference", change=change)], **others)


def _returned_errors(made: Result, name: str, counts: tuple[int, int]) -> Result:
    """Runs of a configuration failed."""
    fails = [FailedExample(str(number), name, "inference", "the GPU is lost") for number in range(counts[1])]
    rows = [
        row_with(row, examples=counts[0], failed_examples=counts[1]) if row.name == name else row for row in made.rows
    ]
    return replace(made, rows=rows, failed=fails)


def _sentences() -> Mapping[str, Show]:
    same, worse, open_one = _same("a"), _same("b", "worse", -0.021), _same("e", "not decided")
    lost, fallen = replace(_same("c"), status="not measured"), _same("d", fallback="no GPU")
    unseen = row_with(_same("a", "identical"), examples=20)
    partly = [
        replace(
            _same(name),
            figures={**configuration(name).figures, "same_best": Figure(share, better="higher", is_share=True)},
        )
        for name, share in (("a", 0.94), ("b", 1.0))
    ]
    no_reference = replace(lost, name="reference", role="reference", verdicts=[])
    reference = replace(REFERENCE, delegates=[])
    tests = [
        [same], [worse], [same, worse], [worse, lost], [open_one], [open_one, open_one], [worse, open_one],
        [worse, open_one, lost], [worse, worse, worse], [fallen], [same, worse, lost, fallen], [], [unseen],
        partly[:1], partly[1:], partly,
    ]  # fmt: skip
    made = [result(reference, *each) for each in tests]
    made += [_returned_errors(result(reference, _same("a", kind)), "a", (4, 1)) for kind in ("equivalent", "diverged")]
    made += [
        _returned_errors(result(reference, same), "reference", (4, 1)),
        _returned_errors(result(configuration("a")), "a", (45, 5)),
        _returned_errors(result(configuration("a"), configuration("b")), "a", (45, 5)),
        result(no_reference, configuration("a"), missing("c", "no GPU")),
        result(no_reference, missing("c", "no GPU")),
    ]
    return {", ".join(f"{row.name} {_kind(row)}" for row in each.rows): partial(_say, each) for each in made}


def _kind(row: Row) -> str:
    shares = [figure.value for name, figure in row.figures.items() if name in ("same_best", "failed_examples")]
    said = [row.status, row.fallback, *(verdict.kind for verdict in row.verdicts), *filter(None, shares)]
    return "/".join(str(each) for each in said if each)


def _say(made: Result, console: Console) -> None:
    console.print(answer_of({"m": made}))


def _gates() -> Mapping[str, Show]:
    def decided(verdict: GateVerdict, name: str = "fast", limit: str = "top1 >= 90 %", **more: Any) -> Decision:
        found = None if verdict in ("not measured", "skipped") else Found("top1", 0.9)
        return Decision(name, limit, verdict, found, **more)

    mixed = [
        GateDecisions("a", "m.tflite", (decided("pass"), decided("fail"))),
        GateDecisions("b", "n.tflite", (decided("inconclusive", reason="about 500 would do", examples_needed=500),)),
        GateDecisions("a", "m.tflite", (decided("not measured", reason="it died"),)),
        GateDecisions("b", "n.tflite", (decided("skipped", reason="no NNAPI"),)),
    ]
    gone = [
        decided("not measured", name, limit, reason="no GPU")
        for name in ("gpu", "gpu fp16")
        for limit in ("a <= 1", "b <= 1")
    ]
    alone = decided("not measured", "npu", reason="no NPU")
    other = decided("not measured", "gpu", "c <= 1", reason="it died")
    made = {
        "each verdict": mixed,
        "passed": [GateDecisions("a", "m.tflite", (decided("pass"),))],
        "without names": [GateDecisions("", "", (Decision("", "top1 >= 50 %", "not measured", reason="no result"),))],
        "one reason of two limits": [GateDecisions("r", "m.tflite", (*gone[:2], other))],
        "one reason of two configurations": [
            GateDecisions("r", "m.tflite", (*gone, alone)),
            GateDecisions("s", "m.tflite", (gone[0],)),
        ],
    }
    return {title: partial(_print_limits, outcome("ci/gates.toml", *each)) for title, each in made.items()}


def _print_limits(made: Result, console: Console) -> None:
    """On a terminal, and in Markdown without the line about the run."""
    print_result(made, console)
    console.print(markdown_summary(made).decode().rstrip().rpartition("\n")[0], markup=False, highlight=False)


def used(bound: str | None = "input", workers: int = 2, quiet: int | None = 12, **seconds: Any) -> ExecutionUsed:
    """How a run of nine examples was carried out."""
    facts: dict[str, Any] = {"bound": bound, "stage_seconds": seconds}
    return ExecutionUsed(workers, 9, quiet, {}, **facts)


def _print_execution(each: Result, console: Console) -> None:
    for section in [*filter(None, [speed(each)]), *(section for section in each.blocks if section.title)]:
        for block in section.blocks if section.place in ("speed", "run") or section.title == "Speed" else ():
            show_block(block, console)
        if section.place == "run" and section.intro:
            console.print(section.intro)


def _executions() -> Mapping[str, Show]:
    found = result(configuration("a"))
    base = replace(found, environment=replace(found.environment, elapsed_s=2.0), examples_done=9)
    inputs = ("read", "decode", "resize", "prepare")
    shares = dict(zip((*inputs, "inference", "metrics", "journal"), (0.4, 30, 10, 10, 45.2, 4, 0.4), strict=True))
    every = dict.fromkeys(inputs, 2.0) | {"inference": 5.0}
    executions: dict[str, ExecutionUsed | None] = {
        "all that is known": used(decode=3, inference=1),
        "one worker": used("inference", 1, None, inference=1),
        "one worker, in quiet": used("inference", 1, 3, inference=1),
        "two workers, no quiet phase": used("inference", 2, None, inference=1),
        "not known": None,
        "nothing was run": used(None, quiet=None, decode=0.0, inference=0.0),
        "a finished run that is resumed": replace(used(None, quiet=5), examples_run=0),
        "the largest first, tiny ones left out": replace(used(), stage_seconds=shares),
        "bound by inference": used("inference", decode=9.0, inference=1.0),
        "bound by metrics": used("metrics", decode=9.0, metrics=1.0),
        "bound by journal": used("journal", decode=9.0, journal=1.0),
    }
    for stage in inputs:
        executions[f"mostly {stage}"] = replace(used(), stage_seconds=every | {stage: 3.0})
    made = {
        title: base if execution is None else with_execution(base, execution) for title, execution in executions.items()
    }
    running, one = used("inference", inference=1), ratio(0.5, Interval(0.4, 0.6))
    without_time = replace(base, environment=replace(base.environment, elapsed_s=0.0))
    made["no time at all"] = with_execution(without_time, running)
    made["a speed without an interval"] = with_execution(with_ratios(base, {"a": ratio(0.5)}), running)
    made["a speed of one process each"] = with_execution(with_ratios(base, {"a": one}), running)
    made["a speed of four processes each"] = with_execution(with_ratios(base, {"a": one}, 4), running)
    return {title: partial(_print_execution, each) for title, each in made.items()}


CASES: Final[Mapping[str, Mapping[str, Show]]] = {
    "benchmark-cases": _benchmarks(),
    "device-run-cases": _device_runs(),
    "evaluation-cases": _evaluations(),
    "answer-cases": _answers(),
    "execution-cases": _executions(),
    **TASK_CASES,
    "gates-cases": _gates(),
    **SEARCH_CASES,
    "sentence-cases": _sentences(),
}
