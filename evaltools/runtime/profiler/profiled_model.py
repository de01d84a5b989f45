"""A model that LiteRT compiled for the CPU, with its profiler."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from ctypes import c_int, c_void_p
from types import TracebackType
from typing import Any, Final

import numpy as np
from msgspec import Struct

from evaltools.model import TensorInfo
from evaltools.runtime.profiler.c_api import RELEASE, CallFailed, Layout, LiteRtLibrary, ProfiledEvent, TensorType
from evaltools.runtime.session import Array

ELEMENTS: Final[Mapping[str, int]] = {
    "float32": 1, "int32": 2, "uint8": 3, "int64": 4, "bool": 6, "int16": 7, "int8": 9, "float16": 10, "float64": 11,
    "uint64": 13, "uint32": 16, "uint16": 17,
}  # fmt: skip
"""TensorFlow Lite's numbers of the types that buffers are made for."""
_ON_CPU: Final = 1
_TO_READ, _TO_WRITE = 0, 1
_PROFILER_OPTIONS: Final = (b"runtime_options_string", b"enable_profiling = true\n")
_CPU_OPTIONS: Final = b"xnnpack"
_PYTHON_FREES: Final = RELEASE(lambda _payload: None)


class Event(Struct, frozen=True):
    """One entry of the profiler; those of a run are in the order in which they began.

    ``kind`` is a bit of TensorFlow Lite's ``EventType``. ``node`` is the index of a node, or of a delegate's own
    operator, ``graph`` that of the graph in the file. Other kinds use these two for something else.
    """

    tag: str
    kind: int
    elapsed_us: int
    node: int
    graph: int


