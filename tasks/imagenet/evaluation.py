"""ImageNet classification of labelled pictures as a task: what is checked, how a picture is fed, what is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evaltools.datasets.image_folder import printable_name
from evaltools.datasets.labels import LabelFile, labels_beside, read_labels
from evaltools.errors import DataError, ModelError
from evaltools.model import ModelFile
from evaltools.preprocess import ImageToTensor
from evaltools.runtime.session import Array
from evaltools.tasks.framework.definition import Example, Setting, Task, TopK, Trial, topk
from evaltools.tasks.framework.image_input import (
    CLASSIFIER_CROP,
    channel_order_of,
    describe_normalization,
    input_transform,
    load_picture,
)
from evaltools.tasks.framework.pictures import picture_transform
from evaltools.tasks.framework.steps import Prepare
from evaltools.tasks.framework.tensors import Outputs, TaskTensor
from evaltools.tasks.imagenet.data import LabelledImages, check_model, class_count
from evaltools.tasks.imagenet.label_check import Labels, explain_label_count, require_fitting_labels, shifted


def classification(
    images: LabelledImages,
    labels_path: Path,
    label_offset: int | None,
    label_check: bool,
    normalization: str,
    setting: Setting,
) -> Task:
    """The task over labelled pictures; raises :class:`DataError` and :class:`ModelError` for what does not fit."""
    model = setting.models[0]
    for each in setting.models:
        check_model(each, setting.native, setting.input_layout)
    classes = class_count(model)
    labels = read_labels(labels_path, "--model_output_labels", setting.native)
    missing = classes - len(labels.lines)
    if label_offset is None and (abs(missing) > 1 or (missing and setting.native)):
        raise DataError(f"{_label_count(labels_path, classes, labels)}. Take the label list that belongs to this model")
    by_class = shifted(labels.lines, classes, label_offset or 0)
    if label_check and not setting.native and not set(images.truths) & set(by_class):
        raise DataError(_no_common_label(model, labels, images))
    for other in setting.models[1:]:
        _require_same_classes(other, model, classes)
    fed_as = partial(_fed_as, setting.native)
    read = Labels(labels.lines, label_offset or 0, by_class, fed_as, setting.channel_order or "rgb")
    metric = topk(by_class)
    to_tensor = input_transform(
        model,
        model.inputs[0],
        normalization,
        setting.native,
        layout=setting.input_layout,
        channel_order=setting.channel_order,
    )
    is_checked = label_check and not setting.native
    return Task(
        examples=[
            Example(printable_name(path.name), path, truth)
            for path, truth in zip(images.paths, images.truths, strict=True)
        ],
        prepare=fed_as(normalization),
        score=partial(_native_score, metric, _native_type(model)) if setting.native else metric.score,
        metrics=[metric],
        check=partial(_check, read, labels_path, labels, label_offset) if is_checked else None,
        facts=facts_of(images, labels, label_offset or 0, to_tensor),
        notes=_notes(images, labels, by_class),
    )


def facts_of(images: LabelledImages, labels: LabelFile, label_offset: int, to_tensor: ImageToTensor) -> dict[str, str]:
    """What decides the figures beside the pictures, the model and the configurations."""
    return {
        "ground truth": images.truths_sha256[:12],
        "labels of the model": labels.sha256[:12],
        "label offset": str(label_offset),
        "pictures that were left out": str(images.denylisted),
        "normalization": describe_normalization(to_tensor),
        "channel order": channel_order_of(to_tensor),
    }


def _fed_as(native: bool, normalization: str) -> Prepare:
    return partial(picture_input, normalization=normalization, native=native)


def picture_input(path: Path, tensors: Sequence[TaskTensor], normalization: str, native: bool) -> tuple[Array, ...]:
    """The square in the middle of a picture, as the native tool feeds it; ``native``: whatever the model's metadata."""
    to_tensor = picture_transform(tensors[0], normalization, CLASSIFIER_CROP, native)
    return (load_picture(path, to_tensor).values,)


def _native_type(model: ModelFile) -> np.dtype[np.generic]:
    """The type as which the native tool reads scores, the input's; raises :class:`ModelError` for a larger one."""
    taken, own = np.dtype(model.inputs[0].dtype), np.dtype(model.outputs[0].dtype)
    if taken.itemsize > own.itemsize:
        raise ModelError(
            f"{model.path}: input {taken}, output {own}. The native tool takes the output for the input's type and "
            "reads beyond its end; that cannot be reproduced. Leave out --compat=native"
        )
    return taken


def _native_score(
    metric: TopK, taken: np.dtype[np.generic], outputs: Outputs, target: str
) -> dict[str, npt.NDArray[np.float64]]:
    """The ranking of the output's bytes as numbers of the input's type."""
    scores = outputs[0].ravel()
    if taken == scores.dtype:
        return metric.score(outputs, target)
    return {metric.name: metric.rank(np.frombuffer(scores.tobytes(), taken)[: len(metric.labels)], target)}


def _check(read: Labels, path: Path, labels: LabelFile, label_offset: int | None, trial: Trial) -> list[str]:
    """Raise :class:`DataError` where another reading of the labels, or other input values, fit far better."""
    classes = len(read.by_class)
    if label_offset is None and len(read.lines) != classes:
        raise DataError(f"{_label_count(path, classes, labels)}.\n  {explain_label_count(read, trial)}")
    return require_fitting_labels(read, trial)


def _notes(images: LabelledImages, labels: LabelFile, by_class: Sequence[str | None]) -> list[str]:
    """What is odd about the files."""
    found = images.folder.remarks()
    repeated = [label for label, count in Counter(labels.lines).items() if count > 1]
    if repeated:
        example = f"such as {repeated[0]!r}; either output counts as right"
        found.append(f"labels that stand for more than one output: {len(repeated)}, {example}")
    unknown = sorted(set(images.truths) - set(by_class))
    if unknown:
        example = f"such as {unknown[0]!r}; they count as wrong"
        found.append(f"ground truth labels that are not in the label list: {len(unknown)}, {example}")
    return found


def _require_same_classes(reference: ModelFile, model: ModelFile, classes: int) -> None:
    """Raise :class:`DataError` where the reference's model cannot be compared."""
    if class_count(reference) != classes:
        raise DataError(
            f"{reference.path} has {class_count(reference)} scores, {model.path} has {classes}; models that are "
            "compared need the same classes"
        )


def _label_count(path: Path, classes: int, labels: LabelFile) -> str:
    return f"{path} has {len(labels.lines)} lines, the model's output has {classes}"


def _no_common_label(model: ModelFile, labels: LabelFile, images: LabelledImages) -> str:
    """Names every list that was tried."""
    beside = labels_beside(model.path)
    others = [each for each in beside if each != labels.path] if labels.path in beside else []
    tried = [f"{_list_name(model, labels.path)} (such as {labels.lines[-1]!r})"]
    tried += [_list_name(model, each) for each in others]
    return (
        f"none of the {len(set(images.truths))} labels in {images.truths_path} (such as {images.truths[0]!r}) is in "
        f"{', nor in '.join(tried)}. Both files must use the same words, letter for letter; --labels=FILE names the "
        "labels of the model's outputs"
    )


def _list_name(model: ModelFile, path: Path) -> str:
    return f"the metadata of {path}" if path == model.path else str(path)
