"""The list of delegates. A new delegate is one file beside this one plus one line in ``DELEGATES``."""

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

__all__ = ["COMMON", "DELEGATES", "PARAMETERS", "owner_of"]

DELEGATES: Final = (XNNPACK, YNNPACK, GPU, NNAPI, HEXAGON, COREML, NPU, EXTERNAL, STABLE)

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
