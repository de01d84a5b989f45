"""What an inference diff is made of, checked: models, inputs, comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.errors import DataError, ModelError, UsageError
from evaltools.gates.criteria import Criterion, parse_limit
from evaltools.model import ModelFile, TensorInfo, read_model
from evaltools.preprocess import parse_normalization
from evaltools.report.files.output_file import require_new_folder
from evaltools.result.facts import Tensor
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.input_options import SAVED, InputOptions
from evaltools.tasks.inference_diff.inputs import InputPlan, Ranges, RunInputs, fed_as_stated, plan_inputs, saying
from evaltools.tasks.inference_diff.model_pair import ModelPair, Side, match_by_name, pair_models, side_of
from evaltools.tasks.inference_diff.options import LIMITS
from evaltools.tasks.inference_diff.output_comparison import (
    NATIVE_INVOCATIONS,
    OutputComparison,
    check_types,
    describe_outputs,
    output_names,
)
from evaltools.tasks.inference_diff.output_kinds import forced_kinds
from evaltools.tasks.inference_diff.output_order import names_of
from evaltools.tasks.inference_diff.result import OutputOrder, loaded_from
from evaltools.tasks.inference_diff.saved_outputs import (
    OutputsWriter,
    SavedReference,
    read_saved_reference,
)

LOCAL_REFERENCE: Final = "reference"
"""What the reference is called where its outputs were loaded; the CPU stands in for it then."""
_MOST_RUNS: Final = 1_000_000
_MOST_KEPT_BYTES: Final = 256 << 20
"""Of inputs, and of the outputs of the reference, which are in memory together."""
_DISK_FOR_MEMORY: Final = 4
"""The journal may grow by so many times as much, by the outputs of all configurations."""


class DiffOptions(Struct, frozen=True, kw_only=True):
    """What to compare.

    ``reference`` None only with ``load_reference``. ``input_shapes`` are texts ``NAME:1,224,224,3``.
    ``noise_floor_runs`` 0: no noise floor, no precisions, no repeatability; ``max_secs`` is how long these may take, 0:
    as long as they do. ``native`` does what the native tool does. Raises :class:`UsageError` where nothing or two
    things state the reference.
    """

    reference: Configuration | None
    tests: Sequence[Configuration]
    inputs: InputOptions = field(default_factory=InputOptions)
    output_map: str = ""
    signature: str = ""
    input_shapes: tuple[str, ...] = ()
    noise_floor_runs: int = 10
    warmup_runs: int = 1
    max_secs: float = 0.0
    output_kinds: tuple[str, ...] = ()
    limits: tuple[Criterion, ...] = ()
    save_outputs: Path | None = None
    load_reference: Path | None = None
    allow_model_mismatch: bool = False
    native: bool = False

    def __post_init__(self) -> None:
        if self.load_reference is not None and self.reference is not None:
            raise UsageError("--load_reference and --reference both state the reference; keep one")
        if self.load_reference is None and self.reference is None:
            raise UsageError(
                "--reference=none leaves nothing to compare with; leave it out, or give --load_reference=FOLDER"
            )

    @property
    def invocations(self) -> int:
        """Invocations per run."""
        return NATIVE_INVOCATIONS if self.native else 1

    @property
    def reference_name(self) -> str:
        """The name of the reference; the CPU stands in for one whose outputs are loaded."""
        return LOCAL_REFERENCE if self.reference is None else self.reference.name


def limits_of(
    max_avg_error: Sequence[str] = (), max_quanta: Sequence[str] = (), min_snr_db: Sequence[str] = ()
) -> tuple[Criterion, ...]:
    """The limits that the flags of these names state; raises :class:`UsageError`."""
    stated = zip(LIMITS, (max_avg_error, max_quanta, min_snr_db), strict=True)
    return tuple(parse_limit(limit, text) for limit, texts in stated for text in texts)


def _require_numbers(options: DiffOptions) -> None:
    """Raise :class:`UsageError` for numbers that make no sense."""
    inputs = options.inputs
    counts = {"num_runs": (inputs.num_runs, 1), "warmup_runs": (options.warmup_runs, 0)}
    for name, (number, lowest) in {**counts, "noise_floor_runs": (options.noise_floor_runs, 0)}.items():
        if number is not None and not lowest <= number <= _MOST_RUNS:
            raise UsageError(f"--{name}={number}: use {lowest} to {_MOST_RUNS}")
    if inputs.seed < 1:
        raise UsageError(
            f"--seed={inputs.seed}: use a whole number of 1 or more; 1 gives the inputs of the native tool"
        )
    if inputs.normalization != "auto":
        parse_normalization(inputs.normalization)
    if not 0 <= options.max_secs < math.inf:
        raise UsageError(f"--max_secs={options.max_secs:g}: use a number of seconds, or 0 for no limit")


class DiffMaterial(Struct, frozen=True, dict=True):
    """The checked parts of an inference diff.

    ``plan`` gives the inputs of each run, which are saved ones where the reference's outputs were ``loaded``. ``kept``
    are the runs whose inputs and outputs are remembered; the runs for the noise floor are chosen among them.
    ``forced_kinds`` are the kinds of outputs that the user states, by position. ``writer`` saves inputs and outputs,
    None if they are not saved.
    """

    options: DiffOptions
    model: ModelFile
    pair: ModelPair | None
    plan: InputPlan
    loaded_outputs: tuple[TensorInfo, ...]
    forced_kinds: Mapping[int, str]
    kept: tuple[int, ...]
    loaded: SavedReference | None
    writer: OutputsWriter | None

    @cached_property
    def remembered(self) -> frozenset[int]:
        """The runs that are kept."""
        return frozenset(self.kept)

    @property
    def compares_models(self) -> bool:
        """Whether the reference's outputs are those of another model."""
        other = self.loaded is not None and self.loaded.configuration.model_sha256 != self.model.sha256
        return other or (self.pair is not None and self.pair.reference.sha256 != self.model.sha256)

    @property
    def models(self) -> list[ModelFile]:
        """The model under test and, if it is another, the reference's."""
        return [self.model] if self.pair is None else [self.model, self.pair.reference]

    @property
    def stateful(self) -> bool:
        """Whether a model keeps a state from run to run."""
        return any(model.stateful for model in self.models)

    def side(self, of_reference: bool) -> Side:
        """How the model of the reference, or the one under test, is fed, and how its outputs are read."""
        if self.pair is not None:
            return self.pair.reference_side if of_reference else self.pair.test_side
        return side_of(self.plan.tensors, self.model)

    @cached_property
    def comparison(self) -> OutputComparison:
        """Compares test and reference."""
        return self._between(self.model.outputs, self.loaded_outputs or self._reference_outputs)

    @cached_property
    def own_comparison(self) -> OutputComparison:
        """Compares the test model with itself."""
        return self._between(self.model.outputs, self.model.outputs)

    @cached_property
    def reference_comparison(self) -> OutputComparison:
        """Compares the reference's model with itself."""
        return self._between(self._reference_outputs, self._reference_outputs)

    @property
    def _reference_outputs(self) -> tuple[TensorInfo, ...]:
        return self.model.outputs if self.pair is None else self.pair.reference_outputs

    def _between(self, outputs: Sequence[TensorInfo], others: Sequence[TensorInfo]) -> OutputComparison:
        return OutputComparison(self.model, outputs, others, self.options.native, self.forced_kinds)

    def in_order(self, order: OutputOrder | None) -> DiffMaterial:
        """The same, with the outputs of two models in another order; None: in that of the material."""
        if self.pair is None or order is None:
            return self
        return replace(self, pair=replace(self.pair, order=order))


