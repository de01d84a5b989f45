"""What LiteRT prints while it compiles a model: how many operations an accelerator took, which not, and which device.

The Python package states none of this otherwise, and its ``is_fully_accelerated()`` has said yes of models that ran on
the CPU. The lines are those of ai-edge-litert 2.3.0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Final

from msgspec import Struct, field

_GPU_SHARE: Final = re.compile(
    r"(?:Following operations are not supported by GPU delegate:\n(?P<refused>.*?)\n)?"
    r"(?P<taken>\d+|No) operations will run on the GPU, and (?:the remaining|all) (?P<left>\d+) operations",
    re.DOTALL,
)
_GPU_STARTED: Final = "Initializing WebGPU-based API from graph"
_ADAPTER: Final = re.compile(r"Selected adapter: (.+?), arch=.*adapterType=(.+)")
_NPU_SHARE: Final = re.compile(
    r"Partitioned subgraph<(\d+)>, selected (\d+) ops, from a total of (\d+) ops\. resulted in (\d+) partitions"
)
_NPU_DEVICE: Final = re.compile(r"invocation_context\.cc:\d+\] Using (.+)")
_CPU_ADAPTER: Final = "CPU"
_ERROR: Final = re.compile(r"(?:ERROR: (?:\[[^\]]*\] )?|E\d{4} \S+\s+\d+ \S+\] )(.+)")
_HEAD: Final = re.compile(r"(?:INFO|WARNING|ERROR|VERBOSE): |[IWEF]\d{4} \d|=== ")
_DOUBT: Final = re.compile(r"W\d{4} \S+\s+\d+ \S+\] (Shape mismatch in .+)")
_HEADING: Final = "Plugin errs:"
_LONGEST_ERROR: Final = 600


class AcceleratorShare(Struct, frozen=True):
    """What an accelerator took of a graph: operations of ``total``, in how many partitions.

    ``refused`` has the reason for each kind of operation that it refused.
    """

    operations: int
    total: int
    partitions: int
    refused: Mapping[str, str] = field(default_factory=dict)


class Device(Struct, frozen=True):
    """The device that an accelerator runs on, and whether that is the CPU after all."""

    name: str
    is_cpu: bool


def gpu_share(messages: str, nodes: int) -> AcceleratorShare | None:
    """What the GPU took of a graph with so many nodes, None where the messages do not say.

    Of one that is taken as a whole, only the beginning of its initialisation is printed; of another, how many of its
    operations are taken, and then the same, if any are.

    >>> gpu_share("No operations will run on the GPU, and all 3 operations will run on the CPU.", 3)
    AcceleratorShare(operations=0, total=3, partitions=0, refused={})
    """
    found, has_started = _GPU_SHARE.search(messages), _GPU_STARTED in messages
    if found is None:
        return AcceleratorShare(nodes, nodes, 1) if has_started else None
    taken, left = 0 if found["taken"] == "No" else int(found["taken"]), int(found["left"])
    if taken + left != nodes or (taken and not has_started):
        return None
    return AcceleratorShare(taken, nodes, min(taken, 1), _refused(found["refused"] or ""))


def speaks_of_graphs(messages: str) -> bool:
    """Whether the GPU says anything of a graph."""
    return _GPU_STARTED in messages or _GPU_SHARE.search(messages) is not None


def gpu_device(messages: str) -> Device | None:
    """The adapter that WebGPU chose; software ones name the CPU as their type."""
    found = _ADAPTER.search(messages)
    return None if found is None else Device(found[1].strip(), found[2].strip().startswith(_CPU_ADAPTER))


def npu_share(messages: str, number: int, nodes: int | None = None) -> AcceleratorShare | None:
    """What the vendor's compiler selected of the graph of that number and size, None where that is not said."""
    for found in _NPU_SHARE.finditer(messages):
        graph, selected, total, partitions = map(int, found.groups())
        if graph == number and nodes in (None, total):
            return AcceleratorShare(selected, total, partitions)
    return None


def npu_device(messages: str) -> Device | None:
    """The device on which the vendor's dispatch library runs the partitions."""
    found = _NPU_DEVICE.search(messages)
    if found is None:
        return None
    name = found[1].strip()
    return Device(name, name.endswith(_CPU_ADAPTER))


def doubts(messages: str) -> tuple[str, ...]:
    """What the GPU warned about that makes its results wrong, each once: outputs of another shape than the model's."""
    return tuple(dict.fromkeys(_DOUBT.findall(messages)))


def first_error(messages: str) -> str:
    """The first error that native code printed, without where in its source it happened; empty where there is none.

    Lines that follow and have no head of their own belong to it. Headings above the errors of others come last.
    """
    found = _errors(messages)
    telling = [error for error in found if not error.startswith(_HEADING)]
    return next(iter([*telling, *found]), "")


def _errors(messages: str) -> list[str]:
    lines = messages.splitlines()
    found = []
    for number, line in enumerate(lines):
        marked = _ERROR.match(line)
        if marked is not None and not marked[1].startswith("Following operations"):
            more = takewhile(lambda text: not _HEAD.match(text), lines[number + 1 :])
            found.append(" ".join(" ".join([marked[1], *more]).split())[:_LONGEST_ERROR])
    return found


def _refused(printed: str) -> dict[str, str]:
    """Kinds of operations, as ``SQUEEZE`` or ``CUSTOM name``, with what the delegate says of them."""
    pairs = (line.partition(": ") for line in printed.splitlines())
    return {kind.strip(): reason.strip() for kind, _, reason in pairs}
