"""The readers of native evaluations against everything that the native C++ tools printed and wrote in recorded runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates import DELEGATES, PARAMETERS
from evaltools.device.native_program import configuration_flags, task_flags
from evaltools.metrics.native_average_precision import NativeAveragePrecision
from evaltools.native.lines.evaluation import debug_lines, native_lines
from evaltools.native.logs.delegates import delegate_lines, read_delegate_log
from evaltools.native.logs.evaluation import LoggedPicture, NativeTask, parse_evaluation_log
from evaltools.native.logs.figures import NativeFigures, read_figures
from evaltools.result.result import PREPROCESSING, Result
from evaltools.tasks.framework.topk_figures import accuracies
from tests import results
from tests.results import row_with
from tests.tasks.coco.results import TRUTH, detection_result, figures, picture
from tests.tasks.inference_diff.test_report import DIFFERENCE, comparison, judged
from tests.tasks.inference_diff.test_report import result as diff_result


def rendered(figures: NativeFigures, pictures: Sequence[LoggedPicture] = ()) -> list[str]:
    """The lines of stdout of a whole evaluation; of coco with the detections of ``pictures``."""
    if figures.task == "coco":
        return _detection_lines(figures, pictures)
    return native_lines(_diff(figures) if figures.task == "inference_diff" else _classification(figures))


def _classification(found: NativeFigures) -> Result:
    measured = row_with(results.configuration("test"), latency=found.inference, examples=found.runs)
    answered = accuracies(found.right, found.runs)
    return results.result(measured, preprocessing=found.preprocessing, answered={"test": answered})


def _detection_lines(found: NativeFigures, logged: Sequence[LoggedPicture]) -> list[str]:
    has_truth = found.overall is not None
    pictures = [picture(each.name, test=list(each.detections)) for each in logged]
    precision = NativeAveragePrecision(tuple(value for _, value in found.precisions), found.overall or 0.0, 1, 0)
    own = replace(figures("test"), native=precision if has_truth else None)
    truth, data = TRUTH if has_truth else None, {"native": True}
    made = detection_result("test", pictures=pictures, truth=truth, data=data, found=[own])
    measured = row_with(
        made.rows[0],
        role="test",
        latency=found.inference,
        examples=found.runs,
    )
    times = {**measured.times, PREPROCESSING: found.preprocessing.native}
    made = replace(made, rows=[replace(measured, times=times)])
    return debug_lines(made) + native_lines(made)


def _diff(found: NativeFigures) -> Result:
    outputs = [judged(replace(DIFFERENCE, native=each)) for each in found.errors]
    made = diff_result(comparison("test", *outputs))
    reference, test = made.rows
    return replace(
        made,
        rows=[
            row_with(reference, latency=found.reference, examples=found.runs),
            row_with(test, latency=found.inference, examples=found.runs),
        ],
    )


TOOLS: Final[dict[str, NativeTask]] = {"imagenet": "imagenet", "coco": "coco", "idiff": "inference_diff"}
OTHER_LINES: Final = re.compile(
    r"WARN: (?!mAP metrics).*|INFO: (?:\w+ delegate created|XNNPack FP16 inference enabled)\.|INFO: Finished: .*"
)
"""Lines of stdout that are not figures."""
ONLY_ON_DEVICES: Final = {"hexagon", "coreml", "gpu_", "ynnpack", "stable_delegate"}
"""Flags that the recorded Linux build of the tools lacks."""


def recorded(shared: Path, *status: int, file: str = "rc.txt") -> list[str]:
    """The runs of the three tools that have a file and ended with one of these exit codes, as paths in the oracle."""
    oracle = shared / "oracle"
    folders = [
        found.parent
        for room in ("imagenet", "coco", "inference_diff", "errors")
        for found in (oracle / room).rglob("rc.txt")
    ]
    found = sorted(
        str(folder.relative_to(oracle))
        for folder in folders
        if int((folder / "rc.txt").read_text()) in status and (folder / file).is_file()
    )
    assert found
    return found


def text_of(shared: Path, case: str, *names: str) -> str:
    files = [shared / "oracle" / case / f"{name}.txt" for name in names or ("stdout", "stderr")]
    return "".join(file.read_text() for file in files if file.is_file())


def task_of_case(case: str) -> NativeTask:
    """By the tool's name, which among the errors stands before the first ``_``."""
    room, _, name = case.partition("/")
    return TOOLS[name.partition("_")[0] if room == "errors" else room.replace("inference_diff", "idiff")]


