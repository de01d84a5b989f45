"""Where the inputs of an inference diff come from: random numbers, files, pictures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from msgspec import Struct

from evaltools.datasets.gaussian import GaussianInputs
from evaltools.datasets.input_files import Wanted, hold_floats, read_input_files
from evaltools.errors import ImageError, UsageError
from evaltools.model import ModelFile, TensorInfo
from evaltools.preprocess import parse_normalization
from evaltools.runtime.session import Array
from evaltools.tasks.framework.image_input import sizes_to_state
from evaltools.tasks.inference_diff.input_options import DEFAULT_RUNS, FILES, NOISE, PHOTOS, InputOptions
from evaltools.tasks.inference_diff.model_pair import ModelPair
from evaltools.tasks.inference_diff.picture_inputs import PictureInputs, pictures_of
from evaltools.tasks.inference_diff.value_ranges import (
    DrawnRange,
    default_range,
    given_ranges,
    narrower,
    native_range,
    range_of_pixels,
)

Ranges = Mapping[int, DrawnRange]
"""The range of the numbers of an input, by position of the input."""
Provider = Callable[[int, Ranges], Array]
"""Gives one input of a run by its number; the values lie in the input's range."""
Words = Callable[[Ranges], str]
"""Says in words where one input comes from."""


class RunInputs:
    """The inputs of every run.

    ``count`` is the number of inputs. ``stored`` and ``random`` give them by position, from files or by chance; an
    input in both is random in the runs for which ``is_noise`` is true. ``ranges`` are the ranges of all numbers.

    Random inputs come from one stream, which ``restart`` sets to its beginning, so that the inputs of a run are the
    same whenever they are asked for. Nothing random is drawn for a run whose files cannot be read. The inputs of the
    runs to ``remember`` and of the last one are kept, and not drawn again.
    """

    def __init__(
        self,
        count: int,
        stored: Mapping[int, Provider],
        random: Mapping[int, Provider],
        ranges: Ranges,
        restart: Callable[[], None] = lambda: None,
        is_noise: Callable[[int], bool] = lambda _index: False,
        remember: Collection[int] = (),
    ) -> None:
        self._count = count
        self._stored = stored
        self._random = random
        self._ranges = dict(ranges)
        self._restart = restart
        self._is_noise = is_noise
        self._next = 0
        self._remember = frozenset(remember)
        self._remembered: dict[int, tuple[Array, ...]] = {}
        self._last: tuple[int, tuple[Array, ...]] | None = None

    def inputs(self, index: int) -> tuple[Array, ...]:
        """Inputs of run ``index``; raises :class:`~evaltools.errors.ImageError` for a picture that cannot be read."""
        if index in self._remembered:
            return self._remembered[index]
        if self._last is not None and self._last[0] == index:
            return self._last[1]
        if self._random:
            self._go_to(index)
        values = self._draw(index)
        self._last = index, values
        if index in self._remember:
            self._remembered[index] = values
        return values

    @property
    def ranges(self) -> dict[int, DrawnRange]:
        """The range of the numbers of each input, by position."""
        return dict(self._ranges)

    def draw_from(self, ranges: Ranges) -> None:
        """Use these ranges from now on, for all runs; an input without one among them keeps its own."""
        self._ranges.update(ranges)
        self._remembered.clear()
        self._last = None
        self._restart()
        self._next = 0

    def _go_to(self, index: int) -> None:
        """Draw the inputs of the runs before run ``index``, if necessary from the beginning of the stream."""
        if index < self._next:
            self._restart()
            self._next = 0
        while self._next < index:
            with suppress(ImageError):
                self._draw(self._next)

    def _draw(self, index: int) -> tuple[Array, ...]:
        self._next = index + 1
        is_noise = self._is_noise(index)
        found = {
            position: provider(index, self._ranges)
            for position, provider in self._stored.items()
            if not (is_noise and position in self._random)
        }
        found |= {
            position: provider(index, self._ranges)
            for position, provider in self._random.items()
            if position not in found
        }
        return tuple(found[position] for position in range(self._count))


