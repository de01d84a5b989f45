"""The request of an inference diff, checked, and the material for it: models, inputs, comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, cast

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.errors import DataError, ModelError, UsageError
from evaltools.gates.criteria import Criterion
from evaltools.gates.limits import parse_limit
from evaltools.model import ModelFile, TensorInfo, read_model
from evaltools.preprocess import parse_normalization
from evaltools.report.files.output_file import require_new_folder
from evaltools.request import Options, Request
from evaltools.result.evaluation import Tensor
from evaltools.tasks.inference_diff.input_options import SAVED, InputOptions
from evaltools.tasks.inference_diff.inputs import InputPlan, plan_inputs
from evaltools.tasks.inference_diff.model_pair import ModelPair, match_by_name, pair_models
from evaltools.tasks.inference_diff.options import LIMITS
from evaltools.tasks.inference_diff.output_kinds import forced_kinds
from evaltools.tasks.inference_diff.output_order import names_of
from evaltools.tasks.inference_diff.result import OutputOrder
from evaltools.tasks.inference_diff.saved_outputs import (
    OutputsWriter,
    SavedReference,
    SavingInputs,
    read_saved_reference,
)
from evaltools.tasks.inference_diff.task import (
    NATIVE_INVOCATIONS,
    InferenceDiffTask,
    InputSource,
    OutputComparison,
    check_types,
    describe_outputs,
    output_names,
)
from evaltools.tasks.shared.image_input import StatedLayout
from evaltools.tasks.shared.request import TaskRequest, shared_fields

NOISE_FLOOR_RUNS: Final = 10
_MOST_RUNS: Final = 1_000_000
_MOST_KEPT_BYTES: Final = 256 << 20
"""Of inputs, and of the outputs of the reference, which are in memory together."""
_DISK_FOR_MEMORY: Final = 4
"""The journal may grow by so many times as much, by the outputs of all configurations."""


class DiffRequest(TaskRequest, frozen=True):
    """What to compare.

    ``reference_model_file`` None: the same model. ``reference`` None only with ``load_reference``. ``input_shapes`` are
    texts ``NAME:1,224,224,3``. ``noise_floor_runs`` 0: no noise floor, no precisions, no repeatability;
    ``max_secs`` is how long these may take, 0: as long as they do. ``native`` does what the native tool does.
    """

    inputs: InputOptions = field(default_factory=InputOptions)
    output_map: str = ""
    signature: str = ""
    input_shapes: tuple[str, ...] = ()
    noise_floor_runs: int = NOISE_FLOOR_RUNS
    warmup_runs: int = 1
    max_secs: float = 0.0
    output_kinds: tuple[str, ...] = ()
    limits: tuple[Criterion, ...] = ()
    save_outputs: Path | None = None
    load_reference: Path | None = None
    allow_model_mismatch: bool = False
    native: bool = False

    @property
    def invocations(self) -> int:
        """Invocations per run."""
        return NATIVE_INVOCATIONS if self.native else 1


def read_request(request: Request) -> DiffRequest:
    """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""
    options, native = request.options, request.is_native
    if "load_reference" in options and request.reference is not None:
        raise UsageError("--load_reference and --reference both state the reference; keep one")
    if "load_reference" not in options and request.reference is None:
        raise UsageError(
            "--reference=none leaves nothing to compare with; leave it out, or give --load_reference=FOLDER"
        )
    return DiffRequest(
        **shared_fields(request),
        inputs=_inputs(options, native),
        output_map=options.text("output_map"),
        signature=options.text("signature"),
        input_shapes=tuple(options.texts("input_shape")),
        noise_floor_runs=_count(options, "noise_floor_runs", 0, 0 if native else None),
        warmup_runs=_count(options, "warmup_runs", 0, 0 if native else None),
        max_secs=_seconds(options),
        output_kinds=tuple(options.texts("output_kind")),
        limits=tuple(parse_limit(limit, text) for limit in LIMITS for text in options.texts(limit.name)),
        save_outputs=options.path("save_outputs"),
        load_reference=options.path("load_reference"),
        allow_model_mismatch=options.is_on("allow_model_mismatch"),
        native=native,
    )


