"""LiteRT's ``CompiledModel`` of ai-edge-litert: CPU with XNNPACK's options, GPU through WebGPU, NPUs."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates import COMPILED
from evaltools.delegates.gpu import GPU
from evaltools.delegates.npu import NPU
from evaltools.delegates.provider import Delegate
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.errors import ConfigurationUnavailable, InferenceError
from evaltools.metrics.op_profile import Opening
from evaltools.model import ModelFile
from evaltools.runtime.compiled import gpu as compiled_gpu
from evaltools.runtime.compiled import npu as compiled_npu
from evaltools.runtime.compiled.messages import first_error
from evaltools.runtime.compiled.proof import NotProven, Printed, prove
from evaltools.runtime.compiled.source import Signature, Source, signature_to_run, source_of
from evaltools.runtime.compiled.xnnpack import fp16_without_effect, weight_cache, xnnpack_flags
from evaltools.runtime.delegation import Delegation
from evaltools.runtime.litert import RUNTIME as INTERPRETER
from evaltools.runtime.process.printed import native_messages
from evaltools.runtime.registry import require_support
from evaltools.runtime.session import Array, Inference, RuntimeFacts, TensorSpec
from evaltools.signals import deferred_interrupt

_PACKAGE: Final = "ai_edge_litert"
_ACCELERATORS: Final = {GPU.name: compiled_gpu, NPU.name: compiled_npu}
KERNEL_MODES: Final = {"default": 0, "builtin": 2}
"""By number: the first is called XNNPACK up to ai-edge-litert 2.1, and DELEGATE from 2.2 on."""
_READABLE: Final = frozenset({"float32", "float16", "int8", "uint8", "int32", "bool"})
_NOT_ALL_TAKEN: Final = "Some ops are not accelerated"
VARIABLES: Final = "Variable tensors not yet supported"


class CompiledRuntime(Struct, frozen=True):
    """Opens models with ``CompiledModel``."""

    name: str = COMPILED

    def open(self, model: ModelFile, configuration: Configuration) -> CompiledSession:
        """Compile the model; raises :class:`ConfigurationUnavailable`.

        An accelerator is asked to take the model alone first. Where it does not take everything, the CPU has the rest.
        """
        require_support(configuration, self.name)
        accelerator = _accelerator(configuration)
        _require_kernels(configuration, accelerator)
        _require_own_buffers(model, accelerator)
        _require_readable(model, accelerator)
        with weight_cache(model, configuration) as cache:
            return self._opened(model, configuration, accelerator, cache)

    def _opened(
        self, model: ModelFile, configuration: Configuration, accelerator: Delegate | None, cache: str
    ) -> CompiledSession:
        start_ns = time.perf_counter_ns()
        library = _library()
        imported = time.perf_counter_ns()
        facts = RuntimeFacts(self.name, INTERPRETER.package, INTERPRETER.version(), configuration.kernel_set)
        source = source_of(model)
        alone = accelerator is not None
        while True:
            compiled_from = time.perf_counter_ns()
            with native_messages() as compiling:
                compiled, error = _compile(library, source, configuration, cache, alone)
            if compiled is not None:
                break
            if not (alone and _NOT_ALL_TAKEN in str(error)):
                raise _unavailable(facts, accelerator, compiling.text, error)
            alone = False
        try:
            with native_messages() as preparing:
                session = CompiledSession(compiled, model, source, facts, accelerator)
        except (ValueError, RuntimeError, TypeError) as caught:
            raise _unavailable(facts, accelerator, compiling.text + preparing.text, caught) from caught
        with native_messages() as running:
            session.warm_up()
        session.opening = Opening((imported - start_ns) // 1000, (time.perf_counter_ns() - compiled_from) // 1000)
        printed = Printed(compiling.text, preparing.text, running.text, session.was_resized)
        try:
            proof = prove(model, configuration, accelerator, alone, source, printed)
            session.delegation = replace(proof, without_effect=fp16_without_effect(model, configuration))
        except NotProven as caught:
            session.close()
            raise _unavailable(facts, accelerator, printed.whole, caught) from caught
        return session


class _Slot(Struct, frozen=True):
    """An input or output of a signature, and its place among the buffers."""

    spec: TensorSpec
    place: int


class CompiledSession:
    """One compiled model with its buffers; used by one thread at a time, and not after ``close``."""

    def __init__(
        self, compiled: Any, model: ModelFile, source: Source, facts: RuntimeFacts, accelerator: Delegate | None
    ) -> None:
        self.facts: Final = facts
        self.delegation = Delegation(model.node_count, (), {})
        self.opening = Opening(0, 0)
        self._compiled = compiled
        self._accelerator = accelerator
        self._may_run_on_zeros = not model.stateful and not source.loops
        self._signature, inputs, outputs = _signature_of(compiled, model, source, accelerator)
        wrong = [(slot.place, tensor.shape) for tensor, slot in zip(model.inputs, inputs, strict=True)
                 if tensor.shape != slot.spec.shape]  # fmt: skip
        for place, shape in wrong:
            compiled.resize_input_tensor(place, shape, self._signature, strict=False)
        self.was_resized: Final = bool(wrong)
        if wrong:
            self._signature, inputs, outputs = _signature_of(compiled, model, source, accelerator)
        self.inputs: Final = tuple(slot.spec for slot in inputs)
        self.outputs: Final = tuple(slot.spec for slot in outputs)
        self._input_places = [slot.place for slot in inputs]
        self._output_places = [slot.place for slot in outputs]
        self._input_buffers = compiled.create_input_buffers(self._signature)
        self._output_buffers = compiled.create_output_buffers(self._signature)

    def warm_up(self) -> None:
        """Run once on zeros, for accelerators compile their programs with the first run.

        That is left to the first inputs where zeros would change a state, or may keep a loop running for ever.
        """
        if self._accelerator is None or not self._may_run_on_zeros:
            return
        try:
            self.run([np.zeros(spec.shape, spec.dtype) for spec in self.inputs])
        except InferenceError as error:
            message = f"its first run, on zeros, failed: {error}"
            raise ConfigurationUnavailable(message, self._accelerator.name) from error

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Write the inputs, run, read the outputs."""
        try:
            for place, value, spec in zip(self._input_places, inputs, self.inputs, strict=True):
                if (value.shape, value.dtype) != (spec.shape, spec.dtype):
                    raise ValueError(f"{spec.name} takes {spec.dtype}{spec.shape}, got {value.dtype}{value.shape}")
                self._input_buffers[place].write(np.ascontiguousarray(value))
            invokes_us = tuple(self._timed_run() for _ in range(invocations))
            start = time.perf_counter_ns()
            outputs = tuple(
                self._read(place, spec) for place, spec in zip(self._output_places, self.outputs, strict=True)
            )
            read_us = (time.perf_counter_ns() - start) / 1000
        except (ValueError, RuntimeError, MemoryError) as error:
            reason = " ".join(str(error).split())
            raise InferenceError(f"{self.facts.package} {self.facts.version}: {reason}") from error
        return Inference(outputs, invokes_us, read_us)

    def close(self) -> None:
        """Release buffers, then the model they belong to."""
        self._input_buffers = self._output_buffers = []
        self._compiled = None

    def _timed_run(self) -> float:
        start = time.perf_counter_ns()
        self._compiled.run_by_index(self._signature, self._input_buffers, self._output_buffers)
        return (time.perf_counter_ns() - start) / 1000

    def _read(self, place: int, spec: TensorSpec) -> Array:
        count = int(np.prod(spec.shape, dtype=np.int64))
        values: Array = np.asarray(self._output_buffers[place].read(count, spec.dtype)).reshape(spec.shape)
        return values


