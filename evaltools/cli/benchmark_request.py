"""What the flags of ``evaltools benchmark`` ask for: models, configurations, how they are measured."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evaltools.benchmark.conditions import parse_affinity
from evaltools.benchmark.inputs import BenchmarkInputOptions, make_inputs, with_input_shapes
from evaltools.benchmark.loop import Pace, PhaseLimits
from evaltools.benchmark.matrix import ALL, NONE, option_configurations, sweep_configurations
from evaltools.benchmark.options import BenchmarkOptions, Candidate
from evaltools.benchmark.run import Inputs
from evaltools.cli.configurations import configurations_of_files_and_texts
from evaltools.cli.flags import GivenFlags
from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration
from evaltools.errors import UsageError
from evaltools.model import ModelFile, read_model

TEST_NAME: Final = "test"
_ROUNDS_OF_SEVERAL: Final = 3
_MOST_ROUNDS: Final = 1000
_DEFAULT_INTERVAL_MS: Final = 50


@dataclass(frozen=True)
class BenchmarkRequest:
    """Everything that is measured. ``warnings`` are the native tool's words.

    ``uses_list``: configurations come from the native tool's list of options. ``may_be_missing``: they are whatever
    there is, so that one that this machine does not have is no failure.
    """

    models: tuple[ModelFile, ...]
    inputs: tuple[Inputs, ...]
    configurations: tuple[Configuration, ...]
    options: BenchmarkOptions
    warnings: tuple[str, ...]
    uses_list: bool
    may_be_missing: bool

    @property
    def candidates(self) -> list[Candidate]:
        """Every model with every configuration."""
        return [
            Candidate(number, model, configuration)
            for number, model in enumerate(self.models)
            for configuration in self.configurations
        ]


def read_request(flags: GivenFlags) -> BenchmarkRequest:
    """Check the flags and read the models; raises :class:`UsageError` and its kinds."""
    configurations = _configurations(flags)
    paths = list(dict.fromkeys(flags.texts("graph")))
    is_one = len(paths) * len(configurations) == 1
    options = _options(flags, is_one)
    models, inputs, warnings = [], [], list(_interval_warning(flags))
    for path in paths:
        model, notes = with_input_shapes(_model(Path(path), flags.text("signature_to_run_for")), options.inputs)
        values, more = make_inputs(model, options.inputs)
        models.append(model)
        inputs.append(values)
        warnings += [*notes, *more]
    listed = flags.text("perf_options_list")
    return BenchmarkRequest(
        models=tuple(models),
        inputs=tuple(inputs),
        configurations=configurations,
        options=options,
        warnings=tuple(warnings),
        uses_list=listed != NONE,
        may_be_missing=ALL in listed.replace(" ", "").split(","),
    )


def _model(path: Path, signature: str) -> ModelFile:
    """The model with its signature; where it has several, one must be named."""
    model = read_model(path)
    if signature in model.signatures or (not signature and len(model.signatures) < 2):
        return read_model(path, signature) if signature else model
    keys = ", ".join(model.signatures)
    message = 'Signature not specified or incorrect. Pass one of the following to the flag "--signature_to_run_for"'
    if not keys:
        raise UsageError(f"--signature_to_run_for={signature}: {path} has no signature; leave the flag out")
    raise UsageError(f"{path}: {message}: {keys}" + (f"; it was given {signature!r}" if signature else ""))


def _configurations(flags: GivenFlags) -> tuple[Configuration, ...]:
    own = flags.among(CONFIGURATION_PARAMETERS)
    named = configurations_of_files_and_texts(flags)
    found = option_configurations(flags.text("perf_options_list"), own)
    found += sweep_configurations(flags.texts("sweep"), own)
    if not found and (own or not named):
        found = [Configuration.from_flags(TEST_NAME, own)]
    found += named
    names = [configuration.name for configuration in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two configurations are named {twice!r}; give each its own name")
    return tuple(found)


def _options(flags: GivenFlags, is_one: bool) -> BenchmarkOptions:
    rounds = flags.number("rounds")
    if not 0 <= rounds <= _MOST_ROUNDS:
        raise UsageError(f"--rounds={rounds}: use 1 to {_MOST_ROUNDS}, or 0 for the default")
    profile_runs = flags.number("op_profiling_runs")
    if profile_runs < 1:
        raise UsageError(f"--op_profiling_runs={profile_runs}: use 1 or more")
    timeout = flags.real("run_timeout")
    if timeout <= 0:
        raise UsageError(f"--run_timeout={timeout:g}: use a number of seconds above 0")
    _require_profiling(flags)
    longest = flags.real("max_secs")
    affinity = parse_affinity(flags.text("cpu_affinity")) if "cpu_affinity" in flags else ()
    from_list = flags.text("perf_options_list") != NONE
    return BenchmarkOptions(
        warm_up=PhaseLimits(flags.number("warmup_runs"), flags.real("warmup_min_secs"), longest),
        regular=PhaseLimits(flags.number("num_runs"), flags.real("min_secs"), longest),
        pace=Pace(flags.real("run_delay"), flags.real("run_frequency")),
        dry_run=flags.is_on("dry_run"),
        inputs=BenchmarkInputOptions(
            layers=flags.text("input_layer"),
            shapes=flags.text("input_layer_shape"),
            value_ranges=flags.text("input_layer_value_range"),
            value_files=flags.text("input_layer_value_files"),
        ),
        affinity=tuple(affinity),
        memory_interval_ms=_interval_ms(flags),
        rounds=rounds or (1 if is_one else _ROUNDS_OF_SEVERAL),
        shuffle=not is_one and flags.is_on("random_shuffle_benchmark_runs"),
        delay_s=flags.real("option_benchmark_run_delay") if from_list else -1.0,
        profile_runs=profile_runs if flags.is_on("enable_op_profiling") and not flags.is_on("dry_run") else 0,
        keep_outputs="output_filepath" in flags,
        allow_fallback=flags.is_on("allow_fallback"),
        require_full_delegation=flags.is_on("require_full_delegation"),
        timeout_s=timeout,
    )


def _interval_ms(flags: GivenFlags) -> int | None:
    if not flags.is_on("report_peak_memory_footprint"):
        return None
    interval = flags.number("memory_footprint_check_interval_ms")
    return interval if interval > 0 else _DEFAULT_INTERVAL_MS


def _interval_warning(flags: GivenFlags) -> list[str]:
    """As the native tool, which resets it."""
    interval = flags.number("memory_footprint_check_interval_ms")
    if not flags.is_on("report_peak_memory_footprint") or interval > 0:
        return []
    return [f"--memory_footprint_check_interval_ms={interval} is not positive; {_DEFAULT_INTERVAL_MS} is used"]


def _require_profiling(flags: GivenFlags) -> None:
    """Flags of the operators' times say nothing without these."""
    for name in (
        "op_profiling_output_mode",
        "op_profiling_output_file",
        "profiling_output_csv_file",
        "op_profiling_runs",
    ):
        if name in flags and not flags.is_on("enable_op_profiling"):
            raise UsageError(f"--{name} has no effect without --enable_op_profiling=true; add that, or leave it out")