class InputPlan(Struct, frozen=True):
    """The inputs of every run: their source, and the name and kind of each run.

    ``tensors`` and ``words`` have one entry per input. ``pictures`` are the user's, if any, in the order of the runs.
    """

    source: RunInputs
    example_ids: tuple[str, ...]
    kinds: tuple[str, ...]
    tensors: tuple[TensorInfo, ...]
    words: tuple[Words, ...]
    pictures: Sequence[Path] = ()

    @property
    def described(self) -> tuple[str, ...]:
        """In words, where each input comes from."""
        return tuple(say(self.ranges) for say in self.words)

    @property
    def ranges(self) -> dict[int, DrawnRange]:
        """The range of the numbers of each input, by position: random ones, and those of pictures."""
        return self.source.ranges

    def narrowed(self) -> dict[int, DrawnRange]:
        """Narrower ranges to try if outputs overflow, by position; empty if there are none."""
        tried = {position: narrower(found, self.tensors[position].dtype) for position, found in self.ranges.items()}
        return {position: found for position, found in tried.items() if found is not None}


def plan_inputs(
    model: ModelFile,
    tensors: Sequence[TensorInfo],
    options: InputOptions,
    remembered: Callable[[int], Collection[int]] = lambda _total: (),
) -> InputPlan:
    """Decide where every input comes from; ``tensors`` are the model's inputs with the shapes of the runs.

    ``remembered`` takes the number of runs, and gives the runs whose inputs are kept in memory.

    Raises :class:`UsageError` and its kinds for ranges, files and pictures that do not fit.
    """
    if not options.native:
        _require_sizes(model, tensors)
    given = given_ranges(model, tensors, options.ranges)
    files = read_input_files(options.files, [_wanted(*entry) for entry in enumerate(tensors)]) if options.files else {}
    pictures = pictures_of(model, tensors, options, given)
    _require_one_source(tensors, options, given, files, pictures)
    kinds = _kinds(options, files, pictures)
    ranges = _ranges(model, tensors, options, given, files, pictures)
    gaussian = GaussianInputs(options.seed)
    stored: dict[int, Provider] = {}
    random: dict[int, Provider] = {}
    words: list[Words] = []
    for position, tensor in enumerate(tensors):
        if position in files:
            stored[position] = _cycling(files[position])
            words.append(saying(f"files, {len(files[position])} example{'' if len(files[position]) == 1 else 's'}"))
            continue
        draw, say = _random(tensor, gaussian, position, options.native)
        gets_pictures = pictures is not None and position == pictures.position
        if pictures is not None and gets_pictures:
            stored[position] = pictures.provide
            say = _saying_both(say, pictures, kinds)
        if not gets_pictures or NOISE in kinds:
            random[position] = draw
        words.append(say)
    source = RunInputs(
        len(tensors),
        stored,
        random,
        ranges,
        gaussian.restart,
        lambda index: kinds[index % len(kinds)] == NOISE,
        remembered(len(kinds)),
    )
    names = tuple(
        f"run {index}: {pictures.path(index).name}" if pictures is not None and kind == PHOTOS else f"run {index}"
        for index, kind in enumerate(kinds)
    )
    return InputPlan(source, names, kinds, tuple(tensors), tuple(words), _own_pictures(pictures, len(kinds)))


def fed_as_stated(pair: ModelPair, options: InputOptions) -> ModelPair:
    """Two models, given floats where a user states real numbers, which a quantised input may not hold."""
    is_real = bool(options.ranges) or options.normalization != "auto" or hold_floats(options.files)
    return pair.taking_floats if is_real else pair


def _wanted(position: int, tensor: TensorInfo) -> Wanted:
    names = tuple(name for name in (tensor.signature_name, tensor.name) if name) or (str(position),)
    return Wanted(names, tensor.dtype, tensor.shape)


def _cycling(arrays: Sequence[Array]) -> Provider:
    return lambda index, _ranges: arrays[index % len(arrays)]


def saying(words: str) -> Words:
    """These words, whatever the ranges."""
    return lambda _ranges: words


def _require_sizes(model: ModelFile, tensors: Sequence[TensorInfo]) -> None:
    """Raise :class:`UsageError` for a picture whose sizes neither the model nor the user states."""
    for tensor in tensors:
        if sizes := sizes_to_state(tensor):
            raise UsageError(
                f"{model.path} leaves height and width of its input {tensor} open, which would be a picture of 1 x 1; "
                f"state them, as in --input_shape={tensor.signature_name or tensor.name}:{sizes}"
            )


