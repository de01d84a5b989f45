"""ImageNet classification: Top-1 to Top-10 accuracy over a folder of labelled pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import numpy as np
from msgspec import Meta, Struct

from evaltools.datasets.image_folder import ImageFolder, list_images
from evaltools.datasets.labels import read_denylist, read_labels
from evaltools.datasets.order import Order, chosen
from evaltools.engine.task import Prepared
from evaltools.errors import DataError, ModelError
from evaltools.gates.accuracy_verdict import DEFAULT_MARGIN
from evaltools.lazy_sequence import LazySequence
from evaltools.metrics.classification import best_classes, rank_of_label
from evaltools.metrics.native_numbers import shortest
from evaltools.model import ModelFile, TensorInfo
from evaltools.preprocess import ImageToTensor
from evaltools.runtime.session import Array
from evaltools.tasks.shared.image_input import (
    ACCEPTED_TYPES,
    NATIVE_TYPES,
    StatedLayout,
    check_picture_input,
    input_transform,
    require_native_channels,
)
from evaltools.tasks.shared.picture_task import PictureTask
from evaltools.tasks.shared.request import require_margin

TOP_K: Final = 10


class ImagenetOptions(Struct, frozen=True):
    """The options of an ImageNet evaluation, named as on the command line; ``native`` is ``--compat=native``.

    ``margin`` is the change of accuracy, 0..1, that counts as none in verdicts.
    """

    ground_truth_images_path: Path
    ground_truth_labels: Path
    model_output_labels: Path
    denylist_file_path: Path | None = None
    num_images: int = 0
    order: Order = "native"
    seed: int = 1
    normalization: str = "auto"
    channel_order: str = "rgb"
    input_layout: StatedLayout = "auto"
    label_offset: int | None = None
    label_check: bool = True
    record_examples: bool = False
    margin: float = DEFAULT_MARGIN
    native: bool = False

    def __post_init__(self) -> None:
        require_margin(self.margin)
        if self.native:
            require_native_channels(self.input_layout, self.channel_order)


class TopKObservation(Struct, frozen=True):
    """The best classes of one output with their raw scores, best first, and the rank of the right label.

    ``rank`` is 0 for a right top-1 answer, None where the label is not among ``classes``. ``nonfinite`` counts NaN and
    infinite scores.
    """

    classes: tuple[int, ...]
    scores: tuple[float, ...]
    rank: Annotated[int, Meta(ge=0)] | None
    nonfinite: int

    @property
    def top1(self) -> int:
        """The class that came first; -1 in a damaged record without any."""
        return self.classes[0] if self.classes else -1


class LabelledImages(Struct, frozen=True):
    """Pictures with their right labels, after denylist, order and ``num_images``, and what was left out."""

    folder: ImageFolder
    paths: Sequence[Path]
    truths: tuple[str, ...]
    denylisted: int
    truths_sha256: str


class ImagenetTask(PictureTask[TopKObservation]):
    """Ranks the classes of each picture; build it with :func:`build_task`.

    ``class_labels`` has the label of each class of the output, None for a class without one. ``scores_dtype`` is given
    where the output's bytes are to be read as another type than its own (what the native tool does).
    """

    observation_type: Final = TopKObservation

    def __init__(
        self,
        images: LabelledImages,
        transforms: Sequence[ImageToTensor],
        class_labels: Sequence[str | None],
        scores_dtype: np.dtype[np.generic] | None = None,
    ) -> None:
        super().__init__(images.paths, transforms, images.truths)
        self.images: Final = images
        self.class_labels: Final = tuple(class_labels)
        self.top_k: Final = min(TOP_K, len(class_labels))
        self._scores_dtype = scores_dtype

    def observe(
        self, prepared: Prepared, outputs: Sequence[Array], reference: Sequence[Array] | None = None
    ) -> TopKObservation:
        """Rank the classes of the first output, which has one score per class in any shape."""
        scores = outputs[0].ravel()
        if self._scores_dtype is not None:
            scores = np.frombuffer(scores.tobytes(), self._scores_dtype)[: len(self.class_labels)]
        classes = best_classes(scores, self.top_k).tolist()
        return TopKObservation(
            classes=tuple(classes),
            scores=tuple(shortest(float(scores[index])) for index in classes),
            rank=rank_of_label(classes, self.class_labels, prepared.context),
            nonfinite=int(np.count_nonzero(~np.isfinite(scores.astype(np.float32)))),
        )

    def with_input(self, to_tensor: ImageToTensor) -> ImagenetTask:
        """The same task with other input values, only of the model under test."""
        return ImagenetTask(self.images, [to_tensor], self.class_labels, self._scores_dtype)


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
    if class_count(model) < 2 or (native and (len(output.shape) != 2 or class_count(model) < TOP_K)):
        shapes = f"[1,N] with N >= {TOP_K}" if native else "[1,N] or [1,1,1,N] with N >= 2"
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


def load_labelled_images(options: ImagenetOptions) -> LabelledImages:
    """List pictures and labels, check that they fit, apply denylist, order and ``num_images``."""
    folder = list_images(options.ground_truth_images_path, "--ground_truth_images_path", options.native)
    truths = read_labels(options.ground_truth_labels, "--ground_truth_labels", options.native)
    if len(truths.lines) != len(folder.paths):
        left_out = f" ({len(folder.skipped)} other files were left out)" if folder.skipped else ""
        message = (
            f"{options.ground_truth_images_path} has {len(folder.paths)} pictures{left_out}, "
            f"{options.ground_truth_labels} has {len(truths.lines)} lines. Line i is the label of the i-th picture by "
            "sorted name, so both numbers must be equal"
        )
        raise DataError(message)
    denied: frozenset[int] = frozenset()
    if options.denylist_file_path is not None:
        denied = read_denylist(options.denylist_file_path, "--denylist_file_path", len(truths.lines))
    kept = [index for index in range(len(truths.lines)) if index not in denied]
    if not kept:
        raise DataError(f"--denylist_file_path={options.denylist_file_path} leaves no picture")
    kept = chosen(kept, options.num_images, options.order, options.seed)
    blank = [index + 1 for index in kept if not truths.lines[index]]
    if blank:
        raise DataError(f"{options.ground_truth_labels}, line {blank[0]} is empty; every picture needs a label")
    return LabelledImages(
        folder=folder,
        paths=LazySequence(kept, folder.paths.__getitem__),
        truths=tuple(truths.lines[index] for index in kept),
        denylisted=len(denied),
        truths_sha256=truths.sha256,
    )


def build_task(
    models: Sequence[ModelFile], images: LabelledImages, class_labels: Sequence[str | None], options: ImagenetOptions
) -> ImagenetTask:
    """The task over labelled pictures; ``class_labels`` has one label per class of the output.

    ``models`` are the one under test and, if it is another, the reference's.
    """
    model = models[0]
    scores_dtype = None
    if options.native and model.outputs[0].dtype != model.inputs[0].dtype:
        scores_dtype = np.dtype(model.inputs[0].dtype)
        if scores_dtype.itemsize > np.dtype(model.outputs[0].dtype).itemsize:
            message = (
                f"{model.path}: input {model.inputs[0].dtype}, output {model.outputs[0].dtype}. The native tool takes "
                "the output for the input's type and reads beyond its end; that cannot be reproduced. "
                "Leave out --compat=native"
            )
            raise ModelError(message)
    transforms = [
        input_transform(
            each,
            each.inputs[0],
            options.normalization,
            options.native,
            layout=options.input_layout,
            channel_order=options.channel_order,
        )
        for each in models
    ]
    return ImagenetTask(images, transforms, class_labels, scores_dtype)


def units_of(model: ModelFile, native: bool) -> Callable[[float], float]:
    """What makes a number of a raw score of the model: it dequantises it.

    Not where the native tool reads the output as the input's type.
    """
    output = model.outputs[0]
    if output.scale is None or (native and output.dtype != model.inputs[0].dtype):
        return float
    return partial(_dequantised, output.scale, output.zero_point or 0)


def _dequantised(scale: float, zero_point: int, score: float) -> float:
    return scale * (score - zero_point)
