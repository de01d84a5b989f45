"""Sessions over ``Interpreter``, the class that tflite-runtime and ai-edge-litert share."""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import os
import platform
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.delegates import Delegate, Library
from evaltools.delegates.external import EXTERNAL
from evaltools.delegates.provider import is_for_another_machine, why_missing
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.errors import ConfigurationUnavailable, InferenceError, UsageError
from evaltools.metrics.op_profile import Opening
from evaltools.model import ModelFile
from evaltools.runtime.delegation import DelegateCoverage, Delegation
from evaltools.runtime.registry import require_support
from evaltools.runtime.session import Array, Inference, RuntimeFacts, TensorSpec
from evaltools.signals import deferred_interrupt

_LONGEST_REASON: Final = 1000
_RESOLVERS: Final = {
    "default": "AUTO",
    "builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "reference": "BUILTIN_REF",
}
DELEGATE_OP: Final = "DELEGATE"
Operator = Mapping[str, Any]


class InterpreterRuntime(Struct, frozen=True):
    """A Python package with an ``Interpreter`` class.

    ``check`` gets the installed version and raises :class:`ConfigurationUnavailable` for an installation that is known
    to be broken.
    """

    name: str
    package: str
    module: str
    install: str
    check: Callable[[str], None] = lambda _version: None

    def open(self, model: ModelFile, configuration: Configuration) -> InterpreterSession:
        """Load the model, apply the delegates, allocate the tensors.

        Raises :class:`ConfigurationUnavailable`, and :class:`UsageError` for a delegate's library that does not exist.
        """
        require_support(configuration, self.name)
        _require_order(configuration)
        laps = _Laps()
        version = self.version()
        library = self._library(version)
        facts = RuntimeFacts(self.name, self.package, version, configuration.kernel_set)
        laps.end("import")
        externals = _load_externals(library, configuration)
        applying = "delegates" if externals else "load"
        laps.end(applying)
        suspect: Delegate | None = None
        try:
            interpreter = library.Interpreter(
                **_model_argument(model),
                num_threads=None if configuration.num_threads == -1 else configuration.num_threads,
                experimental_op_resolver_type=getattr(library.OpResolverType, _RESOLVERS[facts.kernels]),
                experimental_preserve_all_tensors=configuration.keeps_tensors,
            )
            laps.end("load")
            interpreter._delegates = [external for _, external in externals]  # they must outlive it
            ends = []
            for suspect, external in externals:
                interpreter._interpreter.ModifyGraphWithDelegate(external._get_native_delegate_pointer())
                ends.append((suspect, len(interpreter._get_ops_details())))
            laps.end(applying)
            for detail, tensor in zip(interpreter.get_input_details(), model.inputs, strict=True):
                if tuple(detail["shape"]) != tensor.shape:
                    interpreter.resize_tensor_input(detail["index"], tensor.shape)
            interpreter.allocate_tensors()
            laps.end("allocate")
            delegation = _delegation(interpreter, ends, configuration)
            return InterpreterSession(interpreter, facts, delegation, laps.opening(), configuration.keeps_tensors)
        except (ValueError, RuntimeError, SystemError, TypeError, MemoryError) as error:
            message = _load_failure(facts, configuration, suspect, error)
            raise ConfigurationUnavailable(message, suspect.name if suspect else "") from error

    def version(self) -> str:
        """The installed version of the package."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            message = f"the runtime {self.name} is not installed; {self.install}"
            raise ConfigurationUnavailable(message, cannot_exist=True) from None

    def _library(self, version: str) -> ModuleType:
        self.check(version)
        try:
            with deferred_interrupt():
                return importlib.import_module(self.module)
        except Exception as error:  # a broken native extension raises ImportError, AttributeError, SystemError, ...
            message = f"{self.package} {version} is installed but cannot be imported: {error}; {self.install}"
            raise ConfigurationUnavailable(message) from error


class InterpreterSession:
    """A session with one interpreter. One thread uses it at a time, and nobody after ``close``."""

    def __init__(
        self,
        interpreter: Any,
        facts: RuntimeFacts,
        delegation: Delegation,
        opening: Opening,
        keeps_tensors: bool = False,
    ) -> None:
        self._interpreter = interpreter
        self._reported = ""
        self.facts: Final = facts
        self.delegation: Final = delegation
        self.opening: Final = opening
        inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
        self._input_indices = [detail["index"] for detail in inputs]
        self._output_indices = [detail["index"] for detail in outputs]
        self.inputs: Final = _specs(inputs)
        self.outputs: Final = _specs(outputs)
        self._inside = _floats_inside(interpreter) if keeps_tensors else []

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Set the inputs, invoke, copy the outputs."""
        try:
            for index, value in zip(self._input_indices, inputs, strict=True):
                self._interpreter.set_tensor(index, value)
            invokes_us = tuple(self._timed_invoke() for _ in range(invocations))
            start = time.perf_counter_ns()
            outputs = tuple(self._interpreter.get_tensor(index) for index in self._output_indices)
            read_us = (time.perf_counter_ns() - start) / 1000
            largest = max((_largest(self._interpreter.get_tensor(index)) for index in self._inside), default=0.0)
        except (ValueError, RuntimeError, MemoryError) as error:
            raise InferenceError(f"{self.facts.package} {self.facts.version}: {self._newly_reported(error)}") from error
        self._require_types(outputs)
        return Inference(outputs, invokes_us, read_us, largest)

    def _require_types(self, outputs: Sequence[Array]) -> None:
        """Raise :class:`InferenceError` where a delegate has made an output of another type than the model's."""
        for spec, output in zip(self.outputs, outputs, strict=True):
            now, before = _type_name(output.dtype), _type_name(spec.dtype)
            if now != before:
                raise InferenceError(
                    f"the output {spec.name} is of type {now} after the run, and was {before} when the model was "
                    "loaded: a delegate must not change it"
                )

    def _timed_invoke(self) -> float:
        start = time.perf_counter_ns()
        self._interpreter.invoke()
        return (time.perf_counter_ns() - start) / 1000

    def _newly_reported(self, error: Exception) -> str:
        """The text of an error; the runtimes repeat the texts of all earlier errors in front of it."""
        text = str(error)
        new = text.removeprefix(self._reported) or text
        if isinstance(error, RuntimeError):
            self._reported = text
        return _one_line(new)

    def close(self) -> None:
        """Release the interpreter; its delegates, which must outlive it, go with it."""
        self._interpreter = None