def prepare(models: Sequence[ModelFile], options: DiffOptions) -> DiffMaterial:
    """Read and check everything before anything runs; raises :class:`UsageError` and its kinds.

    ``models`` are the model under test and, if it is another, the reference's, as they were read.
    """
    _require_numbers(options)
    model = shaped(_with_signature(models[0], options.signature), options.input_shapes)
    if not model.outputs:
        raise ModelError(f"{model.path} has no outputs, so there is nothing to compare; convert it with outputs")
    check_types(model, options.native)
    pair = _pair(models, options, model)
    inputs = pair.inputs if pair else model.inputs
    loaded = _loaded(options, model)
    loaded_outputs: tuple[TensorInfo, ...] = ()
    if loaded is not None:
        inputs = _as_saved(model.inputs, loaded.manifest.inputs, loaded.input_order or ())
        loaded_outputs = _as_saved(model.outputs, loaded.configuration.tensors, loaded.output_order or ())
    _check_limits(options, model, loaded_outputs or (pair.reference_outputs if pair else model.outputs))
    in_journal = (1 + len(options.tests)) * _bytes(model.outputs)
    keep = partial(
        runs_to_keep,
        count=options.noise_floor_runs,
        stateful=model.stateful or (pair is not None and pair.reference.stateful),
        bytes_per_run=max(_bytes(inputs), _bytes(model.outputs), in_journal // _DISK_FOR_MEMORY),
    )
    if loaded is None:
        plan = plan_inputs(model, inputs, options.inputs, lambda total: {0, *keep(total)})
    else:
        plan = _saved_inputs(loaded, inputs, options.inputs.num_runs)
    if options.save_outputs is not None:
        require_new_folder(options.save_outputs, "save_outputs")
    return DiffMaterial(
        options=options,
        model=model,
        pair=pair,
        plan=plan,
        loaded_outputs=loaded_outputs,
        forced_kinds=forced_kinds(options.output_kinds, describe_outputs(model), output_names(model)),
        kept=keep(len(plan.kinds)),
        loaded=loaded,
        writer=None if options.save_outputs is None else OutputsWriter(options.save_outputs),
    )


def _with_signature(model: ModelFile, signature: str) -> ModelFile:
    return read_model(model.path, signature) if signature else model


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


def _pair(models: Sequence[ModelFile], options: DiffOptions, model: ModelFile) -> ModelPair | None:
    if len(models) < 2:
        return None
    reference = _with_signature(models[1], options.signature if options.signature in models[1].signatures else "")
    check_types(reference, native=False)
    return fed_as_stated(pair_models(model, reference, options.output_map), options.inputs)


def _loaded(options: DiffOptions, model: ModelFile) -> SavedReference | None:
    if options.load_reference is None:
        if options.allow_model_mismatch:
            raise UsageError("--allow_model_mismatch has no effect without --load_reference; leave it out")
        return None
    random_or_files = replace(options.inputs, num_runs=None)
    if random_or_files != InputOptions(native=options.native):
        raise UsageError("--load_reference brings its inputs along; leave --seed and the --input_* flags out")
    loaded = read_saved_reference(options.load_reference)
    manifest, saved = loaded.manifest, loaded.configuration
    if saved.model_sha256 != model.sha256 and not options.allow_model_mismatch:
        raise DataError(
            f"--load_reference={options.load_reference} was saved from {saved.model_file} with the sha256 "
            f"{saved.model_sha256[:16]}..., {model.path} has {model.sha256[:16]}.... If the models are meant to "
            "differ (compiled ahead of time, quantised), add --allow_model_mismatch=true"
        )
    driven = (manifest.invocations_per_run, manifest.warmup_runs)
    if driven != (options.invocations, options.warmup_runs):
        raise DataError(
            f"--load_reference={options.load_reference} was saved with {driven[0]} invocations per run and "
            f"--warmup_runs={driven[1]}, here there are {options.invocations} and {options.warmup_runs}; "
            "use the same --compat and --warmup_runs"
        )
    if manifest.signature != options.signature:
        raise DataError(
            f"--load_reference={options.load_reference} was saved with --signature={manifest.signature!r}, here it is "
            f"{options.signature!r}; use the same"
        )
    return replace(
        loaded,
        input_order=_saved_order(options, model, "input", model.inputs, manifest.inputs),
        output_order=_saved_order(options, model, "output", model.outputs, saved.tensors),
    )


def _saved_order(
    options: DiffOptions, model: ModelFile, what: str, own: Sequence[TensorInfo], saved: Sequence[Tensor]
) -> tuple[int, ...]:
    """Saved positions of the model's tensors, matched by name, then by order."""
    if len(own) == len(saved):
        order = match_by_name([names_of(tensor) for tensor in own], [{tensor.name} - {""} for tensor in saved])
        pairs = [(mine, saved[position]) for mine, position in zip(own, order, strict=True)]
        texts_fit = all((mine.dtype == "string") == (theirs.dtype == "string") for mine, theirs in pairs)
        if texts_fit and all(_sizes(mine.shape) == _sizes(theirs.shape) for mine, theirs in pairs):
            return order
    raise DataError(
        f"--load_reference={options.load_reference} has {what}s that do not fit {model.path}: "
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


def _saved_inputs(loaded: SavedReference, tensors: tuple[TensorInfo, ...], num_runs: int | None) -> InputPlan:
    """The inputs of the first of the saved runs."""
    if num_runs is not None and num_runs > len(loaded.runs):
        raise UsageError(f"--num_runs={num_runs}: {loaded.folder} has {len(loaded.runs)} runs; use no more")
    runs = loaded.runs[:num_runs]
    read = lru_cache(maxsize=1)(loaded.inputs)
    stored = {place: partial(_of_saved, read, place) for place in range(len(tensors))}
    return InputPlan(
        RunInputs(len(tensors), stored, {}, {}),
        tuple(f"run {run}" for run in runs),
        tuple(loaded.manifest.kinds.get(str(run), SAVED) for run in runs),
        tensors,
        (saying(loaded_from(str(loaded.folder))),) * len(tensors),
    )


def _of_saved(read: Callable[[int], tuple[Array, ...]], place: int, index: int, _ranges: Ranges) -> Array:
    return read(index)[place]


def _check_limits(options: DiffOptions, model: ModelFile, reference: Sequence[TensorInfo]) -> None:
    """Raise :class:`ModelError` for a limit on an output that does not exist or has no such figure."""
    known = output_names(model)
    for limit in options.limits:
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
