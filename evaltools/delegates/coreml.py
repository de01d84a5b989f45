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
        Parameter("use_coreml", "Apply the Core ML delegate.", default=False, platforms=_PLATFORMS, log="Use CoreML"),
        Parameter(
            "coreml_version",
            "Core ML version; 0 means the newest.",
            default=0,
            platforms=_PLATFORMS,
            choices=(0, 2, 3),
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