def _require_one_source(
    tensors: Sequence[TensorInfo],
    options: InputOptions,
    given: Mapping[int, DrawnRange],
    files: Mapping[int, Sequence[Array]],
    pictures: PictureInputs | None,
) -> None:
    for position, tensor in enumerate(tensors):
        gets_pictures = pictures is not None and position == pictures.position
        is_asked_for = options.kind != "auto" and options.images is None
        not_both = position in files or (position in given and not tensor.dtype.startswith("float"))
        sources = [
            flag
            for flag, is_given in (
                ("--input_range", position in given),
                ("--input_files", position in files),
                ("--input_images", gets_pictures and options.images is not None),
                (f"--inputs={options.kind}", gets_pictures and is_asked_for and not_both),
            )
            if is_given
        ]
        if len(sources) > 1:
            raise UsageError(f"{' and '.join(sources)} are both for the input {tensor}; keep one")


def _kinds(
    options: InputOptions, files: Mapping[int, Sequence[Array]], pictures: PictureInputs | None
) -> tuple[str, ...]:
    """The kind of each run; noise and pictures take turns."""
    available = max((len(arrays) for arrays in files.values()), default=0)
    if pictures is None:
        return (FILES if files else NOISE,) * (options.num_runs or available or DEFAULT_RUNS)
    turns = (NOISE, PHOTOS) if pictures.with_noise else (PHOTOS,)
    held = DEFAULT_RUNS if pictures.is_sample else len(turns) * len(pictures.paths)
    count = options.num_runs or max(held, available)
    return tuple(turns[index % len(turns)] for index in range(count))


def _own_pictures(pictures: PictureInputs | None, count: int) -> Sequence[Path]:
    if pictures is None or pictures.is_sample:
        return ()
    return tuple(map(pictures.path, range(count))) if pictures.with_noise else pictures.paths


def _ranges(
    model: ModelFile,
    tensors: Sequence[TensorInfo],
    options: InputOptions,
    given: Mapping[int, DrawnRange],
    files: Mapping[int, Sequence[Array]],
    pictures: PictureInputs | None,
) -> dict[int, DrawnRange]:
    """The range of each input of numbers that is not read from files."""
    found = {}
    for position, tensor in enumerate(tensors):
        if position in files or tensor.dtype in ("string", "bool"):
            continue
        if options.native:
            found[position] = native_range(tensor)
        elif position in given:
            found[position] = given[position]
        elif pictures is not None and position == pictures.position and options.normalization != "auto":
            found[position] = range_of_pixels(tensor, parse_normalization(options.normalization), model)
        else:
            found[position] = default_range(model, tensor)
    return found


def _saying_both(say_noise: Words, pictures: PictureInputs, kinds: Sequence[str]) -> Words:
    def say(ranges: Ranges) -> str:
        words = pictures.words(ranges[pictures.position])
        if NOISE not in kinds:
            return words
        photos = kinds.count(PHOTOS)
        return f"{say_noise(ranges)} ({_count(kinds.count(NOISE))}); {words} ({_count(photos)})"

    return say


def _count(runs: int) -> str:
    return f"{runs} run{'' if runs == 1 else 's'}"


def _random(tensor: TensorInfo, gaussian: GaussianInputs, position: int, native: bool) -> tuple[Provider, Words]:
    """How to draw one input by chance, as a function and in words."""
    count = int(np.prod(tensor.shape, dtype=np.int64))
    shape, dtype = tensor.shape, tensor.dtype
    if dtype == "string":
        return lambda _index, _ranges: gaussian.words(count).reshape(shape), saying("random words")
    if dtype == "bool" and native:
        # Drawn as uint8 between 0 and 1 and cut off: always false, but the stream moves on.
        say = saying("false, as the native tool")
        return lambda _index, _ranges: (gaussian.values("uint8", count, 0, 1) != 0).reshape(shape), say
    if dtype == "bool":
        return lambda _index, _ranges: gaussian.values("bool", count, 0, 1).reshape(shape), saying(
            "random true and false"
        )

    def draw(_index: int, ranges: Ranges) -> Array:
        drawn = ranges[position]
        if dtype.startswith("complex"):
            pairs = gaussian.values(f"float{int(dtype[7:]) // 2}", 2 * count, drawn.low, drawn.high)
            return pairs.view(dtype).reshape(shape)
        if drawn.whole:
            return gaussian.whole(dtype, count, int(drawn.low), int(drawn.high)).reshape(shape)
        return gaussian.values(dtype, count, drawn.low, drawn.high).reshape(shape)

    return draw, lambda ranges: str(ranges[position])
