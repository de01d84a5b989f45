"""Flags that several delegates read. They create no delegate themselves.

``num_threads`` stands with the configuration (``evaltools.configuration``), ``help`` with the command line.
"""

from typing import Final

from evaltools.parameter import Parameter

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
