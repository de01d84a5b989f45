"""Why a native tool could not be started on a device, which signal ended it, and what devices have in common."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.device.native_inputs import NativeInputs, prepare_imagenet
from evaltools.device.native_outcome import NativeRun, WhatRan, outcomes_of, signal_of, why_not_started
from evaltools.result.device import DeviceFacts
from tests.device.native.runs import RUNTIME
from tests.device.native.test_inputs import imagenet_options

PHONE = DeviceFacts("A", abi="arm64-v8a", machine="aarch64")
UNSUPPORTED = "GPU acceleration is unsupported on this platform."
Inputs = NativeInputs[Any]
REFUTED = f'GPU was asked for, but the log says "{UNSUPPORTED}"'
NNAPI_TOOK = "Replacing 3 out of 9 node(s) with delegate (TfLiteNnapiDelegate) node, yielding 2 partitions."
XNNPACK_TOOK = "Replacing 9 out of 9 node(s) with delegate (TfLiteXNNPackDelegate) node, yielding 1 partitions."


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    return prepare_imagenet(imagenet_options(num_images=4))


def run_of(flags: str, *lines: str, part: int = 0) -> NativeRun:
    return NativeRun(Configuration.from_text("c", flags), "test", "", None, lines, part=part, parts=2, serial="R58M")


def allowing_fallback(inputs: Inputs) -> Inputs:
    return replace(inputs, request=replace(inputs.request, allow_fallback=True))


def compared(inputs: Inputs, one: NativeRun, other: NativeRun) -> list[str]:
    return WhatRan.of(inputs, "A", [one]).differences(WhatRan.of(inputs, "B", [other]))


def test_a_device_lacks_a_delegate_that_is_not_proven_whether_or_not_a_fallback_is_allowed(
    inputs: Inputs,
) -> None:
    for own in (inputs, allowing_fallback(inputs)):
        assert WhatRan.of(own, "A", [run_of("use_gpu=true", UNSUPPORTED)]).words == {"c": REFUTED}
        assert WhatRan.of(own, "A", [run_of("", UNSUPPORTED)]).words == {"c": ""}
        assert WhatRan.of(own, "A", [replace(run_of(""), failure="it cannot start")]).words == {"c": "it cannot start"}


def test_a_reason_names_part_and_device(inputs: Inputs) -> None:
    for run, reason in (
        (run_of("", part=1), "the native tool came to its end, but its result file is missing, and its text has six "
         "digits only (part 2 of 2, on R58M)"),
        (replace(run_of(""), parts=1, failure="it cannot start"), "it cannot start (on R58M)"),
    ):  # fmt: skip
        (found,) = outcomes_of(inputs, [run], RUNTIME)
        assert found.described.reason == reason


def test_devices_differ_in_what_ran_of_the_delegates_that_were_asked_for(inputs: Inputs) -> None:
    fell_back = run_of("use_nnapi=true")
    took = run_of("use_nnapi=true", NNAPI_TOOK)
    fewer = run_of("use_nnapi=true", NNAPI_TOOK.replace("Replacing 3", "Replacing 2"))
    dsp = run_of("use_nnapi=true", NNAPI_TOOK, "NNAPI accelerator name: [qti-dsp]")
    assert compared(inputs, took, took) == []
    assert compared(inputs, took, fewer) == ["configuration c: on A, NNAPI took 3 nodes; on B, NNAPI took 2 nodes"]
    assert compared(inputs, dsp, took) == [
        "configuration c: on A, NNAPI took 3 nodes with qti-dsp; on B, NNAPI took 3 nodes"
    ]
    for own in (inputs, allowing_fallback(inputs)):
        assert compared(own, took, fell_back) == [
            "configuration c: on A, NNAPI took 3 nodes; on B, NNAPI was asked for, but no line of the log says that it "
            "took nodes"
        ]
    assert compared(inputs, fell_back, fell_back) == []
    failed = replace(run_of("", XNNPACK_TOOK), exit_code=1)
    assert compared(inputs, run_of("", XNNPACK_TOOK), failed) == []


def test_parts_of_one_device_need_not_be_alike(inputs: Inputs) -> None:
    runs = [run_of("use_nnapi=true", NNAPI_TOOK), run_of("use_nnapi=true")]
    one, other = (WhatRan.of(inputs, "A", [run]) for run in runs)
    assert one.differences(other) == []


def test_what_the_runtime_adds_on_the_cpu_is_no_difference(inputs: Inputs) -> None:
    assert compared(inputs, run_of("", XNNPACK_TOOK), run_of("")) == []


@pytest.mark.parametrize(
    ("facts", "step"),
    [
        (
            PHONE,
            "the device's ABI is arm64-v8a: build the binary for it with bazel build -c opt --config=android_arm64",
        ),
        (
            DeviceFacts("A", machine="aarch64"),
            "the device's ABI is aarch64: build the binary for it with bazel build -c opt --config=elinux_aarch64",
        ),
        (DeviceFacts("A", machine="riscv64"), "the device's ABI is riscv64: build the binary for it"),
        (
            DeviceFacts("A"),
            "build the binary for its ABI, for most phones with bazel build -c opt --config=android_arm64",
        ),
    ],
)
def test_a_binary_of_another_processor_is_named_as_such_with_what_would_be_right(facts: DeviceFacts, step: str) -> None:
    assert why_not_started(126, "run_eval: Exec format error", facts) == (
        f'the device cannot start the native tool (exit code 126, "run_eval: Exec format error"); {step}'
    )


@pytest.mark.parametrize(("code", "is_started"), [(0, True), (1, True), (126, False), (127, False), (139, True)])
def test_a_tool_that_was_started_and_failed_is_another_matter(code: int, is_started: bool) -> None:
    assert (why_not_started(code, "not found", PHONE) == "") is is_started


@pytest.mark.parametrize(
    ("code", "name"), [(0, ""), (1, ""), (128, ""), (134, "SIGABRT"), (139, "SIGSEGV"), (-9, "SIGKILL"), (255, "")]
)
def test_signals_have_their_names(code: int, name: str) -> None:
    assert signal_of(code) == name
