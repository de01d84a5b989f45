"""A compiled model as segments: what the NPU runs, in Qualcomm's emulator of it, and what the CPU runs between.

The emulator is ONNX Runtime's QNN provider: it runs what the compiler made, as it is.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final

import numpy as np
from msgspec import Struct

from evaltools.errors import ConfigurationUnavailable, InferenceError
from evaltools.model.compiled_for import DISPATCH
from evaltools.model.cut import CuttableModel, Form
from evaltools.runtime.session import Array

_PROVIDER: Final = "QNNExecutionProvider"
_NO_FALLBACK: Final = "session.disable_cpu_ep_fallback"
_NO_TELEMETRY: Final = "ORT_DISABLE_TELEMETRY"
"""Without it ONNX Runtime collects records of its use, from when it is imported."""
_ERRORS_ONLY: Final = 3
_OPSET: Final = 17
_IR: Final = 9


class Segment(Struct, frozen=True):
    """A part of the graph that runs as one, from tensors to tensors, by their numbers in the compiled model.

    ``content`` is a model of its own for the CPU, or with ``on_npu`` the vendor's binary, whose graph is ``name``.
    """

    on_npu: bool
    content: bytes
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str = ""


class CompiledGraph(Struct, frozen=True):
    """The segments of a compiled model in the order of execution, with the names and forms of its tensors."""

    segments: tuple[Segment, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    names: Mapping[int, str]
    forms: Mapping[int, Form]
    cpu_operators: tuple[str, ...]


def read_segments(content: bytes) -> CompiledGraph:
    """The segments of a compiled model.

    Raises :class:`~evaltools.errors.ModelError` where an operator of the CPU cannot be cut out, and
    :class:`ConfigurationUnavailable` where the file has no binary where it says that one is.
    """
    model = CuttableModel(content)
    segments: list[Segment] = []
    for on_npu, group in groupby(range(len(model.operators)), key=lambda place: model.operators[place] == DISPATCH):
        places = list(group)
        if on_npu:
            segments += [_dispatched(model, content, place) for place in places]
        else:
            cut = model.cut(places[0], places[-1], {})
            segments.append(Segment(False, cut.content, cut.inputs, cut.outputs))
    tensors = {*model.graph_inputs, *(tensor for each in segments for tensor in (*each.inputs, *each.outputs))}
    return CompiledGraph(
        tuple(segments),
        model.graph_inputs,
        model.graph_outputs,
        {tensor: model.name(tensor) for tensor in tensors},
        {tensor: model.form(tensor) for tensor in tensors},
        tuple(name for name in model.operators if name != DISPATCH),
    )


def _dispatched(model: CuttableModel, content: bytes, place: int) -> Segment:
    """The options of the operator say where in the file the vendor's binary lies."""
    from flatbuffers import flexbuffers

    option = flexbuffers.Loads(model.custom_options(place))
    start, size = int(option["bytecode_offset"]), int(option["bytecode_size"])
    binary = content[start : start + size]
    if len(binary) != size or not size:
        raise ConfigurationUnavailable(f"the compiled model has {len(binary)} bytes at {start}, not the {size} stated")
    return Segment(True, binary, model.fed_to(place), model.made_by(place), str(option["name"]))


class EmulatedSegment:
    """A segment of the NPU, loaded into the emulator.

    Raises :class:`ConfigurationUnavailable` where the emulator refuses it.
    """

    def __init__(self, segment: Segment, names: Mapping[int, str], forms: Mapping[int, Form]) -> None:
        runtime, devices = _runtime()
        self._inputs: Final = [_onnx_name(names[tensor]) for tensor in segment.inputs]
        self._outputs: Final = [_onnx_name(names[tensor]) for tensor in segment.outputs]
        model = _context_model(segment, self._inputs, self._outputs, forms)
        options = runtime.SessionOptions()
        options.add_session_config_entry(_NO_FALLBACK, "1")
        qnn = importlib.import_module("onnxruntime_qnn")
        options.add_provider_for_devices(devices, {"backend_path": qnn.get_qnn_htp_path()})
        try:
            self._session: Any = runtime.InferenceSession(model, options)
        except Exception as error:  # ONNX Runtime raises classes of its own, which have no common base
            raise ConfigurationUnavailable(f"the emulator refuses {segment.name}: {_one_line(error)}") from error

    def run(self, values: Sequence[Array]) -> list[Array]:
        """The outputs for these inputs; raises :class:`InferenceError`."""
        try:
            found: list[Array] = self._session.run(
                self._outputs, {name: np.asarray(value) for name, value in zip(self._inputs, values, strict=True)}
            )
        except Exception as error:
            raise InferenceError(f"the emulator: {_one_line(error)}") from error
        return found


@cache
def _runtime() -> tuple[Any, Any]:
    try:
        os.environ.setdefault(_NO_TELEMETRY, "1")
        runtime = importlib.import_module("onnxruntime")
        qnn = importlib.import_module("onnxruntime_qnn")
        importlib.import_module("onnx")
        runtime.set_default_logger_severity(_ERRORS_ONLY)
        runtime.register_execution_provider_library(_PROVIDER, qnn.get_library_path())
        devices = [device for device in runtime.get_ep_devices() if device.ep_name == _PROVIDER][:1]
    except Exception as error:
        raise ConfigurationUnavailable(
            f"the emulator cannot be loaded: {_one_line(error)}; pip install --upgrade 'evaltools[npu-qualcomm]'"
        ) from error
    if not devices:
        raise ConfigurationUnavailable("onnxruntime-qnn names no device here; install it anew")
    return runtime, devices


def _context_model(segment: Segment, inputs: list[str], outputs: list[str], forms: Mapping[int, Form]) -> bytes:
    """An ONNX model of one node, EPContext, which holds the vendor's binary."""
    helper = importlib.import_module("onnx.helper")

    def described(names: list[str], tensors: Sequence[int]) -> list[Any]:
        return [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(np.dtype(forms[tensor].dtype)), forms[tensor].shape
            )
            for name, tensor in zip(names, tensors, strict=True)
        ]

    node = helper.make_node(
        "EPContext",
        inputs,
        outputs,
        name=segment.name,
        domain="com.microsoft",
        embed_mode=1,
        ep_cache_context=segment.content,
        main_context=1,
        source="QNN",
        partition_name=segment.name,
    )
    graph = helper.make_graph(
        [node], segment.name, described(inputs, segment.inputs), described(outputs, segment.outputs)
    )
    sets = [helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("", _OPSET)]
    content: bytes = helper.make_model(graph, opset_imports=sets, ir_version=_IR).SerializeToString()
    return content


def _onnx_name(name: str) -> str:
    """The name that Qualcomm's plug-in gives a tensor.

    >>> _onnx_name("input/a;b:0")
    'input_a_b_0'
    """
    return re.sub(r"[^A-Za-z0-9_]", "_", name)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
