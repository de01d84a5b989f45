"""What LiteRT's compiler and Qualcomm's plug-in print: what the NPU takes of a model, what it leaves, and why.

The lines are those of ai-edge-litert 2.3.0 with QAIRT 2.51.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from evaltools.runtime.compiled.messages import npu_share

_SDK: Final = re.compile(r"Applying plugin with SDK version: v?(\d+(?:\.\d+){1,2})")
_REFUSED: Final = re.compile(
    r"(?:QNN op validation failed: '(?P<node>[^']*)'(?P<tensors>(?:(?!LiteRT Op #).)*?))?"
    r"LiteRT Op #(?P<place>\d+) '(?P<operator>[^']*)' \(code=\d+\) is not supported",
    re.DOTALL,
)
_TENSOR: Final = re.compile(r"\[\d+\] name=.*? dtype=QNN_DATATYPE_(\w+)")
_VALIDATOR: Final = re.compile(r"<E> (?P<reason>[^\n]*)|(?P<started>QnnBackend_validateOpConfig started)")
_NODE: Final = re.compile(r"Failed to validate op (\S+) with error")
_WHERE: Final = re.compile(r" in the node '[^']*'\.?.*")
_WIDE_RANGE: Final = "Output quantization range is outside from ReluMinMax limits"
_NO_REASON: Final = ("QnnBackend_validateOpConfig failed", "validateNativeOps")


class LeftOperator(Struct, frozen=True):
    """An operator that stays on the CPU: its place in the graph, and the vendor's reason where its log has one."""

    place: int
    reason: str


class CompilerReport(Struct, frozen=True):
    """Of ``total_nodes`` nodes of the graph the NPU takes ``taken``, in so many partitions; ``sdk`` compiled it.

    ``wide_ranges`` counts the operators whose outputs may exceed the limits of the ReLU that is folded into them.
    """

    total_nodes: int
    taken: int
    partitions: int
    left: tuple[LeftOperator, ...]
    sdk: str
    wide_ranges: int = 0


def read_log(stderr: str, stdout: str) -> CompilerReport | None:
    """What the compiler did, None where its log has no count.

    >>> read_log("Partitioned subgraph<0>, selected 8 ops, from a total of 13 ops. resulted in 5 partitions.", "")
    CompilerReport(total_nodes=13, taken=8, partitions=5, left=(), sdk='', wide_ranges=0)
    """
    share, sdk = npu_share(stderr, 0), _SDK.search(stderr)
    if share is None:
        return None
    reasons = _reasons_by_node(stdout)
    left = tuple(
        LeftOperator(int(found["place"]), _reason(reasons.get(found["node"] or "", ""), found["tensors"] or ""))
        for found in _REFUSED.finditer(stderr)
    )
    sdk_version = sdk[1] if sdk else ""
    wide_ranges = stdout.count(_WIDE_RANGE)
    return CompilerReport(share.total, share.operations, share.partitions, left, sdk_version, wide_ranges)


def _reasons_by_node(stdout: str) -> dict[str, str]:
    """The first thing that Qualcomm's validator says of each node that it refuses."""
    reasons: dict[str, str] = {}
    first = ""
    for found in _VALIDATOR.finditer(stdout):
        if found["started"]:
            first = ""
            continue
        failed = _NODE.search(found["reason"])
        if failed:
            reasons.setdefault(failed[1], first)
        elif not first and not found["reason"].startswith(_NO_REASON):
            first = _WHERE.sub("", found["reason"]).strip()
    return reasons


def _reason(said: str, tensors: str) -> str:
    """The validator's sentence, with the types that the operator has."""
    inputs, _, outputs = tensors.partition("Outputs:")
    types = [", ".join(_type(name) for name in _TENSOR.findall(side)) for side in (inputs, outputs)]
    if not all(types):
        return said or "Qualcomm has no such operator"
    return f"{said or 'Qualcomm has no such operator with these types'} ({types[0]} -> {types[1]})"


def _type(name: str) -> str:
    """A type of QNN as users know it.

    >>> _type("FLOAT_32"), _type("SFIXED_POINT_8"), _type("UFIXED_POINT_16")
    ('float32', 'int8', 'uint16')
    """
    kind, _, bits = name.rpartition("_")
    known = {"SFIXED_POINT": "int", "UFIXED_POINT": "uint", "FLOAT": "float", "INT": "int", "UINT": "uint"}
    return f"{known[kind]}{bits}" if kind in known else name.lower()
