"""A model that LiteRT compiled for the CPU, with its profiler, through LiteRT's C API and ctypes.

Every function has the types of its arguments declared, and every status is checked. The layouts of the structures are
those of ai-edge-litert 2.3.0, for C compilers that pack bit fields as GCC and Clang do.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from ctypes import POINTER, c_bool, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import numpy as np
from msgspec import Struct

from evaltools.model import TensorInfo
from evaltools.runtime.compiled.source import Signature
from evaltools.runtime.session import Array

PACKAGE: Final = "ai_edge_litert"
_FILES: Final = {"linux": "libLiteRt.so", "darwin": "libLiteRt.dylib"}
_MOST_DIMENSIONS: Final = 8
_RANK_BITS: Final = 0x7F
_STATUSES: Final = {
    1: "invalid argument", 2: "no memory left", 3: "runtime failure", 4: "missing input", 5: "unsupported",
    6: "not found", 8: "wrong version", 500: "unreadable file", 501: "invalid flatbuffer", 504: "failed compilation",
}  # fmt: skip
RELEASE: Final = ctypes.CFUNCTYPE(None, c_void_p)
"""The type of a function that frees a payload."""
_DESTROYERS: Final = ("Environment", "Model", "Options", "CompiledModel", "TensorBuffer")
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


class CallFailed(Exception):
    """A function of LiteRT is missing, or answered with another status than success."""


class Layout(ctypes.Structure):
    """A shape: the rank in the lowest seven bits of the first field, then sizes, then strides."""

    _fields_ = (("bits", c_uint32), ("sizes", c_int32 * _MOST_DIMENSIONS), ("strides", c_uint32 * _MOST_DIMENSIONS))

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes as far as the rank goes."""
        return tuple(self.sizes[: self.bits & _RANK_BITS])


class TensorType(ctypes.Structure):
    """What an element is, by TensorFlow Lite's number, and the shape."""

    _fields_ = (("element", c_int32), ("layout", Layout))


class MemoryUsage(ctypes.Structure):
    """The memory of the process at one moment."""

    _fields_ = (("footprint_kb", c_int64), ("allocated_bytes", c_size_t), ("in_use_bytes", c_size_t))


class ProfiledEvent(ctypes.Structure):
    """One entry of the profiler; ``node`` and ``graph`` are what events of operators have there."""

    _fields_ = (
        ("tag", c_char_p),
        ("kind", c_int),
        ("start_us", c_uint64),
        ("elapsed_us", c_uint64),
        ("before", MemoryUsage),
        ("after", MemoryUsage),
        ("node", c_int64),
        ("graph", c_int64),
        ("source", c_int),
    )


