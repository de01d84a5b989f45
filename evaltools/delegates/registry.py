"""The list of delegates. A new delegate is one file beside this one plus one line in ``OURS``."""

from types import MappingProxyType
from typing import Final

from evaltools.delegates.common import COMMON
from evaltools.delegates.coreml import COREML
from evaltools.delegates.external import EXTERNAL
from evaltools.delegates.gpu import GPU
from evaltools.delegates.hexagon import HEXAGON
from evaltools.delegates.nnapi import NNAPI
from evaltools.delegates.npu import NPU
from evaltools.delegates.provider import Delegate
from evaltools.delegates.stable import STABLE
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.delegates.ynnpack import YNNPACK
from evaltools.extensions import DELEGATES as GROUP
from evaltools.extensions import installed

__all__ = ["COMMON", "DELEGATES", "OURS", "PARAMETERS", "PROBLEMS", "owner_of"]

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
