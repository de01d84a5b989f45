"""Records the calls of models that the user's own program makes: for a trace, as they come, and summed up.

The classes and functions of the runtimes' native modules are wrapped, and put back at the end. So an interpreter that
was made before is seen, too, and so is a method that was looked up before, or a signature's runner. Runtimes that are
imported meanwhile are wrapped then.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
import weakref
from array import array
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from evaltools.engine.trace import Event, Track
from evaltools.errors import UsageError
from evaltools.result.capture import CallFigures, ModelCalls
from evaltools.runtime.interpreter import DELEGATE_OP, covered_nodes, operators_left, original_operators

OPEN: Final = "open"
ALLOCATE: Final = "allocate"
DELEGATE: Final = "apply delegate"
WRITE: Final = "write input"
INVOKE: Final = "invoke"
READ: Final = "read output"
_CATEGORY: Final = "model"
_NO_INTERPRETER: Final = (AttributeError, IndexError, RuntimeError, TypeError, ValueError)


class _NativeModule(Struct, frozen=True):
    """What is wrapped in a module: methods of a class, and functions, each with the kind of its calls.

    ``opened`` is the place of the argument that says what a function opens.
    """

    runtime: str
    class_name: str = ""
    methods: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)
    opened: int = 0


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
        {"CreateWrapperFromFile": OPEN, "CreateWrapperFromBuffer": OPEN},
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
        dict.fromkeys(("CreateCompiledModelFromFile", "CreateCompiledModelFromBuffer"), OPEN),
        opened=1,
    ),
    "ai_edge_litert._pywrap_litert_tensor_buffer_wrapper": _NativeModule(
        _LITERT,
        functions={"WriteTensor": WRITE, "WriteTensorBuffer": WRITE, "ReadTensor": READ, "ReadTensorToBuffer": READ},
    ),
}


class _Calls(Struct):
    durations_ns: array[int] = field(default_factory=lambda: array("q"))
    failed: int = 0

    def figures(self) -> CallFigures:
        """They are at least one."""
        times = [duration / 1e6 for duration in self.durations_ns]
        return CallFigures(
            len(times), self.failed, sum(times), times[0], statistics.median(times), min(times), max(times)
        )


class _Model(Struct):
    """A model that was seen, or the buffers of a runtime, which belong to no model."""

    name: str
    runtime: str
    calls: dict[str, _Calls] = field(default_factory=dict)
    operators: list[dict[str, Any]] | None = None

    def facts(self) -> ModelCalls:
        """What is known of it."""
        calls = {kind: found.figures() for kind, found in self.calls.items()}
        if self.operators is None:
            return ModelCalls(self.name, self.runtime, calls)
        originals = original_operators(self.operators)
        partitions = [each for each in self.operators if each["op_name"] == DELEGATE_OP]
        covered = frozenset[int]().union(*(covered_nodes(partition, originals) for partition in partitions))
        left = operators_left(originals, covered)
        return ModelCalls(self.name, self.runtime, calls, len(originals), len(covered), left)


class _Call(NamedTuple):
    """A call that has ended: of which kind, in which thread, and when by ``time.perf_counter_ns``.

    It does not refer to the runtime's object: an interpreter refuses to run while others do.
    """

    model: _Model
    thread: str
    kind: str
    start_ns: int
    duration_ns: int
    has_failed: bool


class Recorder:
    """Takes calls from any thread; another thread fetches their events from time to time.

    ``start_ns`` is when the trace begins, by ``time.perf_counter_ns``.
    """

    def __init__(self, process_id: int, start_ns: int) -> None:
        self._process_id = process_id
        self._start_ns = start_ns
        self._known: weakref.WeakKeyDictionary[Any, _Model] = weakref.WeakKeyDictionary()
        self._models: list[_Model] = []
        self._buffers: dict[str, _Model] = {}
        self._adding = threading.RLock()  # a signal may be handled, and call a model, in between
        self._waiting: deque[_Call] = deque()
        self._rows: dict[tuple[int, str], int] = {}

    def called(
        self,
        runtime: str,
        kind: str,
        opened: object | None,
        start_ns: int,
        duration_ns: int,
        has_failed: bool = False,
        source: str | bytes = "",
    ) -> None:
        """Take a call of a model that was ``opened`` from a ``source``; None: of buffers, which belong to no model."""
        with self._adding:
            model = self._model_of(runtime, opened, source)
            calls = model.calls.get(kind)
            if calls is None:
                calls = model.calls[kind] = _Calls()
            calls.durations_ns.append(duration_ns)
            calls.failed += has_failed
            thread = threading.current_thread().name
            self._waiting.append(_Call(model, thread, kind, start_ns, duration_ns, has_failed))
        if kind == INVOKE and len(calls.durations_ns) == 1 and not has_failed:
            model.operators = _operators_of(opened)

    @property
    def waiting(self) -> int:
        """How many calls have come since the last time that their events were fetched."""
        return len(self._waiting)

    def events(self) -> Iterator[Event]:
        """The events of the calls that came since the last time."""
        while self._waiting:
            call = self._waiting.popleft()
            row = (id(call.model), call.thread)
            if row not in self._rows:
                self._rows[row] = len(self._rows) + 1
                yield self._track(row).thread_name(f"{call.model.name} ({call.thread})")
            yield self._event(row, call)

    def models(self) -> list[ModelCalls]:
        """What was called of every model, in the order in which they were called."""
        with self._adding:
            return [model.facts() for model in (*self._models, *self._buffers.values())]

    def _event(self, row: tuple[int, str], call: _Call) -> Event:
        start_ns = max(call.start_ns, self._start_ns)
        duration_ns = call.start_ns + call.duration_ns - start_ns
        facts: Event = {"runtime": call.model.runtime, **({"failed": True} if call.has_failed else {})}
        return self._track(row).complete(call.kind, (start_ns - self._start_ns) / 1000, duration_ns / 1000, facts)

    def _track(self, row: tuple[int, str]) -> Track:
        return Track(self._process_id, self._rows[row], _CATEGORY)

    def _model_of(self, runtime: str, opened: object | None, source: str | bytes) -> _Model:
        if opened is None:
            if runtime not in self._buffers:
                self._buffers[runtime] = _Model("tensor buffers", runtime)
            return self._buffers[runtime]
        model = self._known.get(opened)
        if model is None:
            model = _Model(self._name(source), runtime)
            self._known[opened] = model
            self._models.append(model)
        return model

    def _name(self, source: str | bytes) -> str:
        """The name of a model; models of the same name are numbered."""
        if isinstance(source, str) and source:
            name = os.path.basename(source)
        else:
            name = f"model of {len(source)} bytes" if source else "model opened before"
        same = sum(model.name == name or model.name.startswith(f"{name} #") for model in self._models)
        return f"{name} #{same + 1}" if same else name


def _operators_of(interpreter: Any) -> list[dict[str, Any]] | None:
    """The operators that an interpreter lists, those of delegates behind its own; None for what lists none."""
    try:
        return [
            {
                "index": index,
                "op_name": interpreter.NodeName(index),
                "inputs": interpreter.NodeInputs(index),
                "outputs": interpreter.NodeOutputs(index),
            }
            for index in range(interpreter.NumNodes())
        ]
    except _NO_INTERPRETER:
        return None


_recorders: Final[list[Recorder]] = []
"""The one that gets all calls now, if there is one."""
_replaced: Final[list[tuple[Any, str, Any, Any]]] = []
"""Attributes that were wrapped: whose, the name, what was there before, and what is there now."""
_changing: Final = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_recorders.clear)  # in which no thread writes what is recorded


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """A context in which a recorder gets every call; raises :class:`UsageError` where another one does."""
    with _changing:
        if _recorders:
            raise UsageError("a profile is open in this process already; end it before the next one begins")
        _recorders.append(recorder)
        for name in _MODULES:
            if name in sys.modules:
                _wrap(sys.modules[name], _MODULES[name])
        sys.meta_path.insert(0, _FINDER)
    try:
        yield
    finally:
        with _changing:
            _recorders.clear()
            sys.meta_path.remove(_FINDER)
            for owner, name, original, own in reversed(_replaced):
                if vars(owner).get(name) is own:  # else somebody has replaced ours by now
                    setattr(owner, name, original)
            _replaced.clear()


def _wrap(module: ModuleType, native: _NativeModule) -> None:
    for owner, kinds in ((getattr(module, native.class_name, None), native.methods), (module, native.functions)):
        for name, kind in kinds.items():
            if owner is not None and name in vars(owner):
                original = vars(owner)[name]
                own = _recorded(original, native, kind, is_method=owner is not module)
                setattr(owner, name, own)
                _replaced.append((owner, name, original, own))


def _recorded(original: Any, native: _NativeModule, kind: str, is_method: bool) -> Any:
    def call(*arguments: Any, **keywords: Any) -> Any:
        start_ns, answer, has_failed = time.perf_counter_ns(), None, True
        try:
            answer = original(*arguments, **keywords)
            has_failed = False
            return answer
        finally:
            duration_ns = time.perf_counter_ns() - start_ns
            model = answer if kind == OPEN else arguments[0] if is_method else None
            source = arguments[native.opened] if kind == OPEN and native.opened < len(arguments) else ""
            if kind != OPEN or not has_failed:
                for recorder in _recorders:
                    recorder.called(native.runtime, kind, model, start_ns, duration_ns, has_failed, source)
            del arguments, answer, model  # an interpreter refuses to run while others, as a traceback, refer to it

    return call


class _Finder(MetaPathFinder):
    """Finds the native modules as Python does, and has them wrapped once they are imported."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The usual specification, whose loader wraps what it has loaded; None for any other module."""
        spec = PathFinder.find_spec(name, path, target) if name in _MODULES else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def executed_and_wrapped(module: ModuleType) -> None:
            execute(module)
            with _changing:
                if _recorders:
                    _wrap(module, _MODULES[name])

        spec.loader.exec_module = executed_and_wrapped  # type: ignore[method-assign]
        return spec


_FINDER: Final = _Finder()
