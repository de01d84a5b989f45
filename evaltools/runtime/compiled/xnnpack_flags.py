"""The bits that LiteRT's CPU options pass on to XNNPACK."""

from __future__ import annotations

from typing import Final

from evaltools.configuration import Configuration
from evaltools.errors import UsageError
from evaltools.model import ModelFile
from evaltools.model.contents import Graph, read_contents

_QUANTISED: Final = 3
"""QS8 and QU8, which the native tools always set beside other flags: flags replace those of the delegate."""
_FORCE_FP16: Final = 4
_FP16_FLAG: Final = "xnnpack_force_fp16"
_CONVERSIONS: Final = ("QUANTIZE", "DEQUANTIZE")


def fp16_without_effect(model: ModelFile, configuration: Configuration) -> str:
    """Why fp16, where it is asked for, changes nothing in a model; empty where it does."""
    if not configuration.delegates.value(_FP16_FLAG) or any(map(_has_float_work, read_contents(model).graphs)):
        return ""
    return (
        f"--{_FP16_FLAG}=true had nothing to do: no operator of the model computes with float32, and none was in "
        "fp16; leave it out"
    )


def _has_float_work(graph: Graph) -> bool:
    computing = (node for node in graph.nodes if node.operator not in _CONVERSIONS)
    tensors = (graph.tensor(index) for node in computing for index in (*node.inputs, *node.outputs))
    return any(tensor is not None and tensor.dtype == "float32" and tensor.constant is None for tensor in tensors)


def xnnpack_flags(configuration: Configuration) -> int | None:
    """The bits that a configuration asks for, None where it leaves them to the delegate.

    Raises :class:`UsageError` for a negative number.

    >>> xnnpack_flags(Configuration.from_text("c", "use_xnnpack=true xnnpack_force_fp16=true"))
    7
    """
    asked_for = int(configuration.delegates.value("xnnpack_runtime_flags"))
    if asked_for < 0:
        raise UsageError("--xnnpack_runtime_flags is a set of bits, 0 or more; a negative number is none")
    asked_for |= _FORCE_FP16 if configuration.delegates.value(_FP16_FLAG) else 0
    return asked_for | _QUANTISED if asked_for else None