def _inputs(flags: Options, native: bool) -> InputOptions:
    seed = flags.number("seed")
    if seed < 1:
        raise UsageError(f"--seed={seed}: use a whole number of 1 or more; 1 gives the inputs of the native tool")
    normalization = flags.text("normalization")
    images = flags.path("input_images")
    if normalization != "auto":
        parse_normalization(normalization)
    return InputOptions(
        num_runs=_count(flags, "num_runs", 1) if "num_runs" in flags else None,
        seed=seed,
        ranges=tuple(flags.texts("input_range")),
        files=tuple(flags.texts("input_files")),
        images=images,
        normalization=normalization,
        native=native,
        kind=flags.text("inputs"),
        input_layout=cast(StatedLayout, flags.text("input_layout")),
        channel_order=flags.text("channel_order"),
    )


def _count(flags: Options, name: str, lowest: int, unless_given: int | None = None) -> int:
    if name not in flags and unless_given is not None:
        return unless_given
    number = flags.number(name)
    if not lowest <= number <= _MOST_RUNS:
        raise UsageError(f"--{name}={number}: use {lowest} to {_MOST_RUNS}")
    return number


def _seconds(flags: Options) -> float:
    seconds = flags.real("max_secs")
    if not 0 <= seconds < math.inf:
        raise UsageError(f"--max_secs={seconds:g}: use a number of seconds, or 0 for no limit")
    return seconds


class DiffMaterial(Struct, frozen=True):
    """The checked parts of an inference diff.

    ``inputs`` describes the inputs, and ``source`` gives them. They come from ``plan``, or from ``loaded`` outputs of
    an earlier run; the other of the two is None. ``saving`` is the source if inputs and outputs are saved.

    ``comparison`` compares test and reference, ``own_comparison`` the test model with itself, ``reference_comparison``
    the reference model with itself. ``kept`` are the runs whose inputs and outputs are remembered; the runs for the
    noise_floor are chosen among them. ``kinds`` is the kind of inputs of each run: noise, photos, files or saved.
    """

    model: ModelFile
    pair: ModelPair | None
    inputs: tuple[TensorInfo, ...]
    plan: InputPlan | None
    kinds: tuple[str, ...]
    source: InputSource
    comparison: OutputComparison
    own_comparison: OutputComparison
    reference_comparison: OutputComparison
    task: InferenceDiffTask
    kept: tuple[int, ...]
    stateful: bool
    loaded: SavedReference | None
    saving: SavingInputs | None

    @property
    def writer(self) -> OutputsWriter | None:
        """What saves inputs and outputs, None if they are not saved."""
        return self.saving.writer if self.saving is not None else None

    @property
    def compares_models(self) -> bool:
        """Whether the reference's outputs are those of another model."""
        other = self.loaded is not None and self.loaded.configuration.model_sha256 != self.model.sha256
        return other or (self.pair is not None and self.pair.reference.sha256 != self.model.sha256)

    @property
    def reference_model(self) -> ModelFile:
        """The model that the reference runs."""
        return self.pair.reference if self.pair else self.model

    def in_order(self, order: OutputOrder) -> DiffMaterial:
        """The same, with the outputs of two models in another order."""
        if self.pair is None or order == self.pair.order:
            return self
        pair = replace(self.pair, order=order)
        other = pair.reference_outputs
        comparison = self.comparison.between(self.model.outputs, other)
        return replace(
            self,
            pair=pair,
            comparison=comparison,
            reference_comparison=self.comparison.between(other, other),
            task=self.task.comparing(comparison),
        )