class _Laps:
    """Measures how long each part of an opening takes; a part may come in several pieces."""

    def __init__(self) -> None:
        self._parts: Counter[str] = Counter()
        self._last = time.perf_counter_ns()

    def end(self, part: str) -> None:
        """End a piece of a part: the time since the last end is added to this part."""
        now = time.perf_counter_ns()
        self._parts[part] += (now - self._last) // 1000
        self._last = now

    def opening(self) -> Opening:
        """The times of all parts."""
        load, delegates, allocate = (self._parts[part] for part in ("load", "delegates", "allocate"))
        return Opening(self._parts["import"], load + delegates + allocate, load, delegates, allocate)


def _model_argument(model: ModelFile) -> dict[str, Any]:
    source = model.source()
    return {"model_path" if isinstance(source, str) else "model_content": source}


def _require_order(configuration: Configuration) -> None:
    requested = configuration.delegates.requested
    behind = requested[requested.index(XNNPACK) :] if XNNPACK in requested else ()
    late = next((delegate for delegate in behind if delegate.library), None)
    if late is not None:
        message = (
            "the Python interpreters apply XNNPACK after external delegates, but --use_xnnpack=true stands before "
            f"--{late.enabled_by}; put --{late.enabled_by} first"
        )
        raise ConfigurationUnavailable(message, late.name)


def _load_externals(library: ModuleType, configuration: Configuration) -> list[tuple[Delegate, Any]]:
    """The external delegates that were asked for, in order, each with the runtime's object for it."""
    settings = configuration.delegates
    return [
        (
            each,
            _load_external(library, each, _named(configuration, each), each.library(settings.effective_options(each))),
        )
        for each in settings.requested
        if each.library is not None
    ]


def _named(configuration: Configuration, delegate: Delegate) -> str:
    """The name of a delegate with a library, for messages; one library may give several external delegates."""
    if delegate.enabled_by != EXTERNAL.enabled_by:
        return f"the {delegate.name} delegate"
    path = str(configuration.delegates.values_of(delegate)[EXTERNAL.enabled_by])
    is_one_of_several = len(configuration.delegates.values(EXTERNAL.enabled_by)) > 1 or delegate.number > 1
    return f"the external delegate {f'{delegate.name} ({path})' if is_one_of_several else path}"


def _load_external(library: ModuleType, delegate: Delegate, named: str, own: Library) -> Any:
    library_path = str(Path(own.path).resolve())
    _require_delegate_library(delegate, own.path, library_path)
    try:
        return library.load_delegate(library_path, dict(own.options))
    except ValueError as error:
        reason = _one_line(error).removeprefix(f"Failed to load delegate from {library_path}").strip()
        message = f"{named} refused to be created: {reason or 'it gave no reason'}"
        raise ConfigurationUnavailable(message, delegate.name) from error


