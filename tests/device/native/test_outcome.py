"""Why a native tool could not be started on a device, and which signal ended it."""

from __future__ import annotations

import pytest

from evaltools.device.native_program import signal_of, why_not_started
from evaltools.result.device import DeviceFacts

PHONE = DeviceFacts("A", abi="arm64-v8a", machine="aarch64")


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