class Signature(Struct, frozen=True):
    """A signature with its tensors, by index in the file, in the order of its buffers."""

    number: int
    key: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class ProfiledModel:
    """A compiled model; a context manager that frees all that belongs to it.

    ``source`` is the model's path or content, ``cpu_options`` has lines ``name = value`` of LiteRT's CPU options.
    Whatever fails raises :class:`~evaltools.runtime.profiler.c_api.CallFailed`.
    """

    def __init__(self, library: LiteRtLibrary, source: str | bytes, cpu_options: str) -> None:
        self._library = library
        self._borrowed = (source, cpu_options.encode())
        self._signature = 0
        self._inputs: list[c_void_p] = []
        self._outputs: list[c_void_p] = []
        with ExitStack() as stack:
            self._environment = self._own(stack, "Environment", "LiteRtCreateEnvironment", 0, None)
            model = self._own(stack, "Model", *_loading(self._environment, source))
            options = self._own(stack, "Options", "LiteRtCreateOptions")
            library.call("LiteRtSetOptionsHardwareAccelerators", options, _ON_CPU)
            for identifier, text in (_PROFILER_OPTIONS, (_CPU_OPTIONS, self._borrowed[1])):
                part = library.handle("LiteRtCreateOpaqueOptions", identifier, text, _PYTHON_FREES)
                library.call("LiteRtAddOpaqueOptions", options, part)
            arguments = (self._environment, model, options)
            self._compiled = self._own(stack, "CompiledModel", "LiteRtCreateCompiledModel", *arguments)
            self._profiler = library.handle("LiteRtCompiledModelGetProfiler", self._compiled)
            self.signatures = self._read_signatures(model)
            self._stack = stack.pop_all()

    def __enter__(self) -> ProfiledModel:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def prepare(self, signature: Signature, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> None:
        """Give the inputs of a signature their shapes and make its buffers; once, and before anything is run.

        The tensors are in the order of the signature's.
        """
        self._signature = signature.number
        for place, tensor in enumerate(inputs):
            if self._input_layout(place).shape != tensor.shape:
                sizes = (c_int * len(tensor.shape))(*tensor.shape)
                self._call("LiteRtCompiledModelResizeInputTensorNonStrict", place, sizes, len(tensor.shape))
        layouts = (Layout * len(outputs))()
        self._call("LiteRtGetCompiledModelOutputTensorLayouts", len(outputs), layouts, True)
        self._inputs = [
            self._new_buffer("Input", place, tensor, self._input_layout(place)) for place, tensor in enumerate(inputs)
        ]
        self._outputs = [
            self._new_buffer("Output", place, tensor, layouts[place]) for place, tensor in enumerate(outputs)
        ]

    def write(self, place: int, value: Array) -> None:
        """Fill an input of the signature."""
        buffer, value = self._inputs[place], np.ascontiguousarray(value)
        size = self._library.number("LiteRtGetTensorBufferPackedSize", buffer)
        if size != value.nbytes:
            message = f"input {place} has {size} bytes, not the {value.nbytes} of {value.dtype}{value.shape}"
            raise CallFailed(message)
        with self._locked(buffer, _TO_WRITE) as address:
            ctypes.memmove(address, value.ctypes.data, value.nbytes)

    def read(self, place: int) -> bytes:
        """What an output of the signature holds."""
        buffer = self._outputs[place]
        size = self._library.number("LiteRtGetTensorBufferPackedSize", buffer)
        with self._locked(buffer, _TO_READ) as address:
            return ctypes.string_at(address, size)

    def run(self) -> int:
        """Run once without the profiler; whole microseconds by the clock."""
        inputs = (c_void_p * len(self._inputs))(*self._inputs)
        outputs = (c_void_p * len(self._outputs))(*self._outputs)
        start = time.perf_counter_ns()
        self._call("LiteRtRunCompiledModel", len(inputs), inputs, len(outputs), outputs)
        return (time.perf_counter_ns() - start) // 1000

    def profiled_run(self) -> list[Event]:
        """Run once with the profiler, which drops what it held before."""
        self._library.call("LiteRtStartProfiler", self._profiler)
        self.run()
        self._library.call("LiteRtStopProfiler", self._profiler)
        count = self._library.number("LiteRtGetNumProfilerEvents", self._profiler)
        if count < 1:
            return []
        entries = (ProfiledEvent * count)()
        self._library.call("LiteRtGetProfilerEvents", self._profiler, count, entries)
        return [_event(entry) for entry in entries]

    @contextmanager
    def _locked(self, buffer: c_void_p, mode: int) -> Iterator[c_void_p]:
        address = c_void_p()
        self._library.call("LiteRtLockTensorBuffer", buffer, ctypes.byref(address), mode)
        try:
            yield address
        finally:
            self._library.call("LiteRtUnlockTensorBuffer", buffer)

    def _own(self, stack: ExitStack, kind: str, name: str, *arguments: Any) -> c_void_p:
        handle = self._library.handle(name, *arguments)
        stack.callback(self._library.destroy, kind, handle)
        return handle

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function of the compiled model and the signature."""
        self._library.call(name, self._compiled, self._signature, *arguments)

    def _read_signatures(self, model: c_void_p) -> tuple[Signature, ...]:
        library = self._library
        found = []
        for number in range(library.number("LiteRtGetNumModelSignatures", model)):
            signature = library.handle("LiteRtGetModelSignature", model, number)
            key = library.text("LiteRtGetSignatureKey", signature)
            inputs, outputs = (self._tensors(signature, side) for side in ("Input", "Output"))
            found.append(Signature(number, key, inputs, outputs))
        return tuple(found)

    def _tensors(self, signature: c_void_p, side: str) -> tuple[int, ...]:
        library = self._library
        places = range(library.number(f"LiteRtGetNumSignature{side}s", signature))
        tensors = [library.handle(f"LiteRtGetSignature{side}TensorByIndex", signature, place) for place in places]
        return tuple(library.number("LiteRtGetTensorIndex", tensor) for tensor in tensors)

    def _input_layout(self, place: int) -> Layout:
        layout = Layout()
        self._call("LiteRtGetCompiledModelInputTensorLayout", place, ctypes.byref(layout))
        return layout

    def _new_buffer(self, side: str, place: int, tensor: TensorInfo, layout: Layout) -> c_void_p:
        """A buffer as the compiled model wants it, whose requirements stay the model's."""
        wanted = c_void_p()
        self._call(f"LiteRtGetCompiledModel{side}BufferRequirements", place, ctypes.byref(wanted))
        kind = TensorType(ELEMENTS[tensor.dtype], layout)
        arguments = (self._environment, ctypes.byref(kind), wanted)
        create = "LiteRtCreateManagedTensorBufferFromRequirements"
        return self._own(self._stack, "TensorBuffer", create, *arguments)


def _loading(environment: c_void_p, source: str | bytes) -> tuple[Any, ...]:
    if isinstance(source, str):
        return ("LiteRtCreateModelFromFile", environment, source.encode())
    return ("LiteRtCreateModelFromBuffer", environment, source, len(source))


def _event(entry: ProfiledEvent) -> Event:
    tag = (entry.tag or b"").decode("utf-8", "replace")
    return Event(tag, entry.kind, entry.elapsed_us, entry.node, entry.graph)
