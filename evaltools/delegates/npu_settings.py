"""What the flags of an NPU's vendor become for those who honour them: LiteRT's own tools, and its options in Python."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from evaltools.delegates.npu_flags import FLAGS, VendorFlag
from evaltools.delegates.registry import PARAMETERS
from evaltools.delegates.settings import DelegateSettings
from evaltools.parameter import Value

_MEMBERS: Final = {
    "memhandle": "MEM_HANDLE",
    "O1": "OPTIMIZE_FOR_INFERENCE",
    "O2": "OPTIMIZE_FOR_PREPARE",
    "O3": "OPTIMIZE_FOR_INFERENCE_O3",
}
"""What ai-edge-litert calls choices, where that is not their name in capitals."""


class Field(Struct, frozen=True):
    """A field of ai-edge-litert's options for a vendor, and the flag that was ``given`` for it, ``--name=value``.

    Its value is ``member`` of the enumeration that the options have under the field's name in capitals, else ``value``.
    """

    given: str
    name: str
    value: Value | list[int]
    member: str = ""


def vendor_flags(settings: DelegateSettings) -> list[str]:
    """The flags of the vendor that were given, as LiteRT's own tools read them.

    >>> flags = [("use_npu", "true"), ("npu_vendor", "qualcomm"), ("qualcomm_vtcm_size", "4")]
    >>> vendor_flags(DelegateSettings.from_flags(flags))
    ['--qualcomm_vtcm_size=4']
    """
    return [PARAMETERS[name].format(value) for name, value in settings.given if name in FLAGS]


def fields(settings: DelegateSettings) -> list[Field]:
    """The flags of the vendor that were given and that ai-edge-litert's options have, as these want them.

    >>> flags = [("use_npu", "true"), ("npu_vendor", "qualcomm"), ("qualcomm_optimization_level", "O2")]
    >>> fields(DelegateSettings.from_flags(flags))[0].member
    'OPTIMIZE_FOR_PREPARE'
    """
    stated = [(FLAGS[name], value) for name, value in settings.given if name in FLAGS and value != ""]
    return [_field(flag, value) for flag, value in stated if flag.field]


def _field(flag: VendorFlag, value: Value) -> Field:
    given, text = PARAMETERS[flag.name].format(value), str(value)
    if flag.choices:
        return Field(given, flag.field, value, _MEMBERS.get(text, text.upper()))
    if flag.field == "dump_tensor_ids":
        return Field(given, flag.field, [int(number) for number in text.split(",")])
    return Field(given, flag.field, value)