def _require_delegate_library(delegate: Delegate, path: str, library_path: str) -> None:
    """Raise where the library or its function is missing; ``load_delegate`` would print a traceback of its own."""
    is_typed = delegate.enabled_by == EXTERNAL.enabled_by
    shown = f"--{EXTERNAL.enabled_by}={path}" if is_typed else f"the {delegate.name} delegate: its library {path}"
    if not os.path.isfile(path):
        problem = why_missing(path)
        if is_typed:
            raise UsageError(f"{shown}: {problem}")
        raise ConfigurationUnavailable(
            f"{shown}: {problem}; install the package anew that brings the delegate", delegate.name
        )
    if is_for_another_machine(Path(library_path)):
        raise ConfigurationUnavailable(
            f"{shown} is built for another processor than this computer's ({platform.machine()}): evaltools device run "
            "runs it on a device, and one that is built for this computer runs here",
            delegate.name,
        )
    try:
        exported = ctypes.CDLL(library_path)
    except OSError as error:
        raise ConfigurationUnavailable(f"{shown} cannot be loaded: {error}", delegate.name) from error
    for symbol in ("tflite_plugin_create_delegate", "tflite_plugin_destroy_delegate"):
        if not hasattr(exported, symbol):
            message = f"{shown} is not a TensorFlow Lite delegate: it does not export {symbol}"
            raise ConfigurationUnavailable(message, delegate.name)


def _load_failure(facts: RuntimeFacts, configuration: Configuration, suspect: Delegate | None, error: Exception) -> str:
    cause = "" if suspect is None else f"with {_named(configuration, suspect)} "
    reason = "there is not enough memory" if isinstance(error, MemoryError) else _one_line(error)
    if not reason:
        reason = "no reason given; a delegate may refuse models with dynamic tensors, which gives no text"
    return f"{facts.package} {facts.version} cannot load the model {cause}({facts.kernels} kernels): {reason}"


def _one_line(error: Exception | str) -> str:
    """A text in one line; the runtimes join a delegate's words and their own without a space."""
    text = re.sub(r"(?<=\S)(?=Node number \d|Restored original)", ". ", str(error))
    return " ".join(text.split())[:_LONGEST_REASON]


def _delegation(interpreter: Any, ends: Sequence[tuple[Delegate, int]], configuration: Configuration) -> Delegation:
    """What each delegate took.

    ``ends`` says how many operators were listed after each external delegate; XNNPACK, by default too, is applied when
    tensors are allocated.
    """
    operators = interpreter._get_ops_details()
    originals = original_operators(operators)
    requested = configuration.delegates.requested
    covered: frozenset[int] = frozenset()
    delegates = []
    start = len(originals)
    for delegate, end in (*ends, (XNNPACK, len(operators))):
        group, start = operators[start:end], end
        nodes = frozenset().union(*(covered_nodes(partition, originals) for partition in group)) - covered
        covered |= nodes
        if delegate in requested or group:
            is_requested = delegate in requested
            delegates.append(DelegateCoverage(delegate.name, is_requested, len(nodes), len(group), operators=nodes))
    return Delegation(len(originals), tuple(delegates), operators_left(originals, covered))


def _floats_inside(interpreter: Any) -> list[int]:
    """The tensors of floats that operators give."""
    given = {int(tensor) for operator in interpreter._get_ops_details() for tensor in operator["outputs"]}
    details = interpreter.get_tensor_details()
    return [detail["index"] for detail in details if detail["index"] in given and detail["dtype"] is np.float32]


def _largest(values: Array) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _specs(details: Sequence[dict[str, Any]]) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(detail["name"], np.dtype(detail["dtype"]), tuple(int(size) for size in detail["shape"]))
        for detail in details
    )


def _type_name(dtype: np.dtype[Any]) -> str:
    """The name of a type; texts are objects as soon as there are some."""
    return "string" if dtype.kind in "SO" else dtype.name


def original_operators(operators: Sequence[Operator]) -> list[Operator]:
    """The nodes of the model itself."""
    return [operator for operator in operators if operator["op_name"] != DELEGATE_OP]


def covered_nodes(partition: Operator, originals: Sequence[Operator]) -> frozenset[int]:
    """Indices of the original nodes that one partition replaced.

    After a delegate is applied the interpreter still lists the original nodes, followed by one ``DELEGATE`` entry per
    partition. A partition covers the producers of its outputs, backwards until its inputs.

    >>> first = {"index": 0, "op_name": "ADD", "inputs": [0, 0], "outputs": [1]}
    >>> second = {"index": 1, "op_name": "MUL", "inputs": [1, 0], "outputs": [2]}
    >>> sorted(covered_nodes({"index": 2, "op_name": "DELEGATE", "inputs": [0], "outputs": [2]}, [first, second]))
    [0, 1]
    """
    producers = {int(tensor): operator for operator in originals for tensor in operator["outputs"]}
    boundary = {int(tensor) for tensor in partition["inputs"]}
    open_tensors = [int(tensor) for tensor in partition["outputs"]]
    covered: set[int] = set()
    while open_tensors:
        tensor = open_tensors.pop()
        producer = producers.get(tensor)
        if producer is None or tensor in boundary or producer["index"] in covered:
            continue
        covered.add(int(producer["index"]))
        open_tensors.extend(int(source) for source in producer["inputs"] if source >= 0)
    return frozenset(covered)


def operators_left(originals: Sequence[Operator], covered: frozenset[int]) -> dict[str, int]:
    """Operators that stayed on the CPU, most frequent first."""
    names = Counter(str(operator["op_name"]) for operator in originals if operator["index"] not in covered)
    return dict(names.most_common())
