"""Models that only one kind of hardware runs, as they were compiled for it: which it is, as far as the file says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from evaltools.model.contents import Graph, operator_counts
from evaltools.model.flatbuffer import Table
from evaltools.model.metadata import metadata_content

DISPATCH: Final = "DISPATCH_OP"
HARDWARE: Final = {
    "edgetpu-custom-op": "Coral's Edge TPU",
    DISPATCH: "the NPU of a chip",
    "ethos-u": "Arm's Ethos-U",
}
"""Operators that hold a program for hardware: written by the Edge TPU compiler, by LiteRT's for NPUs, and by Vela."""
_STAMP: Final = "LiteRtStamp"
_STAMP_FIELD_BYTES: Final = 125
_QUALCOMM: Final = "Qualcomm"
_QUALCOMM_SDK: Final = re.compile(rb"\bv(\d+\.\d+\.\d+)\.\d{12}\b")
"""How Qualcomm's binaries name the SDK that compiled them, with the time when that was built."""


class CompiledFor(Struct, frozen=True):
    """``count`` nodes of an ``operator`` that only ``hardware`` runs.

    Of LiteRT's compiled models ``manufacturer`` and ``chip`` are those of the build stamp, and ``sdk`` is the version
    of the vendor's compiler; all are empty where the file does not say.
    """

    operator: str
    count: int
    hardware: str
    manufacturer: str = ""
    chip: str = ""
    sdk: str = ""


def compiled_for(content: bytes, graphs: Sequence[Graph]) -> tuple[CompiledFor, ...]:
    """What in a model runs only on one kind of hardware; nothing of a model that was not compiled."""
    counts = operator_counts(graphs)
    return tuple(
        _dispatched(content, counts[operator])
        if operator == DISPATCH
        else CompiledFor(operator, counts[operator], hardware)
        for operator, hardware in HARDWARE.items()
        if operator in counts
    )


def _dispatched(content: bytes, count: int) -> CompiledFor:
    manufacturer, chip = _stamp(metadata_content(Table.root(memoryview(content)), _STAMP))
    sdk = _QUALCOMM_SDK.search(content) if manufacturer == _QUALCOMM else None
    hardware = f"the NPU of {manufacturer} {chip}" if manufacturer and chip else HARDWARE[DISPATCH]
    return CompiledFor(DISPATCH, count, hardware, manufacturer, chip, sdk[1].decode() if sdk else "")


def _stamp(stamp: bytes) -> tuple[str, str]:
    """LiteRT's build stamp: the manufacturer and the chip, each filled up with zeros.

    >>> _stamp(b"Qualcomm".ljust(125, bytes(1)) + b"SM8650".ljust(125, bytes(1)))
    ('Qualcomm', 'SM8650')
    """
    if len(stamp) != 2 * _STAMP_FIELD_BYTES:
        return "", ""
    fields = (stamp[:_STAMP_FIELD_BYTES], stamp[_STAMP_FIELD_BYTES:])
    manufacturer, chip = (field.partition(bytes(1))[0].decode("utf-8", "replace") for field in fields)
    return manufacturer, chip