def _library() -> ModuleType:
    version = INTERPRETER.version()
    try:
        with deferred_interrupt():
            library = importlib.import_module(f"{_PACKAGE}.compiled_model")
    except Exception as error:  # a broken native extension raises ImportError, AttributeError, SystemError, ...
        message = f"ai-edge-litert {version} has no CompiledModel that can be imported: {error}; {INTERPRETER.install}"
        raise ConfigurationUnavailable(message) from error
    if not hasattr(library, "Options"):
        raise ConfigurationUnavailable(
            f"the CompiledModel of ai-edge-litert {version} has no options; take 2.1.5 or later"
        )
    return library


def _accelerator(configuration: Configuration) -> Delegate | None:
    asked_for = [delegate for delegate in configuration.delegates.requested if delegate.name in _ACCELERATORS]
    if len(asked_for) > 1:
        names = " and ".join(delegate.name for delegate in asked_for)
        raise ConfigurationUnavailable(f"{names} at once are not supported; ask for one of them", asked_for[1].name)
    if asked_for and configuration.xnnpack:
        message = (
            f"beside the {asked_for[0].name}, CompiledModel applies XNNPACK to the rest by itself and does not tell "
            "what it took; leave --use_xnnpack=true out (false keeps XNNPACK out)"
        )
        raise ConfigurationUnavailable(message, XNNPACK.name)
    return asked_for[0] if asked_for else None


def _require_own_buffers(model: ModelFile, accelerator: Delegate | None) -> None:
    """An output that is an input as well has two buffers, of which the runtime writes only one."""
    inputs = {tensor.index for tensor in model.inputs}
    shared = [tensor.name for tensor in model.outputs if tensor.index in inputs]
    if shared:
        message = f"CompiledModel never writes the output {shared[0]}, which is an input of the model too"
        raise ConfigurationUnavailable(f"{message}; {_next_step(accelerator)}", _name_of(accelerator))


def _require_readable(model: ModelFile, accelerator: Delegate | None) -> None:
    for tensor in (*model.inputs, *model.outputs):
        if tensor.dtype not in _READABLE:
            message = f"the Python CompiledModel cannot read or write the tensor {tensor.name} of type {tensor.dtype}"
            raise ConfigurationUnavailable(f"{message}; {_next_step(accelerator)}", _name_of(accelerator))


