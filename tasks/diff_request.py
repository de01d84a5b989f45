"""What an inference diff is asked to do, checked and made ready."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from evaltools.configuration import Configuration
from evaltools.errors import DataError, ModelError, UsageError
from evaltools.gates.limits import Limit
from evaltools.model import ModelFile, TensorInfo, read_model
from evaltools.tasks.diff_inputs import InputOptions, plan_inputs
from evaltools.tasks.inference_diff import (
    NATIVE_INVOCATIONS,
    InferenceDiffTask,
    InputSource,
    OutputComparison,
    check_types,
    output_names,
)
from evaltools.tasks.model_pair import ModelPair, pair_models
from evaltools.tasks.saved_outputs import (
    OutputsWriter,
    SavedReference,
    SavingInputs,
    read_saved_reference,
    require_new_folder,
)

YARDSTICK_RUNS: Final = 10
_MOST_KEPT_BYTES: Final = 256 << 20
_ITEM_BYTES: Final = {"int8": 1, "uint8": 1, "bool": 1, "int16": 2, "float16": 2, "int64": 8, "float64": 8}


@dataclass(frozen=True)
class DiffRequest:
    """What to compare.

    ``reference_model_file`` None: the same model. ``reference`` None only with ``load_reference``. ``input_shapes`` are
    texts ``NAME:1,224,224,3``. ``yardstick_runs`` 0: no noise floor, no precisions, no repeatability. ``native`` does
    what the native tool does. ``command`` is only recorded.
    """

    model_file: Path
    reference: Configuration | None
    tests: tuple[Configuration, ...]
    inputs: InputOptions = field(default_factory=InputOptions)
    reference_model_file: Path | None = None
    signature: str = ""
    input_shapes: tuple[str, ...] = ()
    yardstick_runs: int = YARDSTICK_RUNS
    warmup_runs: int = 1
    limits: tuple[Limit, ...] = ()
    save_outputs: Path | None = None
    load_reference: Path | None = None
    allow_model_mismatch: bool = False
    allow_fallback: bool = False
    max_failed_examples: int | None = None
    native: bool = False
    command: tuple[str, ...] = ()

    @property
    def invocations(self) -> int:
        """Invocations per run."""
        return NATIVE_INVOCATIONS if self.native else 1


@dataclass(frozen=True)
class DiffMaterial:
    """The checked parts of an inference diff. ``source`` gives the inputs that ``inputs`` describes.

    ``comparison`` is of test against reference, ``own_comparison`` of the test model against itself,
    ``reference_comparison`` of the reference model against itself. ``kept`` has the runs whose inputs and outputs are
    remembered, among which those for the yardsticks are chosen.
    """

    model: ModelFile
    pair: ModelPair | None
    inputs: tuple[TensorInfo, ...]
    input_sources: tuple[str, ...]
    source: InputSource
    comparison: OutputComparison
    own_comparison: OutputComparison
    reference_comparison: OutputComparison
    task: InferenceDiffTask
    kept: tuple[int, ...]
    stateful: bool
    loaded: SavedReference | None
    writer: OutputsWriter | None

    @property
    def reference_model(self) -> ModelFile:
        """The model that the reference runs."""
        return self.pair.reference if self.pair else self.model


def prepare(request: DiffRequest) -> DiffMaterial:
    """Read and check everything before anything runs; raises :class:`UsageError` and its kinds."""
    model = _shaped(read_model(request.model_file, request.signature), request.input_shapes)
    check_types(model, request.native)
    _check_limits(request, model)
    pair = _pair(request, model)
    inputs = pair.inputs if pair else model.inputs
    loaded = _loaded(request, model)
    own, other = model.outputs, pair.reference_outputs if pair else model.outputs
    comparison = OutputComparison(model, own, other, request.native)
    source: InputSource
    if loaded is None:
        plan = plan_inputs(model, inputs, request.inputs)
        source, names, described = plan.source, plan.example_ids, plan.described
    else:
        source = loaded
        names = tuple(f"run {run}" for run in loaded.runs[: request.inputs.num_runs])
        described = (f"loaded from {request.load_reference}",) * len(inputs)
    writer = None
    if request.save_outputs is not None:
        require_new_folder(request.save_outputs)
        writer = OutputsWriter(request.save_outputs)
        source = SavingInputs(source, writer)
    stateful = model.stateful or (pair is not None and pair.reference.stateful)
    per_run = _bytes(inputs) + (1 + len(request.tests)) * _bytes(model.outputs)
    kept = runs_to_keep(len(names), request.yardstick_runs, stateful, per_run)
    if loaded is None:
        plan.source.remember = frozenset({0, *kept})
    task = InferenceDiffTask(source, comparison, names, frozenset(kept), loaded)
    return DiffMaterial(
        model=model,
        pair=pair,
        inputs=inputs,
        input_sources=described,
        source=source,
        comparison=comparison,
        own_comparison=OutputComparison(model, own, own, request.native),
        reference_comparison=OutputComparison(model, other, other, request.native),
        task=task,
        kept=kept,
        stateful=stateful,
        loaded=loaded,
        writer=writer,
    )


def runs_to_keep(total: int, count: int, stateful: bool, bytes_per_run: int) -> tuple[int, ...]:
    """The runs to be remembered, in order: all that fit into memory, at least ``count``; none for a count of 0.

    Of a model with a state only the first ``count`` can be done again.

    >>> runs_to_keep(50, 3, True, 1), runs_to_keep(5, 3, False, 1), runs_to_keep(50, 3, False, 1 << 40)
    ((0, 1, 2), (0, 1, 2, 3, 4), (0, 24, 49))
    """
    if stateful:
        return tuple(range(min(count, total)))
    return spread(total, min(total, max(count, _MOST_KEPT_BYTES // max(1, bytes_per_run)))) if count else ()


def spread(total: int, count: int) -> tuple[int, ...]:
    """``count`` of the numbers below ``total``, spread evenly, first and last among them."""
    return tuple(round(place * (total - 1) / max(1, count - 1)) for place in range(min(count, total)))


def _bytes(tensors: Sequence[TensorInfo]) -> int:
    """Size of some tensors; texts, and sizes that are not known yet, count as one."""
    return sum(
        _ITEM_BYTES.get(tensor.dtype, 4) * math.prod(max(1, size) for size in tensor.shape) for tensor in tensors
    )


def _shaped(model: ModelFile, texts: tuple[str, ...]) -> ModelFile:
    shapes: dict[int, tuple[int, ...]] = {}
    for text in texts:
        name, _, sizes = text.rpartition(":")
        try:
            shape = tuple(int(size) for size in sizes.split(","))
        except ValueError:
            raise UsageError(f"--input_shape={text}: use NAME:SIZE,SIZE,..., as in image:1,224,224,3") from None
        if not name and len(model.inputs) != 1:
            raise UsageError(
                f"--input_shape={text}: the model has {len(model.inputs)} inputs; say which, as NAME:{sizes}"
            )
        position = model.named("input", name, model.inputs) if name else 0
        if shapes.setdefault(position, shape) != shape:
            raise UsageError(f"--input_shape: the input {name!r} is given two shapes; keep one")
    return model.with_input_shapes(shapes)


def _pair(request: DiffRequest, model: ModelFile) -> ModelPair | None:
    if request.reference_model_file is None:
        return None
    if request.load_reference is not None:
        raise UsageError("--reference_model_file and --load_reference both state the reference; keep one")
    if request.native:
        raise UsageError("--compat=native compares a model with itself; leave --reference_model_file out")
    reference = read_model(request.reference_model_file)
    check_types(reference, native=False)
    shapes = {}
    for position, tensor in enumerate(reference.inputs):
        if -1 in tensor.shape_signature and position < len(model.inputs):
            shapes[position] = _filled(tensor, model.inputs[position])
    return pair_models(model, reference.with_input_shapes(shapes))


def _filled(open_shape: TensorInfo, other: TensorInfo) -> tuple[int, ...]:
    """Free sizes as in the other model, where it has as many."""
    if len(other.shape) != len(open_shape.shape):
        return open_shape.shape
    pairs = zip(open_shape.shape_signature, other.shape, strict=True)
    return tuple(size if stated == -1 else stated for stated, size in pairs)


def _loaded(request: DiffRequest, model: ModelFile) -> SavedReference | None:
    if request.load_reference is None:
        return None
    random_or_files = replace(request.inputs, num_runs=None)
    if random_or_files != InputOptions(native=request.native):
        raise UsageError("--load_reference brings its inputs along; leave --seed and the --input_* flags out")
    loaded = read_saved_reference(request.load_reference)
    manifest = loaded.manifest
    if manifest.model_sha256 != model.sha256 and not request.allow_model_mismatch:
        raise DataError(
            f"--load_reference={request.load_reference} was saved from {manifest.model_file} with the sha256 "
            f"{manifest.model_sha256[:16]}..., {model.path} has {model.sha256[:16]}.... If the models are meant to "
            "differ (compiled ahead of time, quantised), add --allow_model_mismatch=true"
        )
    driven = (manifest.invocations_per_run, manifest.warmup_runs)
    if driven != (request.invocations, request.warmup_runs):
        raise DataError(
            f"--load_reference={request.load_reference} was saved with {driven[0]} invocations per run and "
            f"--warmup_runs={driven[1]}, here there are {request.invocations} and {request.warmup_runs}; "
            "use the same --compat and --warmup_runs"
        )
    for what, saved, own in (("input", manifest.inputs, model.inputs), ("output", manifest.outputs, model.outputs)):
        stated = [(tensor.dtype, len(tensor.shape)) for tensor in saved]
        if stated != [(tensor.dtype, len(tensor.shape)) for tensor in own]:
            raise DataError(
                f"--load_reference={request.load_reference} has {what}s that do not fit {model.path}: "
                f"{', '.join(f'{tensor.dtype}{tensor.shape}' for tensor in saved)}, not {', '.join(map(str, own))}"
            )
    return loaded


def _check_limits(request: DiffRequest, model: ModelFile) -> None:
    """A limit on an output that does not exist, or has no such figure, would never be broken."""
    names = [name for known in output_names(model) for name in known]
    for limit in request.limits:
        if limit.output is not None and limit.output not in names:
            model.named("output", limit.output, model.outputs)
        if limit.name != "max_quanta":
            continue
        concerned = [
            tensor
            for tensor, known in zip(model.outputs, output_names(model), strict=True)
            if limit.output is None or limit.output in known
        ]
        if not any(tensor.is_quantized for tensor in concerned):
            listed = ", ".join(map(str, concerned))
            raise ModelError(f"{limit}: no output is quantised ({listed}); use --max_avg_error or --min_snr_db instead")
