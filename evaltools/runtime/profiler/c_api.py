"""The part of LiteRT's C API that runs and profiles a model on the CPU, through ctypes.

Every function has the types of its arguments declared, and every status is checked. The layouts of the structures are
those of ai-edge-litert 2.3.0, for C compilers that pack bit fields as GCC and Clang do.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from ctypes import POINTER, c_bool, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Final

PACKAGE: Final = "ai_edge_litert"
_FILES: Final = {"linux": "libLiteRt.so", "darwin": "libLiteRt.dylib"}
_MOST_DIMENSIONS: Final = 8
_RANK_BITS: Final = 0x7F
_STATUSES: Final = {
    1: "invalid argument", 2: "no memory left", 3: "runtime failure", 4: "missing input", 5: "unsupported",
    6: "not found", 8: "wrong version", 500: "unreadable file", 501: "invalid flatbuffer", 504: "failed compilation",
}  # fmt: skip


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


RELEASE: Final = ctypes.CFUNCTYPE(None, c_void_p)
"""The type of a function that frees a payload."""

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
_DESTROYERS: Final = ("Environment", "Model", "Options", "CompiledModel", "TensorBuffer")


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