def test_the_result_file_gives_the_lines_of_the_text(shared: Path) -> None:
    """What the native tool printed is what ours prints of the figures that it wrote."""
    for case in recorded(shared, 0, file="out.pb"):
        text = text_of(shared, case, "stdout")
        lines = text.splitlines(keepends=True)
        expected = "".join(line for line in lines if not OTHER_LINES.fullmatch(line.rstrip("\n")))
        figures = read_figures((shared / "oracle" / case / "out.pb").read_bytes())
        assert figures.task == task_of_case(case), case
        assert "".join(f"{line}\n" for line in rendered(figures, parse_evaluation_log(text).pictures)) == expected, case


def test_a_failure_says_why(shared: Path) -> None:
    for case in recorded(shared, 1, 134):
        log = parse_evaluation_log(text_of(shared, case))
        assert log.failure, case
        quoted = log.failure.split("; ")[-1]
        assert quoted in text_of(shared, case, "stderr"), case


def test_the_result_file_is_read_as_its_text_form_says(shared: Path) -> None:
    for case in recorded(shared, 0, file="out.textproto"):
        text = (shared / "oracle" / case / "out.textproto").read_text()
        figures = read_figures((shared / "oracle" / case / "out.pb").read_bytes())
        stated = {
            name: [float(value) for value in re.findall(rf"\b{name}: (\S+)", text)] for name in ("sum_us", "max_value")
        }
        assert figures.runs == int(re.findall(r"num_runs: (\d+)", text)[0]), case
        other = figures.reference if figures.task == "inference_diff" else figures.preprocessing
        assert [other.sum_us, figures.inference.sum_us] == stated["sum_us"], case
        if figures.task == "inference_diff" and figures.runs:
            largest = [np.float32(value) for value in stated["max_value"]]
            assert [found.max_error for found in figures.errors] == largest, case
        if figures.task == "imagenet" and figures.runs:
            assert len(figures.right) == 10, case


@pytest.mark.parametrize("case", ["errors/imagenet_delegate_gpu", "errors/idiff_use_gpu"])
def test_a_recorded_fallback_to_the_cpu_is_seen(shared: Path, case: str) -> None:
    log = read_delegate_log(delegate_lines(text_of(shared, case)))
    assert log.refuted[0].line == "GPU acceleration is unsupported on this platform."
    assert log.taken == ()


def flags_in_help(shared: Path, tool: str) -> set[str]:
    text = (shared / "oracle" / "errors" / f"{tool}_help" / "stderr.txt").read_text()
    return set(re.findall(r"--(\w+)=", text))


@pytest.mark.parametrize(("tool", "task"), TOOLS.items())
def test_every_flag_that_is_printed_is_one_of_the_native_tool(shared: Path, tool: str, task: NativeTask) -> None:
    known = flags_in_help(shared, tool)
    words = ["--model_file=m", "--output_file_path=o", *task_flags(task, "i", "l", "g", 3)]
    words += configuration_flags(Configuration("test"), {})
    assert {word.removeprefix("--").partition("=")[0] for word in words} <= known


def test_delegate_flags_are_native_or_refused_or_of_other_platforms(shared: Path) -> None:
    known = flags_in_help(shared, "imagenet")
    not_native = {name for name, parameter in PARAMETERS.items() if parameter.not_native}
    missing = {name for name in PARAMETERS.keys() - not_native if name not in known}
    assert not not_native & known
    assert {name for name in missing if not any(part in name for part in ONLY_ON_DEVICES)} == set()
    native = [delegate for delegate in DELEGATES if delegate.enabled_by in known and delegate.key]
    printed = [flag for delegate in native for flag in _switched_on(delegate.enabled_by)]
    assert {flag.removeprefix("--").partition("=")[0] for flag in printed} <= known


def _switched_on(flag: str) -> list[str]:
    return configuration_flags(Configuration.from_flags("test", [(flag, "true")]), {})
