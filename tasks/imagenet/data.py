"""Labelled pictures, and which models classify them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.datasets.image_folder import ImageFolder, list_images
from evaltools.datasets.labels import read_denylist, read_labels
from evaltools.datasets.order import Order, chosen
from evaltools.errors import DataError, ModelError, UsageError
from evaltools.lazy_sequence import LazySequence
from evaltools.model import ModelFile, TensorInfo
from evaltools.tasks.framework.image_input import ACCEPTED_TYPES, NATIVE_TYPES, StatedLayout, check_picture_input

_NATIVE_K: Final = 10


class LabelledImages(Struct, frozen=True):
    """Pictures with their right labels of a file, after denylist, order and ``num_images``, and what was left out."""

    folder: ImageFolder
    paths: Sequence[Path]
    truths: tuple[str, ...]
    denylisted: int
    truths_sha256: str
    truths_path: Path


def check_model(model: ModelFile, native: bool = False, layout: StatedLayout = "auto") -> None:
    """Refuse a model that is not an image classifier; raises :class:`ModelError` naming what was found."""
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        message = (
            f"{model.path} is not an image classifier: it has {_listed(model.inputs, 'input')} and "
            f"{_listed(model.outputs, 'output')}; one picture in and one vector of scores out is expected"
        )
        raise ModelError(message)
    types = NATIVE_TYPES if native else ACCEPTED_TYPES
    check_picture_input(model, types, "nhwc" if native else layout)
    output = model.outputs[0]
    if class_count(model) < 2 or (native and (len(output.shape) != 2 or class_count(model) < _NATIVE_K)):
        shapes = f"[1,N] with N >= {_NATIVE_K}" if native else "[1,N] or [1,1,1,N] with N >= 2"
        raise ModelError(f"{model.path}: the output {output} is not a vector of scores; expected {shapes}")
    if output.dtype not in types:
        message = f"{model.path}: the output {output} has the type {output.dtype}; accepted are {', '.join(types)}"
        raise ModelError(message)


def _listed(tensors: Sequence[TensorInfo], word: str) -> str:
    names = ", ".join(str(tensor) for tensor in tensors[:4])
    return f"{len(tensors)} {word}{'' if len(tensors) == 1 else 's'} ({names})"


def class_count(model: ModelFile) -> int:
    """Number of scores in the output: the only size that is not 1, else 0."""
    sizes = [size for size in model.outputs[0].shape if size != 1]
    return sizes[0] if len(sizes) == 1 else 0


def load_labelled_images(
    images: Path,
    labels: Path,
    denylist: Path | None = None,
    num_images: int = 0,
    order: Order = "native",
    seed: int = 1,
    native: bool = False,
) -> LabelledImages:
    """List pictures and labels, check that they fit, leave out what the denylist names, take ``num_images`` of them."""
    if num_images < 0:
        raise UsageError(f"--num_images={num_images}: use 0 for all pictures, or how many to take")
    folder = list_images(images, "--ground_truth_images_path", native)
    truths = read_labels(labels, "--ground_truth_labels", native)
    if len(truths.lines) != len(folder.paths):
        left_out = f" ({len(folder.skipped)} other files were left out)" if folder.skipped else ""
        message = (
            f"{images} has {len(folder.paths)} pictures{left_out}, "
            f"{labels} has {len(truths.lines)} lines. Line i is the label of the i-th picture by "
            "sorted name, so both numbers must be equal"
        )
        raise DataError(message)
    denied: frozenset[int] = frozenset()
    if denylist is not None:
        denied = read_denylist(denylist, "--denylist_file_path", len(truths.lines))
    kept = [index for index in range(len(truths.lines)) if index not in denied]
    if not kept:
        raise DataError(f"--denylist_file_path={denylist} leaves no picture")
    kept = chosen(kept, num_images, order, seed)
    blank = [index + 1 for index in kept if not truths.lines[index]]
    if blank:
        raise DataError(f"{labels}, line {blank[0]} is empty; every picture needs a label")
    return LabelledImages(
        folder=folder,
        paths=LazySequence(kept, folder.paths.__getitem__),
        truths=tuple(truths.lines[index] for index in kept),
        denylisted=len(denied),
        truths_sha256=truths.sha256,
        truths_path=labels,
    )
