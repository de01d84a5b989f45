"""Where the inputs of an inference diff come from: random numbers, files, pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from evaltools.datasets.gaussian import NATIVE_SEED, GaussianInputs
from evaltools.datasets.image_folder import list_images
from evaltools.datasets.input_files import Wanted, read_input_files
from evaltools.errors import ImageError, ModelError, UsageError
from evaltools.model import ModelFile, TensorInfo
from evaltools.runtime.session import Array
from evaltools.tasks.shared.image_input import CLASSIFIER_CROP, input_transform, load_picture

DEFAULT_RUNS: Final = 50
NOISE: Final = "noise"
PHOTOS: Final = "photos"
FILES: Final = "files"
SAVED: Final = "saved"
_FULL_RANGE: Final = ("uint8", "int8", "int16", "uint16")
_PICTURE_TYPES: Final = ("float32", "float16", "uint8", "int8", "int16")
_ORDINARY_WHOLE: Final = (0, 127)
Provider = Callable[[int], Array]


@dataclass(frozen=True)
class InputOptions:
    """What the user asked for. ``num_runs`` None: 50, or as many as the files or pictures hold."""

    num_runs: int | None = None
    seed: int = NATIVE_SEED
    ranges: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    images: Path | None = None
    normalization: str = "auto"
    native: bool = False


@dataclass(frozen=True)
class InputPlan:
    """The inputs of every run: their source, a name and a kind per run, and in words where each input comes from."""

    source: RunInputs
    example_ids: tuple[str, ...]
    kinds: tuple[str, ...]
    described: tuple[str, ...]


class RunInputs:
    """Inputs run by run. Random ones are drawn in order; those of runs to ``remember`` need not be drawn again.

    ``restart`` begins the random inputs anew. Nothing random is drawn for a run whose files cannot be read.
    """

    def __init__(
        self,
        count: int,
        stored: Mapping[int, Provider],
        random: Mapping[int, Provider],
        restart: Callable[[], None] = lambda: None,
    ) -> None:
        self._count = count
        self._stored = stored
        self._random = random
        self._restart = restart
        self._next = 0
        self.remember: frozenset[int] = frozenset()
        self._remembered: dict[int, tuple[Array, ...]] = {}

    def inputs(self, index: int) -> tuple[Array, ...]:
        """Inputs of run ``index``; raises :class:`~evaltools.errors.ImageError` for a picture that cannot be read."""
        if index in self._remembered:
            return self._remembered[index]
        if self._random:
            self._go_to(index)
        values = self._draw(index)
        if index in self.remember:
            self._remembered[index] = values
        return values

    def _go_to(self, index: int) -> None:
        """Draw what comes before that run, from the beginning where that has been passed."""
        if index < self._next:
            self._restart()
            self._next = 0
        while self._next < index:
            with suppress(ImageError):
                self._draw(self._next)

    def _draw(self, index: int) -> tuple[Array, ...]:
        self._next = index + 1
        found = {position: provider(index) for position, provider in self._stored.items()}
        found |= {position: provider(index) for position, provider in self._random.items()}
        return tuple(found[position] for position in range(self._count))


def plan_inputs(model: ModelFile, tensors: Sequence[TensorInfo], options: InputOptions) -> InputPlan:
    """Decide about every input; ``tensors`` are the model's inputs as they are to be filled.

    Raises :class:`UsageError` and its kinds for ranges, files and pictures that do not fit.
    """
    ranges = _ranges(model, tensors, options.ranges)
    files = read_input_files(options.files, [_wanted(*entry) for entry in enumerate(tensors)]) if options.files else {}
    pictures = _pictures(model, tensors, options)
    _require_one_source(tensors, ranges, files, pictures)
    gaussian = GaussianInputs(options.seed)
    stored: dict[int, Provider] = {}
    random: dict[int, Provider] = {}
    described = []
    for position, tensor in enumerate(tensors):
        if position in files:
            stored[position] = _cycling(files[position])
            described.append(f"files, {len(files[position])} example{'' if len(files[position]) == 1 else 's'}")
        elif pictures is not None and position == pictures.position:
            stored[position] = pictures.provider
            described.append(f"pictures in {options.images}, {pictures.words}")
        else:
            random[position], words = _random(tensor, gaussian, ranges.get(position), options.native)
            described.append(words)
    names = _example_names(files, pictures, options.num_runs)
    kind = PHOTOS if pictures is not None else FILES if files else NOISE
    kinds = (kind,) * len(names)
    return InputPlan(RunInputs(len(tensors), stored, random, gaussian.restart), names, kinds, tuple(described))


def _wanted(position: int, tensor: TensorInfo) -> Wanted:
    names = tuple(name for name in (tensor.signature_name, tensor.name) if name) or (str(position),)
    return Wanted(names, tensor.dtype, tensor.shape)


def _cycling(arrays: Sequence[Array]) -> Provider:
    return lambda index: arrays[index % len(arrays)]


@dataclass(frozen=True)
class _Pictures:
    position: int
    provider: Provider
    names: tuple[str, ...]
    words: str


def _pictures(model: ModelFile, tensors: Sequence[TensorInfo], options: InputOptions) -> _Pictures | None:
    if options.images is None:
        return None
    fitting = [
        position
        for position, tensor in enumerate(tensors)
        if len(tensor.shape) == 4 and (tensor.shape[0], tensor.shape[3]) == (1, 3) and tensor.dtype in _PICTURE_TYPES
    ]
    if len(fitting) != 1:
        listed = ", ".join(map(str, tensors))
        raise ModelError(f"{model.path}: --input_images needs one input [1,height,width,3], the model has {listed}")
    folder = list_images(options.images, "--input_images")
    crop = None if model.detection else CLASSIFIER_CROP
    to_tensor = input_transform(model, tensors[fitting[0]], options.normalization, crop_fraction=crop)

    def provide(index: int) -> Array:
        return load_picture(folder.paths[index % len(folder.paths)], to_tensor).values

    words = f"normalization {to_tensor.normalization or 'native'}{'' if crop else ', not cropped (detection)'}"
    return _Pictures(fitting[0], provide, tuple(path.name for path in folder.paths), words)


def _require_one_source(
    tensors: Sequence[TensorInfo],
    ranges: Mapping[int, tuple[float, float]],
    files: Mapping[int, Sequence[Array]],
    pictures: _Pictures | None,
) -> None:
    for position, tensor in enumerate(tensors):
        sources = [
            flag
            for flag, given in (
                ("--input_range", position in ranges),
                ("--input_files", position in files),
                ("--input_images", pictures is not None and position == pictures.position),
            )
            if given
        ]
        if len(sources) > 1:
            raise UsageError(f"{' and '.join(sources)} are both for the input {tensor}; keep one")


def _example_names(
    files: Mapping[int, Sequence[Array]], pictures: _Pictures | None, num_runs: int | None
) -> tuple[str, ...]:
    available = max((len(arrays) for arrays in files.values()), default=0)
    if pictures is not None:
        names = pictures.names
        count = num_runs or max(len(names), available)
        return tuple(f"run {index}: {names[index % len(names)]}" for index in range(count))
    return tuple(f"run {index}" for index in range(num_runs or available or DEFAULT_RUNS))


def _ranges(model: ModelFile, tensors: Sequence[TensorInfo], texts: Sequence[str]) -> dict[int, tuple[float, float]]:
    found: dict[int, tuple[float, float]] = {}
    for text in texts:
        name, low, high = _split_range(text)
        position = 0 if not name and len(tensors) == 1 else model.named("input", name, tensors)
        tensor = tensors[position]
        if position in found:
            raise UsageError(f"--input_range: {name!r} is given twice; keep one")
        if tensor.dtype in ("string", "bool"):
            raise UsageError(f"--input_range={text}: the input {tensor} holds no numbers; leave the flag out")
        _require_in_type(text, tensor, low, high)
        found[position] = (low, high)
    return found


def _require_in_type(text: str, tensor: TensorInfo, low: float, high: float) -> None:
    if tensor.dtype.startswith(("float", "complex")):
        largest = float(np.finfo(tensor.dtype).max)
        if max(abs(low), abs(high)) > largest / 2:
            raise UsageError(f"--input_range={text}: beyond {tensor.dtype}; use limits within +-{largest / 2:g}")
        return
    limits = np.iinfo(tensor.dtype)
    if low != int(low) or high != int(high) or low < float(limits.min) or high > float(limits.max):
        raise UsageError(f"--input_range={text}: the input {tensor} needs whole numbers in {limits.min}..{limits.max}")


def _split_range(text: str) -> tuple[str, float, float]:
    parts = text.rsplit(":", 2)
    name = parts[0] if len(parts) == 3 else ""
    try:
        low, high = (float(number) for number in parts[-2:])
        if np.isfinite([low, high]).all() and low < high and len(parts) >= 2:
            return name, low, high
    except ValueError:
        pass
    raise UsageError(f"--input_range={text}: use NAME:LOW:HIGH with LOW below HIGH, as in ids:0:99")


def _random(
    tensor: TensorInfo, gaussian: GaussianInputs, given: tuple[float, float] | None, native: bool
) -> tuple[Provider, str]:
    """How to draw one input, and the same in words."""
    count = int(np.prod(tensor.shape, dtype=np.int64))
    shape, dtype = tensor.shape, tensor.dtype
    if dtype == "string":
        return lambda _index: gaussian.words(count).reshape(shape), "random words"
    if native:
        return _native(tensor, gaussian, count)
    if dtype == "bool":
        return lambda _index: gaussian.values("bool", count, 0, 1).reshape(shape), "random true and false"
    low, high, why, whole = _value_range(tensor, given)
    words = f"Gaussian in {low:g}..{high:g}{why}"
    if dtype.startswith("complex"):
        part = f"float{int(dtype[7:]) // 2}"

        def complex_numbers(_index: int) -> Array:
            pairs = gaussian.values(part, 2 * count, low, high)
            return pairs.view(dtype).reshape(shape)

        return complex_numbers, words
    if whole:
        return lambda _index: gaussian.whole(dtype, count, int(low), int(high)).reshape(shape), words
    return lambda _index: gaussian.values(dtype, count, low, high).reshape(shape), words


def _native(tensor: TensorInfo, gaussian: GaussianInputs, count: int) -> tuple[Provider, str]:
    dtype, shape = tensor.dtype, tensor.shape
    if dtype == "bool":
        # Drawn as uint8 between 0 and 1 and cut off: always false, but the stream moves on.
        return lambda _index: (gaussian.values("uint8", count, 0, 1) != 0).reshape(shape), "false, as the native tool"
    if np.dtype(dtype).kind == "f":
        low, high = -1.0, 1.0
    else:
        low, high = float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)
    words = f"Gaussian in {low:g}..{high:g}, as the native tool"
    return lambda _index: gaussian.values(dtype, count, low, high).reshape(shape), words


def _value_range(tensor: TensorInfo, given: tuple[float, float] | None) -> tuple[float, float, str, bool]:
    """Lowest and highest value, the reason in words, and whether whole numbers up to the highest are drawn."""
    is_float = tensor.dtype.startswith(("float", "complex"))
    if given is not None:
        return *given, ", as given", not is_float
    if tensor.rows is not None:
        return 0, tensor.rows - 1, f", rows of a table of {tensor.rows}", True
    if is_float:
        return -1, 1, "", False
    limits = np.iinfo(tensor.dtype)
    stated = tensor.stated_range
    if stated is not None and limits.min <= stated.low <= stated.high - 1 <= limits.max:
        whole = (stated.low, stated.high) != (limits.min, limits.max)
        return stated.low, stated.high, ", stated in the model's metadata", whole
    if tensor.dtype in _FULL_RANGE:
        return float(limits.min), float(limits.max), "", False
    return *_ORDINARY_WHOLE, "", True