_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "LiteRtCreateEnvironment": (c_int, c_void_p, POINTER(c_void_p)),
    "LiteRtCreateModelFromFile": (c_void_p, c_char_p, POINTER(c_void_p)),
    "LiteRtCreateModelFromBuffer": (c_void_p, c_void_p, c_size_t, POINTER(c_void_p)),
    "LiteRtCreateOptions": (POINTER(c_void_p),),
    "LiteRtSetOptionsHardwareAccelerators": (c_void_p, c_int),
    "LiteRtCreateOpaqueOptions": (c_char_p, c_void_p, RELEASE, POINTER(c_void_p)),
    "LiteRtAddOpaqueOptions": (c_void_p, c_void_p),
    "LiteRtCreateCompiledModel": (c_void_p, c_void_p, c_void_p, POINTER(c_void_p)),
    "LiteRtCompiledModelGetProfiler": (c_void_p, POINTER(c_void_p)),
    "LiteRtGetNumModelSignatures": (c_void_p, POINTER(c_size_t)),
    "LiteRtGetModelSignature": (c_void_p, c_size_t, POINTER(c_void_p)),
    "LiteRtGetSignatureKey": (c_void_p, POINTER(c_char_p)),
    "LiteRtGetNumSignatureInputs": (c_void_p, POINTER(c_size_t)),
    "LiteRtGetNumSignatureOutputs": (c_void_p, POINTER(c_size_t)),
    "LiteRtGetSignatureInputTensorByIndex": (c_void_p, c_size_t, POINTER(c_void_p)),
    "LiteRtGetSignatureOutputTensorByIndex": (c_void_p, c_size_t, POINTER(c_void_p)),
    "LiteRtGetTensorIndex": (c_void_p, POINTER(c_uint32)),
    "LiteRtCompiledModelResizeInputTensorNonStrict": (c_void_p, c_size_t, c_size_t, POINTER(c_int), c_size_t),
    "LiteRtGetCompiledModelInputTensorLayout": (c_void_p, c_size_t, c_size_t, POINTER(Layout)),
    "LiteRtGetCompiledModelOutputTensorLayouts": (c_void_p, c_size_t, c_size_t, POINTER(Layout), c_bool),
    "LiteRtGetCompiledModelInputBufferRequirements": (c_void_p, c_size_t, c_size_t, POINTER(c_void_p)),
    "LiteRtGetCompiledModelOutputBufferRequirements": (c_void_p, c_size_t, c_size_t, POINTER(c_void_p)),
    "LiteRtCreateManagedTensorBufferFromRequirements": (c_void_p, POINTER(TensorType), c_void_p, POINTER(c_void_p)),
    "LiteRtGetTensorBufferPackedSize": (c_void_p, POINTER(c_size_t)),
    "LiteRtLockTensorBuffer": (c_void_p, POINTER(c_void_p), c_int),
    "LiteRtUnlockTensorBuffer": (c_void_p,),
    "LiteRtRunCompiledModel": (c_void_p, c_size_t, c_size_t, POINTER(c_void_p), c_size_t, POINTER(c_void_p)),
    "LiteRtStartProfiler": (c_void_p,),
    "LiteRtStopProfiler": (c_void_p,),
    "LiteRtGetNumProfilerEvents": (c_void_p, POINTER(c_int)),
    "LiteRtGetProfilerEvents": (c_void_p, c_int, POINTER(ProfiledEvent)),
}


class LiteRtLibrary:
    """``libLiteRt`` with the functions above; raises :class:`CallFailed` where it cannot be loaded or lacks one."""

    def __init__(self) -> None:
        path = _library_path()
        try:
            self._library = ctypes.CDLL(str(path))
            for name, arguments in _FUNCTIONS.items():
                function = getattr(self._library, name)
                function.argtypes, function.restype = arguments, c_int
            for name in _DESTROYERS:
                function = getattr(self._library, f"LiteRtDestroy{name}")
                function.argtypes, function.restype = (c_void_p,), None
        except (OSError, AttributeError) as error:
            message = f"{path} cannot be used: {error}"
            raise CallFailed(message) from error

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that answers with a status."""
        status = getattr(self._library, name)(*arguments)
        if status:
            message = f"{name} answered with status {status} ({_STATUSES.get(status, 'not known here')})"
            raise CallFailed(message)

    def handle(self, name: str, *arguments: Any) -> c_void_p:
        """What a function points its last argument to; nothing is a failure."""
        handle = c_void_p()
        self.call(name, *arguments, ctypes.byref(handle))
        if not handle:
            message = f"{name} gave nothing"
            raise CallFailed(message)
        return handle

    def number(self, name: str, *arguments: Any) -> int:
        """The whole number that a function writes to its last argument."""
        number = _FUNCTIONS[name][-1]._type_()
        self.call(name, *arguments, ctypes.byref(number))
        return int(number.value)

    def text(self, name: str, *arguments: Any) -> str:
        """The text that a function points its last argument to."""
        text = c_char_p()
        self.call(name, *arguments, ctypes.byref(text))
        return (text.value or b"").decode("utf-8", "replace")

    def destroy(self, kind: str, handle: c_void_p) -> None:
        """Free what a handle stands for: an Environment, a Model, Options, a CompiledModel or a TensorBuffer."""
        getattr(self._library, f"LiteRtDestroy{kind}")(handle)


def _library_path() -> Path:
    found = importlib.util.find_spec(PACKAGE)
    name = _FILES.get(sys.platform)
    if found is None or not found.submodule_search_locations or name is None:
        message = f"where {PACKAGE} has its library on {sys.platform} is not known"
        raise CallFailed(message)
    return Path(found.submodule_search_locations[0]) / name


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


class ProfiledModel:
    """A compiled model; a context manager that frees all that belongs to it.

    ``source`` is the model's path or content, ``cpu_options`` has lines ``name = value`` of LiteRT's CPU options.
    Whatever fails raises :class:`~evaltools.runtime.profiler.profiled_model.CallFailed`.
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
