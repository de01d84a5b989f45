"""ImageNet classification: Top-1 to Top-10 accuracy over a folder of labelled pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, cast

import numpy as np
from msgspec import Struct

from evaltools.datasets.image_folder import FolderPaths, ImageFolder, list_images, printable_name
from evaltools.datasets.labels import read_denylist, read_labels
from evaltools.datasets.order import Order, chosen
from evaltools.engine.task import Example, Prepared
from evaltools.errors import DataError, ModelError
from evaltools.gates.accuracy_verdict import DEFAULT_MARGIN
from evaltools.lazy_sequence import LazySequence
from evaltools.metrics.classification import best_classes, rank_of_label
from evaltools.metrics.native_numbers import shortest
from evaltools.model import ModelFile, TensorInfo
from evaltools.preprocess import ImageToTensor
from evaltools.request import Request
from evaltools.runtime import Session
from evaltools.runtime.session import Array
from evaltools.tasks.shared.image_input import (
    ACCEPTED_TYPES,
    NATIVE_TYPES,
    StatedLayout,
    check_picture_input,
    input_transform,
    prepare_picture,
    prepare_picture_elsewhere,
    read_channels,
)
from evaltools.tasks.shared.measuring import require_stated
from evaltools.tasks.shared.request import TaskRequest, read_margin, shared_fields

TOP_K: Final = 10


class ImagenetOptions(Struct, frozen=True):
    """The options of an ImageNet evaluation, named as on the command line; ``native`` is ``--compat=native``."""

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
    native: bool = False


class TopKObservation(Struct, frozen=True):
    """The best classes of one output with their raw scores, best first, and the rank of the right label.

    ``rank`` is 0 for a right top-1 answer, None where the label is not among ``classes``. ``nonfinite`` counts NaN and
    infinite scores.
    """

    classes: tuple[int, ...]
    scores: tuple[float, ...]
    rank: int | None
    nonfinite: int

    @property
    def top1(self) -> int:
        """The class that came first."""
        return self.classes[0]


class LabelledImages(Struct, frozen=True):
    """Pictures with their right labels, after denylist, order and ``num_images``, and what was left out."""

    folder: ImageFolder
    paths: FolderPaths
    truths: tuple[str, ...]
    denylisted: int
    truths_sha256: str


class ImagenetTask:
    """Follows :class:`evaltools.engine.task.Task`; build it with :func:`build_task`.

    ``class_labels`` has the label of each class of the output, None for a class without one. ``scores_dtype`` is given
    where the output's bytes are to be read as another type than its own (what the native tool does). ``quantization``
    is scale and zero point of the scores. ``reference_tensor`` makes the input of the reference's model, where that is
    another.
    """

    observation_type: Final = TopKObservation
    in_order: Final = False
    keeps_state: Final = False

    def __init__(
        self,
        images: LabelledImages,
        to_tensor: ImageToTensor,
        class_labels: Sequence[str | None],
        scores_dtype: np.dtype[np.generic] | None = None,
        quantization: tuple[float, int] = (1.0, 0),
        reference_tensor: ImageToTensor | None = None,
    ) -> None:
        self.images: Final = images
        self.to_tensor: Final = to_tensor
        self.class_labels: Final = tuple(class_labels)
        self.examples: Final = LazySequence(range(len(images.paths)), partial(_example, images.paths.names))
        self.top_k: Final = min(TOP_K, len(class_labels))
        self._scores_dtype = scores_dtype
        self._quantization = quantization
        self._others = () if reference_tensor is None else (reference_tensor,)

    def prepare(self, example: Example) -> Prepared:
        """Decode, crop, resize and convert one picture; the context is its right label."""
        return prepare_picture(*self._picture(example))

    def recipe(self, example: Example) -> Callable[[], Prepared]:
        """What :meth:`prepare` does, for another process."""
        return partial(prepare_picture_elsewhere, *self._picture(example))

    def _picture(self, example: Example) -> tuple[Path, ImageToTensor, str, tuple[ImageToTensor, ...]]:
        return self.images.paths[example.index], self.to_tensor, self.images.truths[example.index], self._others

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

    def in_real_units(self, score: float) -> float:
        """A raw score, dequantised."""
        scale, zero_point = self._quantization
        return score if scale == 1.0 and not zero_point else scale * (score - zero_point)

    def with_input(self, to_tensor: ImageToTensor) -> ImagenetTask:
        """The same task with other input values, without those of the reference's model."""
        return ImagenetTask(self.images, to_tensor, self.class_labels, self._scores_dtype, self._quantization)

    def beside(self, reference: ImagenetTask) -> ImagenetTask:
        """The same task where the reference is another model, whose inputs ``reference`` makes."""
        given = self.images, self.to_tensor, self.class_labels, self._scores_dtype, self._quantization
        return ImagenetTask(*given, reference_tensor=reference.to_tensor)


