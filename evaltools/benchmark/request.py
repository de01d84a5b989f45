"""The request of a benchmark: models, configurations, and how they are measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from evaltools.benchmark.input_layers import InputLayer, read_layers
from evaltools.benchmark.inputs import make_inputs, with_input_shapes
from evaltools.benchmark.loop import PhaseLimits, RunPace
from evaltools.benchmark.matrix import NONE, optional_names, overruled_flags
from evaltools.configuration import CONFIGURATION_PARAMETERS, NATIVE_BINARY, Configuration
from evaltools.delegates.external import EXTERNAL
from evaltools.delegates.provider import library_file, why_missing
from evaltools.errors import UsageError
from evaltools.model import ModelFile, read_model
from evaltools.request import Options, Request
from evaltools.runtime.registry import require_memory
from evaltools.runtime.session import Array

Inputs = tuple[Array, ...]
_ROUNDS_OF_SEVERAL: Final = 3
_MOST_ROUNDS: Final = 1000


class BenchmarkOptions(Struct, frozen=True):
    """How every model is measured with every configuration.

    ``dry_run`` opens the model and runs nothing. ``memory_interval_ms`` None: peak memory is not watched. ``rounds`` is
    the number of measurements of each configuration, each in a fresh process. In a round the configurations take turns,
    ``delay_s`` before each; with ``shuffle`` every round has an order of its own. ``profile_runs`` 0: operators are not
    profiled. ``timeout_s`` limits the opening, and each run beyond the time of its phase.
    """

    warm_up: PhaseLimits
    regular: PhaseLimits
    pace: RunPace = field(default_factory=RunPace)
    dry_run: bool = False
    layers: tuple[InputLayer, ...] = ()
    memory_interval_ms: int | None = None
    rounds: int = 1
    shuffle: bool = False
    delay_s: float = -1.0
    profile_runs: int = 0
    keep_outputs: bool = False
    allow_fallback: bool = False
    require_full_delegation: bool = False
    timeout_s: float = 300.0

    @property
    def phases(self) -> tuple[PhaseLimits, PhaseLimits]:
        """The limits of warm-up and regular runs; both are empty in a dry run."""
        if self.dry_run:
            none = PhaseLimits(0, -1.0, self.regular.max_secs)
            return none, none
        return self.warm_up, self.regular


class Candidate(Struct, frozen=True):
    """A model with a configuration. ``model`` has the shapes that are run; ``model_number`` is its place."""

    model_number: int
    model: ModelFile
    configuration: Configuration


class BenchmarkRequest(Struct, frozen=True):
    """Everything that a benchmark measures.

    ``inputs`` and ``notes`` have one entry per model; ``warnings`` are about the request as a whole. ``may_be_missing``
    are the names of configurations that the machine need not have, so that it is not a failure if they cannot run.
    ``uses_list``: some configurations come from the native tool's list of options.
    """

    models: tuple[ModelFile, ...]
    inputs: tuple[Inputs, ...]
    notes: tuple[tuple[str, ...], ...]
    configurations: tuple[Configuration, ...]
    options: BenchmarkOptions
    warnings: tuple[str, ...]
    uses_list: bool
    may_be_missing: frozenset[str]

    @property
    def candidates(self) -> list[Candidate]:
        """Every model with every configuration."""
        return [
            Candidate(number, model, configuration)
            for number, model in enumerate(self.models)
            for configuration in self.configurations
        ]


def read_request(request: Request, libraries_on_host: bool = True) -> BenchmarkRequest:
    """Check the options and read the models; raises :class:`UsageError` and its kinds.

    ``libraries_on_host``: the libraries of external delegates must be on the host, else they are on devices.
    """
    flags, configurations = request.options, request.tests
    _require_no_program(configurations)
    if libraries_on_host:
        _require_libraries(configurations)
    paths = _model_paths(flags)
    is_one = len(paths) * len(configurations) == 1
    if is_one and "option_benchmark_run_delay" in flags:
        raise UsageError("--option_benchmark_run_delay has no effect on a single configuration; leave it out")
    options = _options(flags, is_one)
    models, inputs, notes = [], [], []
    for path in paths:
        model, shape_notes = with_input_shapes(_model(path, flags.text("signature_to_run_for")), options.layers)
        require_memory(model)
        values, value_notes = make_inputs(model, options.layers)
        models.append(model)
        inputs.append(values)
        notes.append((*shape_notes, *value_notes))
    listed = flags.text("perf_options_list")
    return BenchmarkRequest(
        models=tuple(models),
        inputs=tuple(inputs),
        notes=tuple(notes),
        configurations=configurations,
        options=options,
        warnings=tuple(
            f"--{name} is overruled by --perf_options_list, which sets it anew"
            for name in overruled_flags(listed, [name for name in flags.stated if name in CONFIGURATION_PARAMETERS])
        ),
        uses_list=listed != NONE,
        may_be_missing=optional_names(listed, configurations),
    )


def _model_paths(flags: Options) -> list[Path]:
    paths = [Path(text) for text in flags.texts("graph")]
    if any(not text for text in flags.texts("graph")):
        raise UsageError("--graph is empty; give a .tflite file")
    resolved = [path.resolve() for path in paths]
    twice = next((path for path in paths if resolved.count(path.resolve()) > 1), None)
    if twice is not None:
        raise UsageError(f"--graph={twice} is given twice; --rounds=N measures it again, --config with other flags")
    return paths


def _model(path: Path, signature: str) -> ModelFile:
    """The model of a file, with the signature that is run.

    Raises :class:`UsageError` if it has several and none is named.
    """
    model = read_model(path)
    if signature in model.signatures or (not signature and len(model.signatures) < 2):
        return read_model(path, signature) if signature else model
    keys = ", ".join(model.signatures)
    if not keys:
        raise UsageError(f"--signature_to_run_for={signature}: {path} has no signature; leave the flag out")
    message = 'Signature not specified or incorrect. Pass one of the following to the flag "--signature_to_run_for"'
    raise UsageError(f"{path}: {message}: {keys}" + (f"; it was given {signature!r}" if signature else ""))


def _require_no_program(configurations: Sequence[Configuration]) -> None:
    for configuration in configurations:
        if configuration.native_binary:
            raise UsageError(
                f"configuration {configuration.name!r}: --{NATIVE_BINARY}={configuration.native_binary} measures by "
                "itself, and would be started anew for each run here; evaltools device run benchmark MODEL.tflite "
                f"--{NATIVE_BINARY}=PATH starts it once on a device and reads what it prints"
            )


def _require_libraries(configurations: Sequence[Configuration]) -> None:
    for configuration in configurations:
        for path in map(str, configuration.delegates.values(EXTERNAL.enabled_by)):
            if not Path(library_file(path)).is_file():
                quoted = f"configuration {configuration.name!r}"
                raise UsageError(f"{quoted}: --{EXTERNAL.enabled_by}={path}: {why_missing(path)}")


def _options(flags: Options, is_one: bool) -> BenchmarkOptions:
    rounds = flags.number("rounds")
    if not 0 <= rounds <= _MOST_ROUNDS:
        raise UsageError(f"--rounds={rounds}: use 1 to {_MOST_ROUNDS}, or 0 for the default")
    profile_runs = flags.number("op_profiling_runs")
    if profile_runs < 1:
        raise UsageError(f"--op_profiling_runs={profile_runs}: use 1 or more")
    timeout = flags.real("example_timeout")
    if timeout <= 0:
        raise UsageError(f"--example_timeout={timeout:g}: use a number of seconds above 0")
    longest = flags.real("max_secs")
    return BenchmarkOptions(
        warm_up=PhaseLimits(flags.number("warmup_runs"), flags.real("warmup_min_secs"), longest),
        regular=PhaseLimits(flags.number("num_runs"), flags.real("min_secs"), longest),
        pace=RunPace(flags.real("run_delay"), flags.real("run_frequency")),
        dry_run=flags.is_on("dry_run"),
        layers=read_layers(
            flags.text("input_layer"),
            flags.text("input_layer_shape"),
            flags.text("input_layer_value_range"),
            flags.text("input_layer_value_files"),
        ),
        memory_interval_ms=_interval_ms(flags),
        rounds=rounds or (1 if is_one else _ROUNDS_OF_SEVERAL),
        shuffle=not is_one and flags.is_on("random_shuffle_benchmark_runs"),
        delay_s=flags.real("option_benchmark_run_delay"),
        profile_runs=profile_runs if flags.is_on("enable_op_profiling") else 0,
        keep_outputs="output_filepath" in flags,
        allow_fallback=flags.is_on("allow_fallback"),
        require_full_delegation=flags.is_on("require_full_delegation"),
        timeout_s=timeout,
    )


def _interval_ms(flags: Options) -> int | None:
    if not flags.is_on("report_peak_memory_footprint"):
        return None
    interval = flags.number("memory_footprint_check_interval_ms")
    if interval <= 0:
        raise UsageError(f"--memory_footprint_check_interval_ms={interval}: use 1 or more; the native tool takes 50")
    return interval
