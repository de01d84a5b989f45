"""Sees the calls of models that the user's own program makes, while somebody listens.

The classes and functions of the runtimes' native modules are wrapped, and put back when nobody listens any more. So an
interpreter that was made before is seen, too, and so is a method that was looked up before, or a signature's runner.
Runtimes that are imported meanwhile are wrapped then.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final, NamedTuple, Protocol

from msgspec import Struct, field

OPEN: Final = "open"
ALLOCATE: Final = "allocate"
DELEGATE: Final = "apply delegate"
WRITE: Final = "write input"
INVOKE: Final = "invoke"
READ: Final = "read output"


class Call(NamedTuple):
    """A call that has ended: of which kind, and when by ``time.perf_counter_ns``.

    ``model`` is the runtime's object, None for buffers, which belong to no model; nobody may keep it, for an
    interpreter refuses to run while others refer to it. ``source`` is what a model was opened from: a path, or its
    content.
    """

    runtime: str
    kind: str
    model: object | None
    start_ns: int
    duration_ns: int
    has_failed: bool
    source: str | bytes = ""


class Listener(Protocol):
    """Is called for calls, in the thread that made them."""

    def called(self, call: Call) -> None:
        """Take a call."""


class _NativeModule(Struct, frozen=True):
    """What is wrapped in a module: methods of a class, functions that open a model, and functions on buffers.

    ``opening`` maps functions to the place of the argument that says what is opened.
    """

    runtime: str
    class_name: str = ""
    methods: Mapping[str, str] = field(default_factory=dict)
    opening: Mapping[str, int] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)


def _interpreter(runtime: str) -> _NativeModule:
    return _NativeModule(
        runtime,
        "InterpreterWrapper",
        {
            "ModifyGraphWithDelegate": DELEGATE,
            "AllocateTensors": ALLOCATE,
            "SetTensor": WRITE,
            "Invoke": INVOKE,
            "GetTensor": READ,
        },
        {"CreateWrapperFromFile": 0, "CreateWrapperFromBuffer": 0},
    )


_LITERT: Final = "ai-edge-litert"
_MODULES: Final = {
    "tflite_runtime._pywrap_tensorflow_interpreter_wrapper": _interpreter("tflite-runtime"),
    "ai_edge_litert._pywrap_tensorflow_interpreter_wrapper": _interpreter(_LITERT),
    "ai_edge_litert._pywrap_litert_interpreter_wrapper": _interpreter(_LITERT),
    "ai_edge_litert._pywrap_litert_compiled_model_wrapper": _NativeModule(
        f"{_LITERT}, CompiledModel",
        "CompiledModelWrapper",
        dict.fromkeys(("Run", "RunByIndex", "RunByName"), INVOKE),
        {"CreateCompiledModelFromFile": 1, "CreateCompiledModelFromBuffer": 1},
    ),
    "ai_edge_litert._pywrap_litert_tensor_buffer_wrapper": _NativeModule(
        _LITERT,
        functions={"WriteTensor": WRITE, "WriteTensorBuffer": WRITE, "ReadTensor": READ, "ReadTensorToBuffer": READ},
    ),
}


class _State(Struct):
    """Who listens, and how what was wrapped is put back."""

    listeners: tuple[Listener, ...] = ()
    undo: list[Callable[[], None]] = field(default_factory=list)


_state: Final = _State()
_changing: Final = threading.Lock()


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """A context in which a listener is called for every call; several may be open, in any order and thread."""
    with _changing:
        if not _state.listeners:
            for name in _MODULES:
                if name in sys.modules:
                    _wrap(sys.modules[name], _MODULES[name])
            sys.meta_path.insert(0, _FINDER)
        _state.listeners += (listener,)
    try:
        yield
    finally:
        with _changing:
            _state.listeners = tuple(other for other in _state.listeners if other is not listener)
            if not _state.listeners:
                _put_everything_back()


def _put_everything_back() -> None:
    if _FINDER in sys.meta_path:
        sys.meta_path.remove(_FINDER)
    for undo in reversed(_state.undo):
        undo()
    _state.undo.clear()


def _forget_listeners() -> None:
    """In a forked child, whose recorders have no thread that writes."""
    _state.listeners = ()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_listeners)


def _wrap(module: ModuleType, native: _NativeModule) -> None:
    owner = getattr(module, native.class_name, None)
    for name, kind in native.methods.items():
        if owner is not None and name in vars(owner):
            _replace(owner, name, functools.partial(_method, native.runtime, kind))
    for name, place in native.opening.items():
        if hasattr(module, name):
            _replace(module, name, functools.partial(_opening, native.runtime, place))
    for name, kind in native.functions.items():
        if hasattr(module, name):
            _replace(module, name, functools.partial(_function, native.runtime, kind))


def _replace(owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
    """Replace an attribute; it is put back at the end unless somebody has replaced ours by then."""
    original = vars(owner)[name]
    own = wrap(original)
    setattr(owner, name, own)

    def undo() -> None:
        if vars(owner).get(name) is own:
            setattr(owner, name, original)

    _state.undo.append(undo)


def _method(runtime: str, kind: str, original: Any) -> Any:
    def method(model: object, *arguments: Any, **keywords: Any) -> Any:
        start_ns, has_failed = time.perf_counter_ns(), True
        try:
            answer = original(model, *arguments, **keywords)
            has_failed = False
            return answer
        finally:
            _report(Call(runtime, kind, model, start_ns, time.perf_counter_ns() - start_ns, has_failed))
            del model  # an interpreter refuses to run while others refer to it, as the traceback of an error would

    return method


def _function(runtime: str, kind: str, original: Any) -> Any:
    def function(*arguments: Any, **keywords: Any) -> Any:
        start_ns, has_failed = time.perf_counter_ns(), True
        try:
            answer = original(*arguments, **keywords)
            has_failed = False
            return answer
        finally:
            _report(Call(runtime, kind, None, start_ns, time.perf_counter_ns() - start_ns, has_failed))

    return function


def _opening(runtime: str, place: int, original: Any) -> Any:
    def function(*arguments: Any, **keywords: Any) -> Any:
        start_ns = time.perf_counter_ns()
        model = original(*arguments, **keywords)
        duration_ns = time.perf_counter_ns() - start_ns
        source = arguments[place] if place < len(arguments) else ""
        _report(Call(runtime, OPEN, model, start_ns, duration_ns, False, source))
        return model

    return function


def _report(call: Call) -> None:
    for listener in _state.listeners:
        listener.called(call)


class _Finder(MetaPathFinder):
    """Finds the native modules as Python does, and has them wrapped once they are imported."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The usual specification with a loader that wraps; None for any other module."""
        spec = PathFinder.find_spec(name, path, target) if name in _MODULES else None
        if spec is not None and spec.loader is not None:
            spec.loader = _WrappingLoader(spec.loader, _MODULES[name])
        return spec


class _WrappingLoader(Loader):
    """Loads as another loader does, and leaves that one as the module's."""

    def __init__(self, usual: Loader, native: _NativeModule) -> None:
        self._usual = usual
        self._native = native

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The usual module."""
        return self._usual.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Execute it, then wrap it if somebody still listens."""
        self._usual.exec_module(module)
        module.__loader__ = self._usual
        if module.__spec__ is not None:
            module.__spec__.loader = self._usual
        with _changing:
            if _state.listeners:
                _wrap(module, self._native)


_FINDER: Final = _Finder()
