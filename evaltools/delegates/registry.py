"""The list of delegates, and the flags that several of them read.

A new delegate is one file beside this one plus one line in ``OURS``.
"""

from types import MappingProxyType
from typing import Final

from evaltools.delegates.external import EXTERNAL
from evaltools.delegates.gpu import GPU
from evaltools.delegates.native_only import COREML, HEXAGON, NNAPI, STABLE, YNNPACK
from evaltools.delegates.npu import NPU
from evaltools.delegates.provider import Delegate
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.extensions import DELEGATES as GROUP
from evaltools.extensions import installed
from evaltools.parameter import Parameter

__all__ = ["COMMON", "DELEGATES", "OURS", "PARAMETERS", "PROBLEMS", "owner_of"]

_NODE_RANGE_PLATFORMS: Final = "native builds with TFLITE_DEBUG_DELEGATE"

COMMON: Final = (
    Parameter(
        "max_delegated_partitions",
        "Most partitions to delegate. 0 means 1 for GPU, 4 for Hexagon (16 at most), no limit for NNAPI and Core ML; "
        "below 0 NNAPI takes its own default, 3. XNNPACK, YNNPACK and external delegates do not read it.",
        default=0,
        log="Max number of delegated partitions",
    ),
    Parameter(
        "min_nodes_per_partition",
        "Fewest nodes of a partition; 0 or less means 2.",
        default=0,
        log="Min nodes per partition",
    ),
    Parameter(
        "first_delegate_node_index",
        "Index of the first node that may be delegated.",
        default=0,
        platforms=_NODE_RANGE_PLATFORMS,
        log="Index of the first node that could be delegated",
    ),
    Parameter(
        "last_delegate_node_index",
        "Index of the last node that may be delegated.",
        default=2**31 - 1,
        platforms=_NODE_RANGE_PLATFORMS,
        log="Index of the last node that could be delegated",
    ),
    Parameter(
        "gpu_invoke_loop_times",
        "Iterations of the GPU delegate's invoke loop.",
        default=-1,
        platforms="native builds with TFLITE_GPU_ENABLE_INVOKE_LOOP",
        log="Number of GPU delegate invoke loop iterations",
    ),
    Parameter(
        "delegate_serialize_dir",
        "Folder for what a delegate has compiled; needs delegate_serialize_token.",
        platforms="all; does something for NNAPI and OpenCL",
        log="Directory for delegate serialization",
        role="machine_path",
    ),
    Parameter(
        "delegate_serialize_token",
        "Key of this model in delegate_serialize_dir.",
        platforms="all; does something for NNAPI and OpenCL",
        log="Model-specific token/key for delegate serialization.",
    ),
)
"""Flags that several delegates read. They create no delegate themselves.

``num_threads`` stands with the configuration (``evaltools.configuration``), ``help`` with the command line.
"""

OURS: Final = (XNNPACK, YNNPACK, GPU, NNAPI, HEXAGON, COREML, NPU, EXTERNAL, STABLE)
"""The delegates that come with evaltools."""


def _wrong_names(delegate: Delegate, before: dict[str, Delegate]) -> str:
    own = {delegate.name, delegate.key, *(parameter.name for parameter in delegate.parameters)} - {""}
    taken = {parameter.name for parameter in COMMON} | _NAMES_OF_CONFIGURATIONS
    for other in (*OURS, *before.values()):
        taken |= {other.name, other.key, *(parameter.name for parameter in other.parameters)}
    if own & taken:
        return f"takes names of another delegate or flag: {', '.join(sorted(own & taken))}"
    return "" if delegate.enabled_by in own else f"has no flag {delegate.enabled_by}, by which it is to be enabled"


_NAMES_OF_CONFIGURATIONS: Final = frozenset(
    {"runtime", "kernels", "num_interpreter_threads", "num_threads", "delegate"}
)
_FOUND: Final = installed(GROUP, Delegate, _wrong_names)
PROBLEMS: Final = _FOUND.problems
"""Why delegates of other packages cannot be used, a sentence each."""
DELEGATES: Final = (*OURS, *_FOUND.usable.values())

_OWNERS: Final = {parameter.name: delegate for delegate in DELEGATES for parameter in delegate.parameters}

PARAMETERS: Final = MappingProxyType(
    {
        parameter.name: parameter
        for parameters in (COMMON, *(delegate.parameters for delegate in DELEGATES))
        for parameter in parameters
    }
)
"""Every delegate flag by name."""


def owner_of(name: str) -> Delegate | None:
    """The delegate that declares the flag, or None for a common flag."""
    return _OWNERS.get(name)
