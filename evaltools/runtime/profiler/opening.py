"""Profiles the operators of a model with LiteRT's own profiler, on the CPU.

The runtime is the ``CompiledModel`` of ai-edge-litert, with the kernels of its interpreter. Python has no API of its
profiler, so that this goes through the C API. Call it in a process of its own: a mistake there ends only that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates import TFLITE_RUNTIME
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.metrics.op_profile import OpProfile
from evaltools.model import ModelFile
from evaltools.model.contents import read_contents
from evaltools.runtime.compiled import KERNEL_MODES, VARIABLES
from evaltools.runtime.compiled.messages import first_error
from evaltools.runtime.compiled.source import Source, signature_to_run, source_of
from evaltools.runtime.compiled.xnnpack import weight_cache, xnnpack_flags
from evaltools.runtime.litert import RUNTIME as INTERPRETER
from evaltools.runtime.process.printed import NativeMessages, native_messages
from evaltools.runtime.profiler.events import StrangeEvents, operators_in
from evaltools.runtime.profiler.profiled_model import (
    ELEMENTS,
    CallFailed,
    Event,
    LiteRtLibrary,
    ProfiledModel,
)
from evaltools.runtime.registry import find_runtime
from evaltools.runtime.session import Array

KNOWN_VERSIONS: Final = ("2.3.0",)
"""The versions of ai-edge-litert whose structures are declared in :mod:`evaltools.runtime.profiler.profiled_model`."""
WARM_UP_RUNS: Final = 3
_LEFT_OUT: Final = "leave the profile of operators out"


def profile_operators(model: ModelFile, configuration: Configuration, inputs: Sequence[Array], runs: int) -> OpProfile:
    """Run the model ``runs`` times with the profiler on ``inputs``, in the model's order, and sum up its operators.

    Three runs warm up. Before each profiled run there is one without the profiler, so that what profiling costs shows.
    Raises :class:`~evaltools.errors.ConfigurationUnavailable`, with the reason and what to do, for what the profiler
    cannot see or LiteRT cannot run, and :class:`~evaltools.errors.UsageError` for less than one run.
    """
    if runs < 1:
        raise UsageError(f"{runs} profiled runs; use 1 or more")
    _require_profiler(configuration)
    _require_tensors(model, inputs)
    source = source_of(model)
    loaded = source.loaded if isinstance(source.loaded, bytes) else None
    graphs = read_contents(replace(model, content=loaded)).graphs  # in the file's order, in which the profiler counts
    messages = NativeMessages()
    try:
        with weight_cache(model, configuration) as cache, native_messages() as messages:
            options = _cpu_options(configuration, cache)
            with ProfiledModel(LiteRtLibrary(), source.loaded, options) as compiled:
                _prepare(compiled, model, source, inputs)
                plain_us: list[int] = []
                events = _profiled_runs(compiled, runs, plain_us)
                profile = operators_in(
                    events, graphs, source.graph, f"CompiledModel of {INTERPRETER.package} {INTERPRETER.version()}"
                )
    except (CallFailed, StrangeEvents) as error:
        raise ConfigurationUnavailable(_reason(error, messages.text)) from error
    return replace(profile, plain_us=plain_us)


def _require_profiler(configuration: Configuration) -> None:
    """Refuse what runs with other kernels than the profiler sees, or in delegates that it does not see into."""
    if find_runtime(configuration).name == TFLITE_RUNTIME:
        message = "the profiler is that of ai-edge-litert, and the kernels of tflite_runtime are of another build"
        raise ConfigurationUnavailable(f"{message}; use --runtime=litert, or {_LEFT_OUT}")
    hidden = next((each for each in configuration.delegates.requested if each is not XNNPACK), None)
    if hidden is not None:
        message = (
            f"the profiler sees operators of the CPU and of XNNPACK only, none that the {hidden.name} delegate runs"
        )
        raise ConfigurationUnavailable(f"{message}; profile without --{hidden.enabled_by}, or {_LEFT_OUT}", hidden.name)
    if configuration.kernel_set not in KERNEL_MODES:
        message = f"the profiler has no {configuration.kernel_set} kernels: CompiledModel runs its builtin ones instead"
        raise ConfigurationUnavailable(f"{message}; use --kernels=builtin, or {_LEFT_OUT}")
    version = INTERPRETER.version()
    if version not in KNOWN_VERSIONS:
        known = " or ".join(KNOWN_VERSIONS)
        message = f"the profiler of ai-edge-litert {version} is not known here, only that of {known}"
        raise ConfigurationUnavailable(f"{message}; pip install ai-edge-litert=={KNOWN_VERSIONS[-1]}, or {_LEFT_OUT}")


def _require_tensors(model: ModelFile, inputs: Sequence[Array]) -> None:
    for tensor in (*model.inputs, *model.outputs):
        if tensor.dtype not in ELEMENTS:
            message = f"the profiler has no buffers for {tensor.name or 'a tensor'} of type {tensor.dtype}"
            raise ConfigurationUnavailable(f"{message}; {_LEFT_OUT}")
    wanted = [(tensor.dtype, tensor.shape) for tensor in model.inputs]
    given = [(value.dtype.name, value.shape) for value in inputs]
    if wanted != given:
        raise ConfigurationUnavailable(f"the profiler got inputs {given}, and the model takes {wanted}")


def _cpu_options(configuration: Configuration, cache: str) -> str:
    """LiteRT's CPU options."""
    lines = [f"kernel_mode = {KERNEL_MODES[configuration.kernel_set]}"]
    lines += [f"num_threads = {configuration.num_threads}"] if configuration.num_threads > 0 else []
    flags = xnnpack_flags(configuration)
    lines += [f"flags = {flags}"] if flags is not None else []
    lines += [f'weight_cache_file_path = "{cache}"'] if cache else []
    return "".join(f"{line}\n" for line in lines)


def _prepare(compiled: ProfiledModel, model: ModelFile, source: Source, inputs: Sequence[Array]) -> None:
    signature = signature_to_run(compiled.signatures, model, source)
    if signature is None:
        message = "LiteRT runs signatures, and none of this model has the inputs and outputs of its main graph"
        raise ConfigurationUnavailable(f"{message}; name one with --signature_to_run_for, or {_LEFT_OUT}")
    places = {tensor.index: place for place, tensor in enumerate(model.inputs)}
    outputs = {tensor.index: tensor for tensor in model.outputs}
    compiled.prepare(
        signature,
        [model.inputs[places[index]] for index in signature.inputs],
        [outputs[index] for index in signature.outputs],
    )
    for place, index in enumerate(signature.inputs):
        compiled.write(place, inputs[places[index]])


def _profiled_runs(compiled: ProfiledModel, runs: int, plain_us: list[int]) -> Iterator[list[Event]]:
    """The events of each run; before each there is one without the profiler, whose microseconds are added."""
    for _ in range(WARM_UP_RUNS):
        compiled.run()
    for _ in range(runs):
        plain_us.append(compiled.run())
        yield compiled.profiled_run()


def _reason(error: Exception, printed: str) -> str:
    version = INTERPRETER.version()
    if VARIABLES in printed:
        reason = "CompiledModel takes no variable tensors, in which this model keeps a state"
    elif isinstance(error, StrangeEvents):
        reason = f"the profiler of ai-edge-litert {version} gave what cannot be: {error}"
    else:
        said = first_error(printed)
        reason = f"the profiler of ai-edge-litert {version} cannot run the model: {error}{f': {said}' if said else ''}"
    return f"{reason}; {_LEFT_OUT}"
