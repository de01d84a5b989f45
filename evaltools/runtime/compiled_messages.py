"""What LiteRT prints while it compiles a model: how many operations an accelerator took, which not, and which device.

The Python package tells none of this otherwise, and its ``is_fully_accelerated()`` has said yes of models that ran on
the CPU. The lines are those of ai-edge-litert 2.3.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

_GPU_SHARE: Final = re.compile(
    r"(\d+) operations will run on the GPU, and the remaining (\d+) operations will run on the CPU"
)
_GPU_REFUSED: Final = re.compile(
    r"Following operations are not supported by GPU delegate:\n(.*?)\n?(?:\d+|No) operations will run", re.DOTALL
)
_GPU_NOTHING: Final = "No operations will run on the GPU"
_GPU_PARTITION: Final = "Initializing WebGPU-based API from graph"
_ADAPTER: Final = re.compile(r"Selected adapter: (.+?), arch=.*adapterType=(.+)")
_NPU_SHARE: Final = re.compile(
    r"Partitioned subgraph<0>, selected (\d+) ops, from a total of (\d+) ops\. resulted in (\d+) partitions"
)
_NPU_DEVICE: Final = re.compile(r"invocation_context\.cc:\d+\] Using (.+)")
_CPU_ADAPTER: Final = "CPU"
_ERROR: Final = re.compile(r"(?:ERROR: (?:\[[^\]]*\] )?|E\d{4} \S+\s+\d+ \S+\] )(.+)")
_HEAD: Final = re.compile(r"(?:INFO|WARNING|ERROR|VERBOSE): |[IWEF]\d{4} \d|=== ")
_LONGEST_ERROR: Final = 600


@dataclass(frozen=True)
class Share:
    """What an accelerator took of a model: operations of ``total``, in how many partitions.

    ``total`` is None where the runtime names none: then it took all. ``refused`` has the reason for each kind of
    operation that it refused.
    """

    operations: int
    total: int | None
    partitions: int
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Device:
    """The device that an accelerator runs on, and whether that is the CPU after all."""

    name: str
    is_cpu: bool


def gpu_share(messages: str) -> Share | None:
    """What the GPU took, None where nothing is said, as of models that it took as a whole.

    >>> gpu_share("2 operations will run on the GPU, and the remaining 1 operations will run on the CPU.").total
    3
    """
    found = _GPU_SHARE.search(messages)
    if found is None:
        return Share(0, None, 0, _refused(messages)) if _GPU_NOTHING in messages else None
    taken, left = int(found[1]), int(found[2])
    return Share(taken, taken + left, min(taken, messages.count(_GPU_PARTITION)), _refused(messages))


def gpu_device(messages: str) -> Device | None:
    """The adapter that WebGPU chose; software ones name the CPU as their type."""
    found = _ADAPTER.search(messages)
    return None if found is None else Device(found[1].strip(), found[2].strip().startswith(_CPU_ADAPTER))


def npu_share(messages: str) -> Share | None:
    """What the vendor's compiler selected, None where it was never asked."""
    found = _NPU_SHARE.search(messages)
    return None if found is None else Share(int(found[1]), int(found[2]), int(found[3]))


def npu_device(messages: str) -> Device | None:
    """The device on which the vendor's dispatch library runs the partitions."""
    found = _NPU_DEVICE.search(messages)
    if found is None:
        return None
    name = found[1].strip()
    return Device(name, name.endswith(_CPU_ADAPTER))


def first_error(messages: str) -> str:
    """The first error that native code printed, without where in its source it happened; empty where there is none.

    Lines that follow and have no head of their own belong to it.
    """
    lines = messages.splitlines()
    for number, line in enumerate(lines):
        marked = _ERROR.match(line)
        if marked is not None and not marked[1].startswith("Following operations"):
            more = takewhile(lambda text: not _HEAD.match(text), lines[number + 1 :])
            return " ".join(" ".join([marked[1], *more]).split())[:_LONGEST_ERROR]
    return ""


def _refused(messages: str) -> dict[str, str]:
    """Kinds of operations, as ``SQUEEZE`` or ``CUSTOM name``, with what the delegate says of them."""
    found = _GPU_REFUSED.search(messages)
    lines = found[1].splitlines() if found else []
    pairs = (line.partition(": ") for line in lines)
    return {kind.strip(): reason.strip() for kind, _, reason in pairs}
