"""Hexagon: the DSP of Qualcomm chips."""

from typing import Final

from evaltools.delegates.provider import Delegate
from evaltools.parameter import Parameter

_PLATFORMS: Final = "ARM builds with TFLITE_ENABLE_HEXAGON"

HEXAGON: Final = Delegate(
    name="Hexagon",
    key="hexagon",
    enabled_by="use_hexagon",
    parameters=(
        Parameter("use_hexagon", "Apply the Hexagon delegate.", default=False, platforms=_PLATFORMS, log="Use Hexagon"),
        Parameter(
            "hexagon_lib_path",
            "Folder of libhexagon_nn_skel*.so; libhexagon_interface.so must be on the loader's path.",
            default="/data/local/tmp",
            platforms=_PLATFORMS,
            log="Hexagon lib path",
            role="machine_path",
        ),
        Parameter(
            "hexagon_profiling",
            "Profile in cycles; shown with operator profiling.",
            default=False,
            platforms=_PLATFORMS,
            log="Hexagon profiling",
        ),
    ),
    works_in="the native tools on Android phones with a Qualcomm Hexagon DSP",
    common=frozenset({"max_delegated_partitions", "min_nodes_per_partition"}),
)
