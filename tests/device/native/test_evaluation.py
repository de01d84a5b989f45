"""Native runs as our typed result: measured, not measured, and through every rendering."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.device.native_inputs import NativeInputs, prepare_imagenet
from evaltools.native.lines.evaluation import native_lines, native_proto
from evaltools.result.metrics import of_task
from tests.device.native.runs import (
    GPU,
    PLAIN,
    REFERENCE,
    STARTED,
    NativeRun,
    assembled,
    classified_run,
    entry_of,
    printed,
    through_every_rendering,
)
from tests.device.native.test_inputs import imagenet_with

Inputs = NativeInputs[Any]
RANKS: list[int | None] = [0, 1, None, 0, 4, 9, 0, None]
TIMES = [30, 50, 40, 30, 90, 30, 35, 31]
GPU_TOOK = (
    "Replacing 3 out of 9 node(s) with delegate (TfLiteGpuDelegateV2) node, yielding 2 partitions for subgraph 0."
)


@pytest.fixture(scope="module")
def imagenet() -> Inputs:
    return prepare_imagenet(imagenet_with(num_images=len(RANKS)))


def allowing_fallback(inputs: Any) -> Any:
    return replace(inputs, request=replace(inputs.request, allow_fallback=True))


def test_a_run_of_imagenet_becomes_a_measured_configuration(imagenet: Inputs) -> None:
    result = assembled(imagenet, classified_run(RANKS, TIMES, REFERENCE), classified_run(RANKS[::-1], TIMES))
    assert (result.command, result.complete, result.examples_done) == ("imagenet", True, 8)
    assert [(entry.name, entry.role, entry.status) for entry in result.rows] == [
        ("reference", "reference", "measured"),
        ("test", "test", "measured"),
    ]
    test = entry_of(result, "test")
    assert (test.value("top1"), test.value("top2")) == (0.375, 0.5)
    assert test.finished_examples == 8
    assert test.runtime is not None
    assert (test.runtime.name, test.runtime.package, test.runtime.version, test.runtime.kernels) == (
        "native", "run_eval", "sha256 0123456789ab", "default",
    )  # fmt: skip
    assert entry_of(result, "reference").runtime is not None
    assert [each.interval and each.interval.confidence for each in of_task(test).values()] == [0.95] * 10
    assert result.environment.started_at == STARTED
    assert (result.example_count, result.given["normalization"]) == (8, "native")


def test_the_native_lines_and_the_protobuf_are_those_that_the_tool_gave(imagenet: Inputs) -> None:
    run = classified_run(RANKS, TIMES)
    result = assembled(imagenet, run)
    assert "".join(f"{line}\n" for line in native_lines(result)) == run.log
    assert native_proto(result, entry_of(result, "test")) == run.proto


def not_measured(imagenet: Inputs, *runs: NativeRun) -> str:
    """Why the only configuration was not measured."""
    result = assembled(imagenet, *runs)
    (entry,) = result.rows
    assert entry.status == "not measured"
    assert (entry.latency, of_task(entry), entry.finished_examples) == (None, {}, 0)
    assert native_lines(result) == []
    assert f"not measured: {entry.reason}" in printed(result).replace("\n", " ")
    return entry.reason


FAILED_LOG = (
    "E0000 00:00:1795264618.474845   25913 image_preprocessing_stage.cc:130] Failed to decompress JPEG image: a.jpg\n"
    "ERROR: Could not run the task evaluation!\n"
)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"code": 1, "out": FAILED_LOG}, "the native tool failed: Failed to decompress JPEG image: a.jpg"),
        ({"code": 139, "out": "", "output": None}, "the native tool failed with the signal SIGSEGV"),
        (
            {"code": 139, "out": "", "output": None, "crash": "signal 11 (SIGSEGV), in libcl.so (build+4)"},
            "the native tool failed with the signal SIGSEGV: signal 11 (SIGSEGV), in libcl.so (build+4)",
        ),
        ({"code": -6, "out": "", "output": None}, "the native tool failed with the signal SIGABRT"),
        ({"code": 3, "out": "", "output": None}, "the native tool failed with the exit code 3"),
        ({"failure": "the device was lost"}, "the device was lost"),
        (
            {"output": None},
            "the native tool came to its end, but its result file is missing, and its text has six digits only",
        ),
        (
            {"out": "WARN: Unconsumed cmdline flags: --gpu_backend=cl\n"},
            'the native tool warned "Unconsumed cmdline flags: --gpu_backend=cl", and went on without; take a binary '
            "that has these flags",
        ),
    ],
)
def test_a_run_without_figures_is_not_measured_and_says_why(
    imagenet: Inputs, changes: dict[str, Any], reason: str
) -> None:
    assert not_measured(imagenet, classified_run(RANKS, TIMES, **changes)) == reason
    assert not_measured(allowing_fallback(imagenet), classified_run(RANKS, TIMES, **changes)) == reason


def test_a_run_over_other_pictures_is_not_measured(imagenet: Inputs) -> None:
    assert not_measured(imagenet, classified_run(RANKS[1:], TIMES[1:])) == (
        "the native tool evaluated 7 examples, there were 8"
    )


def test_a_delegate_without_proof_is_not_measured_unless_the_fallback_is_allowed(imagenet: Inputs) -> None:
    run = classified_run(RANKS, TIMES, GPU, err="GPU acceleration is unsupported on this platform.")
    said = 'GPU was asked for, but the log says "GPU acceleration is unsupported on this platform."'
    assert not_measured(imagenet, run) == (
        f"{said}; its figures would be those of the CPU; --allow_fallback=true measures them all the same"
    )
    result = assembled(allowing_fallback(imagenet), run)
    (entry,) = result.rows
    assert (entry.status, entry.fallback) == ("measured", said)
    assert "top1" in entry.figures
    assert [(used.name, used.nodes) for used in entry.delegates] == [("GPU", None)]
    assert "FALLBACK: GPU was asked for" in printed(result)


def test_a_delegate_that_took_nodes_is_measured_with_its_proof(imagenet: Inputs) -> None:
    result = assembled(imagenet, classified_run(RANKS, TIMES, GPU, err=GPU_TOOK))
    (entry,) = result.rows
    assert (entry.status, entry.fallback) == ("measured", "")
    assert entry.delegation is not None
    assert (entry.delegation.delegated_nodes, entry.delegation.total_nodes) == (3, imagenet.model.node_count)
    assert entry.runtime is not None
    assert entry.runtime.messages == GPU_TOOK
    assert f"GPU 3 of {imagenet.model.node_count} nodes in 1 partition" in printed(result)


def test_the_result_file_counts_whatever_the_text_says(imagenet: Inputs) -> None:
    run = classified_run(RANKS, TIMES)
    other = run.as_if(out=run.log.replace("Top-1 Accuracy: 0.375", "Top-1 Accuracy: 0.5"), err=GPU_TOOK)
    result = assembled(imagenet, replace(other, configuration=GPU), run)
    assert [entry.value("top1") for entry in result.rows] == [0.375, 0.375]


def test_a_result_file_that_cannot_be_read_is_no_measurement(imagenet: Inputs) -> None:
    reason = not_measured(imagenet, classified_run(RANKS, TIMES, output=b"\xff"))
    assert reason.startswith("the native tool's result file cannot be read: ")


def test_of_several_devices_only_the_first_has_the_reference(imagenet: Inputs, tmp_path: Path) -> None:
    runs = [
        classified_run(RANKS, TIMES, configuration, place=place)
        for place in ("pixel", "board")
        for configuration in (REFERENCE, PLAIN)
    ]
    result = assembled(imagenet, *runs)
    assert [(entry.name, entry.role) for entry in result.rows] == [
        ("reference@pixel", "reference"),
        ("test@pixel", "test"),
        ("reference@board", "test"),
        ("test@board", "test"),
    ]
    headed = [line for line in native_lines(result) if "Configuration" in line]
    assert headed == [f"INFO: Configuration: {name}" for name in ("test@pixel", "reference@board", "test@board")]
    table = through_every_rendering(result, tmp_path)
    assert all(entry.name in table for entry in result.rows)


def test_the_time_is_that_of_the_command_whatever_its_devices_took(imagenet: Inputs) -> None:
    """They work at the same time."""
    runs = [classified_run(RANKS, TIMES, place=place) for place in ("pixel", "board")]
    assert assembled(imagenet, *runs, elapsed_s=2.25).environment.elapsed_s == 2.25
