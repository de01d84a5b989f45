"""Core ML: Apple's interface to its neural engine."""

from typing import Final

from evaltools.delegates.provider import Delegate
from evaltools.parameter import Parameter

_PLATFORMS: Final = "iPhone and Apple-silicon Mac"

COREML: Final = Delegate(
    name="COREML",
    key="coreml",
    enabled_by="use_coreml",
    parameters=(
        Parameter("use_coreml", "bool", False, "Apply the Core ML delegate.", _PLATFORMS, log="Use CoreML"),
        Parameter(
            "coreml_version",
            "int32",
            0,
            "Core ML version; 0 means the newest.",
            _PLATFORMS,
            (0, 2, 3),
            log="CoreML version",
        ),
    ),
    works_in="the native tools on iPhones and Apple-silicon Macs",
    common=frozenset(
        {
            "max_delegated_partitions",
            "min_nodes_per_partition",
            "first_delegate_node_index",
            "last_delegate_node_index",
        }
    ),
)