def prepare(request: DiffRequest) -> DiffMaterial:
    """Read and check everything before anything runs; raises :class:`UsageError` and its kinds."""
    if request.save_outputs is not None and request.execution.run_dir is not None:
        raise UsageError("--save_outputs cannot go on where an earlier run ended; leave it or --run_dir out")
    model = shaped(read_model(request.model_file, request.signature), request.input_shapes)
    if not model.outputs:
        raise ModelError(f"{model.path} has no outputs, so there is nothing to compare; convert it with outputs")
    check_types(model, request.native)
    pair = _pair(request, model)
    inputs = pair.inputs if pair else model.inputs
    loaded = _loaded(request, model)
    own, other = model.outputs, pair.reference_outputs if pair else model.outputs
    if loaded is not None:
        inputs = _as_saved(model.inputs, loaded.manifest.inputs, loaded.input_order)
        saved_outputs = _as_saved(model.outputs, loaded.configuration.tensors, loaded.output_order)
    against = saved_outputs if loaded else other
    _check_limits(request, model, against)
    forced = forced_kinds(request.output_kinds, describe_outputs(model), output_names(model))
    comparison = OutputComparison(model, own, against, request.native, forced)
    stateful = model.stateful or (pair is not None and pair.reference.stateful)
    in_journal = (1 + len(request.tests)) * _bytes(model.outputs)
    per_run = max(_bytes(inputs), _bytes(model.outputs), in_journal // _DISK_FOR_MEMORY)
    keep = partial(runs_to_keep, count=request.noise_floor_runs, stateful=stateful, bytes_per_run=per_run)
    source: InputSource
    plan = None
    if loaded is None:
        plan = plan_inputs(model, inputs, request.inputs, lambda total: {0, *keep(total)})
        source, names, kinds = plan.source, plan.example_ids, plan.kinds
    else:
        source, runs = loaded, _runs_asked_for(loaded, request.inputs.num_runs)
        names = tuple(f"run {run}" for run in runs)
        kinds = tuple(loaded.manifest.kinds.get(str(run), SAVED) for run in runs)
    saving = None
    if request.save_outputs is not None:
        require_new_folder(request.save_outputs, "save_outputs")
        source = saving = SavingInputs(source, OutputsWriter(request.save_outputs))
    if stateful and request.execution.shard.count > 1:
        raise UsageError(
            f"--shard_count={request.execution.shard.count}: {model.path} keeps a state from run to run, so that one "
            "host must do all runs; leave the shards out"
        )
    kept = keep(len(names))
    task = InferenceDiffTask(source, comparison, names, frozenset(kept), loaded, stateful)
    return DiffMaterial(
        model=model,
        pair=pair,
        inputs=inputs,
        plan=plan,
        kinds=kinds,
        source=source,
        comparison=comparison,
        own_comparison=OutputComparison(model, own, own, request.native, forced),
        reference_comparison=OutputComparison(model, other, other, request.native, forced),
        task=task,
        kept=kept,
        stateful=stateful,
        loaded=loaded,
        saving=saving,
    )


def runs_to_keep(total: int, count: int, stateful: bool, bytes_per_run: int) -> tuple[int, ...]:
    """The numbers of the runs to be remembered, ascending: all that there is room for, but at least ``count``.

    There are none if ``count`` is 0. For a model with a state they are the first runs, since only those can be
    repeated; otherwise they are spread evenly over all ``total`` runs.

    >>> runs_to_keep(5, 3, True, 1), runs_to_keep(50, 3, True, 1 << 40), runs_to_keep(50, 3, False, 1 << 40)
    ((0, 1, 2, 3, 4), (0, 1, 2), (0, 24, 49))
    """
    if not count:
        return ()
    fitting = min(total, max(count, _MOST_KEPT_BYTES // max(1, bytes_per_run)))
    return tuple(range(fitting)) if stateful else spread(total, fitting)


def spread(total: int, count: int) -> tuple[int, ...]:
    """``count`` of the numbers below ``total``, spread evenly, first and last among them."""
    return tuple(round(place * (total - 1) / max(1, count - 1)) for place in range(min(count, total)))


def _bytes(tensors: Sequence[TensorInfo]) -> int:
    """The size of tensors in bytes; a text counts as one byte, an unknown size as 1."""
    return sum(
        (1 if tensor.dtype == "string" else np.dtype(tensor.dtype).itemsize)
        * math.prod(max(1, size) for size in tensor.shape)
        for tensor in tensors
    )


def shaped(model: ModelFile, texts: tuple[str, ...]) -> ModelFile:
    """The model with the shapes that ``NAME:SIZE,SIZE`` texts give its inputs; raises :class:`UsageError`."""
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
    reference = read_model(request.reference_model_file)
    if request.signature in reference.signatures:
        reference = read_model(request.reference_model_file, request.signature)
    check_types(reference, native=False)
    return pair_models(model, reference, request.output_map)


def _loaded(request: DiffRequest, model: ModelFile) -> SavedReference | None:
    if request.load_reference is None:
        if request.allow_model_mismatch:
            raise UsageError("--allow_model_mismatch has no effect without --load_reference; leave it out")
        return None
    random_or_files = replace(request.inputs, num_runs=None)
    if random_or_files != InputOptions(native=request.native):
        raise UsageError("--load_reference brings its inputs along; leave --seed and the --input_* flags out")
    loaded = read_saved_reference(request.load_reference)
    manifest, saved = loaded.manifest, loaded.configuration
    if saved.model_sha256 != model.sha256 and not request.allow_model_mismatch:
        raise DataError(
            f"--load_reference={request.load_reference} was saved from {saved.model_file} with the sha256 "
            f"{saved.model_sha256[:16]}..., {model.path} has {model.sha256[:16]}.... If the models are meant to "
            "differ (compiled ahead of time, quantised), add --allow_model_mismatch=true"
        )
    driven = (manifest.invocations_per_run, manifest.warmup_runs)
    if driven != (request.invocations, request.warmup_runs):
        raise DataError(
            f"--load_reference={request.load_reference} was saved with {driven[0]} invocations per run and "
            f"--warmup_runs={driven[1]}, here there are {request.invocations} and {request.warmup_runs}; "
            "use the same --compat and --warmup_runs"
        )
    if manifest.signature != request.signature:
        raise DataError(
            f"--load_reference={request.load_reference} was saved with --signature={manifest.signature!r}, here it is "
            f"{request.signature!r}; use the same"
        )
    return replace(
        loaded,
        input_order=_saved_order(request, model, "input", model.inputs, manifest.inputs),
        output_order=_saved_order(request, model, "output", model.outputs, saved.tensors),
    )


def _saved_order(
    request: DiffRequest, model: ModelFile, what: str, own: Sequence[TensorInfo], saved: Sequence[Tensor]
) -> tuple[int, ...]:
    """Saved positions of the model's tensors, matched by name, then by order."""
    if len(own) == len(saved):
        order = match_by_name([names_of(tensor) for tensor in own], [{tensor.name} - {""} for tensor in saved])
        pairs = [(mine, saved[position]) for mine, position in zip(own, order, strict=True)]
        texts_fit = all((mine.dtype == "string") == (theirs.dtype == "string") for mine, theirs in pairs)
        if texts_fit and all(_sizes(mine.shape) == _sizes(theirs.shape) for mine, theirs in pairs):
            return order
    raise DataError(
        f"--load_reference={request.load_reference} has {what}s that do not fit {model.path}: "
        f"{', '.join(f'{tensor.name}: {tensor.dtype}{tensor.shape}' for tensor in saved)}, here "
        f"{', '.join(f'{tensor.name}: {tensor.dtype}{list(tensor.shape)}' for tensor in own)}. "
        "Repeat the --input_shape that it was saved with, or save it anew"
    )


def _sizes(shape: Sequence[int]) -> list[int]:
    return [size for size in shape if size != 1]


def _as_saved(own: Sequence[TensorInfo], saved: Sequence[Tensor], order: Sequence[int]) -> tuple[TensorInfo, ...]:
    """The model's tensors with the types and quantisation that were saved."""
    found = []
    for mine, position in zip(own, order, strict=True):
        tensor = saved[position]
        quantisation = {"scale": tensor.scale, "zero_point": tensor.zero_point}
        found.append(replace(mine, dtype=tensor.dtype, shape=tuple(tensor.shape), **quantisation))
    return tuple(found)


def _runs_asked_for(loaded: SavedReference, num_runs: int | None) -> list[int]:
    if num_runs is not None and num_runs > len(loaded.runs):
        raise UsageError(f"--num_runs={num_runs}: {loaded.folder} has {len(loaded.runs)} runs; use no more")
    return loaded.runs[:num_runs]


def _check_limits(request: DiffRequest, model: ModelFile, reference: Sequence[TensorInfo]) -> None:
    """Raise :class:`ModelError` for a limit on an output that does not exist or has no such figure."""
    known = output_names(model)
    for limit in request.limits:
        if limit.output is not None and not any(limit.output in names for names in known):
            model.named("output", limit.output, model.outputs)
        concerned = [
            (tensor, other)
            for tensor, other, names in zip(model.outputs, reference, known, strict=True)
            if limit.output is None or limit.output in names
        ]
        if not any(_has_figure(limit, *pair) for pair in concerned):
            listed = ", ".join(str(tensor) for tensor, _ in concerned)
            figure = "compared in quanta" if limit.figure == "max_quanta" else "numbers"
            raise ModelError(
                f"{limit.text}: of the outputs that it is about none is {figure} ({listed}); use another limit"
            )


def _has_figure(limit: Criterion, tensor: TensorInfo, other: TensorInfo) -> bool:
    if limit.figure != "max_quanta":
        return tensor.dtype != "string"
    same = (tensor.dtype, tensor.scale, tensor.zero_point) == (other.dtype, other.scale, other.zero_point)
    return tensor.is_quantized and same
