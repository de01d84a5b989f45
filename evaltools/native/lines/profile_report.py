"""The operators' times of a row in the native tool's three forms."""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import text_format

from evaltools.metrics.op_profile import Opening, OpProfile
from evaltools.native.lines.profile import (
    Steps,
    fill_profiling_proto,
    initialization_csv,
    initialization_text,
    profile_csv,
    profile_text,
)
from evaltools.proto import PROFILING, message_class

TEXT: Final = "stdout"
CSV: Final = "csv"
PROTO: Final = "proto"


def profile_report(profile: OpProfile, opening: Opening, mode: str) -> str:
    """Both reports as text, initialisation first; ``mode`` is the value of ``--op_profiling_output_mode``."""
    steps = opening_steps(opening)
    if mode == PROTO:
        return text_format.MessageToString(_message(profile, steps))
    initialization, runs = (initialization_csv, profile_csv) if mode == CSV else (initialization_text, profile_text)
    return (initialization(steps) if steps else "") + runs(profile)


def profile_file(profile: OpProfile, opening: Opening, mode: str) -> bytes:
    """What stands in a file: the same, but the protobuf in binary."""
    if mode == PROTO:
        data: bytes = _message(profile, opening_steps(opening)).SerializeToString()
        return data
    return profile_report(profile, opening, mode).encode()


def opening_steps(opening: Opening) -> Steps:
    """What the runtime tells apart of its initialisation, by the native tool's names.

    The interpreters apply XNNPACK while they allocate tensors; ``ModifyGraphWithDelegate`` is that of other delegates.

    >>> opening_steps(Opening(0, 12, 3, 0, 9))
    [('AllocateTensors', 9)]
    """
    steps = [("ModifyGraphWithDelegate", opening.delegates_us), ("AllocateTensors", opening.allocate_us)]
    return [(name, time) for name, time in steps if time]


def _message(profile: OpProfile, steps: Steps) -> Any:
    message = message_class("BenchmarkProfilingData", PROFILING)()
    fill_profiling_proto(message, profile, steps)
    return message
