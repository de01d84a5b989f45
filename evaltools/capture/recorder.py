"""Records calls of models: for a trace, as they come, and summed up."""

from __future__ import annotations

import os
import statistics
import threading
import weakref
from array import array
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from evaltools.capture.native_calls import INVOKE, Call
from evaltools.engine.trace import Event, Track
from evaltools.result.capture import CallFigures, ModelCalls
from evaltools.runtime.interpreter import DELEGATE_OP, covered_nodes, operators_left, original_operators

_CATEGORY: Final = "model"
_NO_INTERPRETER: Final = (AttributeError, IndexError, RuntimeError, TypeError, ValueError)


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


class _Seen(NamedTuple):
    """A call that was seen, without the runtime's object."""

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
        self._waiting: deque[_Seen] = deque()
        self._rows: dict[tuple[int, str], int] = {}

    def called(self, call: Call) -> None:
        """Take a call."""
        with self._adding:
            model = self._model_of(call)
            calls = model.calls.get(call.kind)
            if calls is None:
                calls = model.calls[call.kind] = _Calls()
            calls.durations_ns.append(call.duration_ns)
            calls.failed += call.has_failed
            thread = threading.current_thread().name
            self._waiting.append(_Seen(model, thread, call.kind, call.start_ns, call.duration_ns, call.has_failed))
        if call.kind == INVOKE and len(calls.durations_ns) == 1 and not call.has_failed:
            model.operators = _operators_of(call.model)

    @property
    def waiting(self) -> int:
        """How many calls have come since the last time that their events were fetched."""
        return len(self._waiting)

    def events(self) -> Iterator[Event]:
        """The events of the calls that came since the last time."""
        while self._waiting:
            seen = self._waiting.popleft()
            row = (id(seen.model), seen.thread)
            if row not in self._rows:
                self._rows[row] = len(self._rows) + 1
                yield self._track(row).thread_name(f"{seen.model.name} ({seen.thread})")
            yield self._event(row, seen)

    def models(self) -> list[ModelCalls]:
        """What was called of every model, in the order in which they were seen."""
        with self._adding:
            return [model.facts() for model in (*self._models, *self._buffers.values())]

    def _event(self, row: tuple[int, str], seen: _Seen) -> Event:
        start_ns = max(seen.start_ns, self._start_ns)
        duration_ns = seen.start_ns + seen.duration_ns - start_ns
        facts: Event = {"runtime": seen.model.runtime, **({"failed": True} if seen.has_failed else {})}
        return self._track(row).complete(seen.kind, (start_ns - self._start_ns) / 1000, duration_ns / 1000, facts)

    def _track(self, row: tuple[int, str]) -> Track:
        return Track(self._process_id, self._rows[row], _CATEGORY)

    def _model_of(self, call: Call) -> _Model:
        if call.model is None:
            if call.runtime not in self._buffers:
                self._buffers[call.runtime] = _Model("tensor buffers", call.runtime)
            return self._buffers[call.runtime]
        model = self._known.get(call.model)
        if model is None:
            model = _Model(self._name(call.source), call.runtime)
            self._known[call.model] = model
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