def _require_kernels(configuration: Configuration, accelerator: Delegate | None) -> None:
    if configuration.kernel_set != "reference":
        return
    message = "the CompiledModel of ai-edge-litert runs its builtin kernels where the reference kernels are asked for"
    if accelerator is None:
        raise ConfigurationUnavailable(f"{message}; use --runtime=litert --kernels=reference")
    message = f"{message}, and no other Python runtime has the {accelerator.name}; leave --kernels=reference out"
    raise ConfigurationUnavailable(message, cannot_exist=True)


def _name_of(accelerator: Delegate | None) -> str:
    return accelerator.name if accelerator else ""


def _next_step(accelerator: Delegate | None) -> str:
    """What to do about a model that CompiledModel cannot run."""
    if accelerator is None:
        return "use --runtime=litert"
    return (
        f"no other Python runtime has the {accelerator.name}, which therefore cannot run this model here; "
        f"--runtime=litert without --{accelerator.enabled_by} runs it on the CPU"
    )


def _compile(
    library: ModuleType, source: Source, configuration: Configuration, cache: str, alone: bool
) -> tuple[Any, Exception | None]:
    """The compiled model, or why there is none; ``alone``: the accelerator must take all."""
    accelerator = _accelerator(configuration)
    wanted = library.HardwareAccelerator[accelerator.name] if accelerator else library.HardwareAccelerator.CPU
    if not alone:
        wanted |= library.HardwareAccelerator.CPU
    options = library.Options(hardware_accelerators=wanted, cpu_options=_cpu_options(library, configuration, cache))
    module = _ACCELERATORS[accelerator.name] if accelerator else None
    try:
        if module is not None:
            module.set_options(options, configuration)
        environment = library.Environment.create(
            options=library.EnvironmentOptions(**(module.environment(configuration.delegates) if module else _no_npu()))
        )
        model = library.CompiledModel
        load = model.from_file if isinstance(source.loaded, str) else model.from_buffer
        return load(source.loaded, options=options, environment=environment), None
    except (ValueError, RuntimeError, SystemError, TypeError, MemoryError) as error:
        return None, error


def _cpu_options(library: ModuleType, configuration: Configuration, cache: str) -> Any:
    return library.CpuOptions(
        num_threads=max(0, configuration.num_threads),
        kernel_mode=library.CpuKernelMode(KERNEL_MODES[configuration.kernel_set]),
        xnnpack_flags=xnnpack_flags(configuration),
        xnnpack_weight_cache_path=cache,
    )


def _no_npu() -> Mapping[str, str]:
    """Folders without libraries, so that those of NPU vendors are not loaded for nothing."""
    return compiled_gpu.environment(None)


def _unavailable(
    facts: RuntimeFacts, accelerator: Delegate | None, messages: str, error: Exception | None
) -> ConfigurationUnavailable:
    reason = str(error).replace("└", " ")
    if VARIABLES in messages:
        reason = (
            f"CompiledModel takes no variable tensors, in which this model keeps a state; {_next_step(accelerator)}"
        )
    elif accelerator is not None:
        reason = _ACCELERATORS[accelerator.name].explain(f"{messages}\n{reason}") or reason
    elif first_error(messages):
        reason = f"{reason}: {first_error(messages)}; --runtime=litert may be able to"
    name = f"{accelerator.name} " if accelerator else ""
    return ConfigurationUnavailable(
        f"{facts.package} {facts.version} {name}cannot run the model: {' '.join(reason.split())}", _name_of(accelerator)
    )


def _signature_of(
    compiled: Any, model: ModelFile, source: Source, accelerator: Delegate | None
) -> tuple[int, list[_Slot], list[_Slot]]:
    """The number of the signature that is run, with its inputs and outputs in the model's order."""
    slots = {
        key: (
            _slots(names["inputs"], compiled.get_input_tensor_details(key)),
            _slots(names["outputs"], compiled.get_output_tensor_details(key)),
        )
        for key, names in compiled.get_signature_list().items()
    }
    signatures = (Signature(number, key, *map(tuple, sides)) for number, (key, sides) in enumerate(slots.items()))
    signature = signature_to_run(signatures, model, source)
    if signature is None:
        message = "CompiledModel runs signatures, and none of this model has the inputs and outputs of its main graph"
        message = f"{message}; name one with --signature, or {_next_step(accelerator)}"
        raise ConfigurationUnavailable(message, _name_of(accelerator))
    inputs, outputs = slots[signature.key]
    return (
        signature.number,
        [inputs[tensor.index] for tensor in model.inputs],
        [outputs[tensor.index] for tensor in model.outputs],
    )


def _slots(names: Sequence[str], details: Mapping[str, Mapping[str, Any]]) -> dict[int, _Slot]:
    """The slots of one side of a signature, in the order of its buffers, by their tensors."""
    found = {}
    for place, name in enumerate(names):
        detail = details[name]
        shape = tuple(int(size) for size in detail["shape"])
        found[int(detail["index"])] = _Slot(TensorSpec(detail["name"], np.dtype(detail["dtype"]), shape), place)
    return found


RUNTIME: Final = CompiledRuntime()
