"""What commands show on a terminal of some width, from results made by hand.

``python -m tests.report.tables.screens NAME`` shows some on this terminal; without a name all are written anew, to be
looked at and committed.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.cli.demo import NEXT_STEPS
from evaltools.cli.shared.terminal import make_console
from evaltools.gates.accuracy_verdict import in_words
from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, Found
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import summarise_latency
from evaltools.report.page.screens import (
    print_configurations,
    print_devices,
    print_models,
    print_result,
)
from evaltools.result.device import DeviceConditions, DeviceFacts, DeviceFinding, DeviceList
from evaltools.result.result import Result, Row
from evaltools.result.verdict import Verdict
from evaltools.tasks.framework.topk_report import ChangedAnswer, Comparison, FirstAnswer
from evaltools.text import wrapped
from tests import results
from tests.limits import outcome
from tests.report.benchmark_samples import benchmark, lost, on_front, row
from tests.report.tables.cases import CASES, in_turn
from tests.results import row_with
from tests.tasks.coco.results import MAPPING, detection_result
from tests.tasks.inference_diff import results as diff

WIDTHS: Final = (60, 120)
USUAL: Final = 80
"""The width of which a screen is kept."""
WIDE: Final = 200
FOLDER: Final = Path(__file__).with_name("screens")
GPU: Final = "gpu on the phone's big cores, half precision"
NO_GPU: Final = (
    "ai-edge-litert 2.3.0 GPU cannot run the model: WebGPU found no Vulkan loader (libvulkan.so.1). Install libvulkan1 "
    "and a driver of the GPU; a software driver is enough for numbers"
)


def _missing(name: str) -> Row:
    return row_with(results.configuration(name), status="not measured", reason=NO_GPU, runtime=None, latency=None)


def _imagenet() -> Result:
    reference = replace(results.configuration("reference", "reference"), delegates=[])
    unchanged = Verdict(
        "not decided", "top1", "reference",
    )  # fmt: skip
    unchanged = in_words(unchanged, 200, is_unchanged=True)
    worse = in_words(
        Verdict("worse", "top1", "reference", change=-0.0272, low=-0.0332, high=-0.0216, margin=0.005), 200
    )
    tests = [
        replace(results.configuration("xnnpack with four threads"), verdicts=[unchanged]),
        replace(results.configuration("external delegate"), verdicts=[worse], flags=["--external_delegate_path=d.so"]),
        _missing(GPU),
    ]
    was, now = FirstAnswer("dowitcher", 0.5), FirstAnswer("redshank", 0.375)
    changed = [ChangedAnswer("n02033041_dowitcher.JPEG", "dowitcher", was, now, "lost", tie=False)]
    comparisons = [
        Comparison("reference", tests[0].name, [0], [0], count=200, same=199),
        Comparison("reference", tests[1].name, [6], [3], count=200, same=187, ties=4, changed=changed),
    ]
    made = results.result(reference, *tests, comparisons=comparisons)
    made = results.with_ratios(made, {tests[0].name: results.ratio(0.25, Interval(0.2, 0.3), 20)})
    return replace(made, failed=[])


def _diff() -> Result:
    names = ("boxes/normalised_coordinates", "classes", "scores", "count")
    outputs = [
        diff.judged(replace(diff.DIFFERENCE, output=name, relative_rms=0.1 * place), "fp16")
        for place, name in enumerate(names)
    ]
    made = diff.result(diff.comparison("xnnpack", *outputs), diff.comparison("external delegate", *outputs))
    return replace(made, rows=[*made.rows, _missing(GPU)])


def _evaluation(result: Result) -> Callable[[Console], None]:
    def show(console: Console) -> None:
        print_configurations(result.rows, console)
        print_result(result, console)

    return show


def _gates(console: Console) -> None:
    limits = ("top1 drop <= 2 points at 95 %", "agreement >= 99 %")
    found = (Found("top1 drop", 0.0, -0.0149, 0.0149, unit="points"), Found("agreement", 0.985, unit="%"))
    decisions = [
        Decision("xnnpack with four threads", limits[0], "pass", found[0]),
        Decision("xnnpack with four threads", limits[1], "fail", found[1]),
        *(Decision(GPU, limit, "not measured", reason=NO_GPU) for limit in limits),
    ]
    print_result(outcome("gates.toml", GateDecisions("nightly", "m.tflite", tuple(decisions))), console)


def _coco_with_verdicts() -> Result:
    """Much shows how outputs are read, and many pictures decide."""
    sure = replace(MAPPING, pairs=400, agreeing={"+1": 398, "0": 1})
    made = detection_result(
        "reference",
        "xnnpack with four threads",
        "external delegate",
        example_count=500,
        data={"class_mapping": sure},
    )
    same = Verdict("equivalent", "ap", "reference", change=0.0004, low=-0.0021, high=0.0032, margin=0.005)
    worse = Verdict("worse", "ap", "reference", change=-0.031, low=-0.042, high=-0.019, margin=0.005)
    same, worse = in_words(same, 500), in_words(worse, 500)
    verdicts = {"xnnpack with four threads": [same], "external delegate": [worse]}
    flags = ["--external_delegate_path=d.so"]
    entries = [replace(entry, flags=flags, verdicts=verdicts.get(entry.name, [])) for entry in made.rows]
    return replace(made, rows=entries)


def _benchmarked() -> Result:
    """Two models; one configuration with an uneven median, two that are not there for the same reason."""
    uneven = row("npu", 5000, interval=Interval(1.35, 1327.0))
    gone = [lost(row(name, 1), NO_GPU) for name in ("gpu fp16", "gpu fp32")]
    rows = (on_front(row("xnnpack with four threads", 1234, 0.75)), row(GPU, 987_654, 0.5, model=1))
    return benchmark(*rows, uneven, *gone, sizes=(4_000_000, 500_000))


def _benchmark(console: Console) -> None:
    print_result(_benchmarked(), console)


def _models(console: Console) -> None:
    small = results.result(results.configuration("reference", "reference"), _imagenet().rows[1])
    slow = row_with(small.rows[0], latency=summarise_latency([9000]))
    large = replace(small, rows=[slow, _missing(GPU)])
    print_models({"mobilenet_v1_0.25_128_quant": small, "large": large}, console)


def _devices(console: Console) -> None:
    phone = DeviceFacts(
        "R58M12345678", model="Pixel 7 Pro", manufacturer="Google", soc="Tensor G2", sdk=34, android="14",
        abi="arm64-v8a", cpus=8, conditions=DeviceConditions(87, 283, 0, {"SKIN": 26.5}),
    )  # fmt: skip
    silent = DeviceFinding("emulator-5554", "unauthorized", None, "this computer is not trusted; confirm on its screen")
    print_devices(DeviceList("1", "adb", (DeviceFinding(phone.serial, "device", phone), silent)), console)


SCREENS: Final[Mapping[str, Callable[[Console], None]]] = {
    "imagenet": _evaluation(_imagenet()),
    "diff": _evaluation(_diff()),
    "coco": _evaluation(detection_result("reference", "xnnpack with four threads", "external delegate")),
    "coco-verdicts": _evaluation(_coco_with_verdicts()),
    "demo": lambda console: console.out(wrapped(NEXT_STEPS.strip(), console.width), highlight=False),
    "benchmark-quiet": lambda console: print_result(_benchmarked(), console, detail="answer"),
    "gates": _gates,
    "benchmark": _benchmark,
    "models": _models,
    "devices": _devices,
}


def width_of(name: str) -> int:
    """Of cases one that has room for every column."""
    return WIDE if name in CASES else USUAL


def shown(name: str, width: int) -> str:
    """As on a terminal so wide, without blanks at line ends."""
    text = io.StringIO()
    console = make_console(text)
    console.width, console.soft_wrap = width, False
    (in_turn(CASES[name]) if name in CASES else SCREENS[name])(console)
    return "\n".join(line.rstrip() for line in text.getvalue().rstrip().splitlines()) + "\n"


def stored(name: str) -> Path:
    """The file of a screen."""
    return FOLDER / f"{name}-{width_of(name)}.txt"


def main(words: list[str]) -> None:
    """Show screens on this terminal, or write all."""
    for name in words:
        SCREENS[name](make_console(sys.stdout))
    if words:
        return
    FOLDER.mkdir(exist_ok=True)
    for name in (*SCREENS, *CASES):
        stored(name).write_text(shown(name, width_of(name)))


if __name__ == "__main__":
    main(sys.argv[1:])