def _example(names: Sequence[str], index: int) -> Example:
    return Example(index, printable_name(names[index]))


def check_model(model: ModelFile, native: bool = False, layout: StatedLayout = "auto") -> None:
    """Refuse a model that is no image classifier; raises :class:`ModelError` naming what was found."""
    if len(model.inputs) != 1 or len(model.outputs) != 1:
        message = (
            f"{model.path} is no image classifier: it has {_listed(model.inputs, 'input')} and "
            f"{_listed(model.outputs, 'output')}; one picture in and one vector of scores out is expected"
        )
        raise ModelError(message)
    types = NATIVE_TYPES if native else ACCEPTED_TYPES
    check_picture_input(model, types, "nhwc" if native else layout)
    output = model.outputs[0]
    if class_count(model) < 2 or (native and (len(output.shape) != 2 or class_count(model) < TOP_K)):
        shapes = f"[1,N] with N >= {TOP_K}" if native else "[1,N] or [1,1,1,N] with N >= 2"
        raise ModelError(f"{model.path}: the output {output} is no vector of scores; expected {shapes}")
    if output.dtype not in types:
        message = f"{model.path}: the output {output} has the type {output.dtype}; accepted are {', '.join(types)}"
        raise ModelError(message)


def check_session(session: Session, model: ModelFile) -> None:
    """Refuse a model whose tensors at run time are not those that its file states; raises :class:`ModelError`."""
    advice = "convert the model again"
    require_stated(model, session, "input", model.inputs[0], session.inputs[0], advice)
    require_stated(model, session, "output", model.outputs[0], session.outputs[0], advice)


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
        paths=folder.paths.chosen(kept),
        truths=tuple(truths.lines[index] for index in kept),
        denylisted=len(denied),
        truths_sha256=truths.sha256,
    )


def build_task(
    model: ModelFile, images: LabelledImages, class_labels: Sequence[str | None], options: ImagenetOptions
) -> ImagenetTask:
    """The task over labelled pictures; ``class_labels`` has one label per class of the output."""
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
    to_tensor = input_transform(
        model,
        model.inputs[0],
        options.normalization,
        options.native,
        layout=options.input_layout,
        channel_order=options.channel_order,
    )
    output = model.outputs[0]
    is_quantised = scores_dtype is None and output.scale is not None
    quantization = (output.scale or 1.0, output.zero_point or 0) if is_quantised else (1.0, 0)
    return ImagenetTask(images, to_tensor, class_labels, scores_dtype, quantization)


class ImagenetRequest(TaskRequest, frozen=True):
    """What to evaluate with which configurations.

    ``margin`` is the change of accuracy, 0..1, that counts as none in verdicts. ``reference_model_file`` None: the
    reference runs the same model.
    """

    options: ImagenetOptions
    reference_model_file: Path | None = None
    label_check: bool = True
    record_examples: bool = False
    margin: float = DEFAULT_MARGIN


def read_request(request: Request) -> ImagenetRequest:
    """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""
    given = request.options
    options = ImagenetOptions(
        ground_truth_images_path=Path(given.text("ground_truth_images_path")),
        ground_truth_labels=Path(given.text("ground_truth_labels")),
        model_output_labels=Path(given.text("model_output_labels")),
        denylist_file_path=given.path("denylist_file_path"),
        num_images=given.number("num_images"),
        order=cast(Order, given.text("order")),
        seed=given.number("seed"),
        normalization=given.text("normalization"),
        label_offset=given.number("label_offset") if "label_offset" in given else None,
        native=request.is_native,
        **read_channels(request),
    )
    return ImagenetRequest(
        **shared_fields(request),
        options=options,
        reference_model_file=given.path("reference_model_file"),
        label_check=given.is_on("label_check"),
        record_examples=given.is_on("record_examples"),
        margin=read_margin(given),
    )
