"""What LiteRT's compiler and Qualcomm's plug-in print: what the NPU takes of a model, what it leaves, and why.

The lines are those of ai-edge-litert 2.3.0 with QAIRT 2.51.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from evaltools.model.contents import Graph, Operation
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
_NOT_MADE: Final = re.compile(
    r'"[^"\n]*?(?P<kind>[A-Za-z0-9]+)_\d+_LiteRt_OpId_(?P<place>\d+)" generated: (?P<reason>[^\n]*)'
)
"""Of an operator that the validator took, and the next stage of the compiler does not make."""
_VARIABLES: Final = "Variable tensors not yet supported"
_TYPE: Final = re.compile(r"Unsupported data type, litert type: (\d+)")
_TYPES: Final = {
    1: "float32", 2: "int32", 3: "uint8", 4: "int64", 5: "string", 6: "bool", 7: "int16", 8: "complex64", 9: "int8",
    10: "float16", 11: "float64", 12: "complex128", 16: "uint32", 17: "uint16", 18: "int4",
}  # fmt: skip
"""The types of elements by their numbers in LiteRT."""
_OTHER_CHIPS: Final = "evaltools inspect MODEL --npu_soc=all says which chips take it"
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


def why_refused(graph: Graph, stderr: str, stdout: str) -> str:
    """Which operator the compiler stumbles over, with its types, and what to do; empty where its log does not say.

    These refusals are of the whole model: what the validator refuses stays on the CPU.
    """
    if (made := _NOT_MADE.search(stdout)) is not None:
        named = [node for node in graph.nodes if node.index == int(made["place"])]
        of_kind = [node for node in named if node.operator.replace("_", "").lower() == made["kind"].lower()]
        which = _with_types(graph, of_kind[0]) if of_kind else made["kind"]
        return f"{which}: {made['reason'].strip()}; {_OTHER_CHIPS}"
    if _VARIABLES in stderr:
        held = {tensor.index for tensor in graph.tensors if tensor.is_variable}
        using = [node for node in graph.nodes if held & {*node.inputs, *node.outputs}]
        return (
            f"{_VARIABLES}: {_some(graph, using)} keeps a state from run to run, which no chip takes; convert the "
            "model with its state as inputs and outputs, or without (unrolled, stateful=False)"
        )
    if (typed := _TYPE.search(stderr)) is not None:
        name = _TYPES.get(int(typed[1]), f"number {typed[1]} of LiteRT")
        having = {tensor.index for tensor in graph.tensors if tensor.dtype == name}
        using = [node for node in graph.nodes if having & {*node.inputs, *node.outputs}]
        return (
            f"{_some(graph, using)} has the type {name}, which no chip takes; leave this part out of the model, and "
            "compute it before or after"
        )
    return ""


def _some(graph: Graph, nodes: list[Operation]) -> str:
    """The first of some operators, and how many others there are."""
    if not nodes:
        return "a tensor"
    others = f" (and {len(nodes) - 1} more)" if len(nodes) > 1 else ""
    return f"{_with_types(graph, nodes[0])}{others}"


def _with_types(graph: Graph, node: Operation) -> str:
    """An operator with its place, and the types of what it takes and gives; constants among them."""
    types = (
        ", ".join(dict.fromkeys(graph.tensors[place].dtype for place in places if place >= 0))
        for places in (node.inputs, node.outputs)
    )
    return f"#{node.index} {node.operator} ({' -> '.join(types)})"
