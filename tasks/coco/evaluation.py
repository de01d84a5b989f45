"""Detection in pictures as a task: what is checked, how a picture is fed, and how its outputs are read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from evaltools.datasets.image_folder import printable_name
from evaltools.datasets.labels import LabelFile, read_labels
from evaltools.datasets.order import Order
from evaltools.errors import DataError, UsageError
from evaltools.model import ModelFile
from evaltools.tasks.coco.boxes import Boxes, Judging, data_of, facts_of
from evaltools.tasks.coco.classes import stated_mapping
from evaltools.tasks.coco.detector import DetectorOptions, detector_input
from evaltools.tasks.coco.heads import candidates_of
from evaltools.tasks.coco.objects import FoundObjects
from evaltools.tasks.coco.outputs import NATIVE_ORDER, operator_output_map, stated_output_map
from evaltools.tasks.coco.reading import Choice, DetectionData, Read, Side, choice_of, fed, reader_of
from evaltools.tasks.coco.truth import EvaluatedPictures, dense_category_ids, load_pictures
from evaltools.tasks.framework.definition import Checked, Example, Task, Trial
from evaltools.tasks.framework.tensors import Outputs


def load_data(
    models: Sequence[ModelFile],
    options: DetectorOptions,
    images: Path,
    annotations: Path | None = None,
    proto: Path | None = None,
    labels_path: Path | None = None,
    num_images: int = 0,
    order: Order = "native",
    seed: int = 1,
) -> DetectionData:
    """Pictures, their objects, and how each model may be read; raises :class:`UsageError` and its kinds."""
    if num_images < 0:
        raise UsageError(f"--num_images={num_images}: use 0 for all pictures, or how many to take")
    labels = None if labels_path is None else read_labels(labels_path, "--model_output_labels")
    candidates = [candidates_of(model, options) for model in models]
    inputs = [detector_input(model, options) for model in models]
    pictures = load_pictures(
        images,
        annotations,
        proto,
        labels.lines if labels else (),
        num_images,
        options.native,
        raw_size=(inputs[0].width, inputs[0].height),
        order=order,
        seed=seed,
    )
    sides = []
    for model, to_tensor, fitting in zip(models, inputs, candidates, strict=True):
        ids = dense_category_ids(pictures.truth, {each.head.classes for each in fitting.values()})
        outputs = NATIVE_ORDER if options.native else operator_output_map(model)
        if options.output_map != "auto":
            outputs = stated_output_map(options.output_map, model)
        is_native = options.native and options.class_offset == "auto"
        mapping = stated_mapping("1" if is_native else options.class_offset, ids)
        named = pictures.truth.categories if pictures.truth else ()
        person = next((category.id for category in named if category.name == "person"), None)
        sides.append(Side(model, to_tensor, outputs, mapping, ids, fitting, person))
    return DetectionData(tuple(sides), pictures, labels, options)


def detection(data: DetectionData, judging: Judging, choices: Sequence[Choice] | None = None) -> Task:
    """The task, with what is known of the outputs of each model; where nothing is known, any reading will do."""
    if data.options.native:
        _require_valid_ids(data.pictures, data.labels)
    known = choices or [Choice() for _ in data.sides]
    readers = [reader_of(side, choice, data.options) for side, choice in zip(data.sides, known, strict=True)]
    boxes = Boxes(data=data, judging=judging, choices=tuple(known))
    return Task(
        examples=[Example(printable_name(path.name), path) for path in data.pictures.paths],
        prepare=partial(fed, [to_tensor for to_tensor, _ in readers]),
        score=partial(_score, boxes.name, [read for _, read in readers]),
        metrics=[boxes],
        fed_range=readers[0][0].value_range(),
        check=partial(_check, data),
        chosen=partial(_chosen, data, judging),
        facts=facts_of(data_of(data, known[0])),
    )


def _score(name: str, readers: Sequence[Read], outputs: Outputs, _target: object) -> dict[str, FoundObjects]:
    read = readers[-1] if outputs.tensors[0].of_reference else readers[0]
    return {name: read(outputs)}


def _check(data: DetectionData, trial: Trial) -> Checked:
    """Run a few pictures to find out how to read the outputs of each model."""
    trials = [trial, trial.of_reference][: len(data.sides)]
    choices = [
        Choice() if each is None else choice_of(side, data, each) for side, each in zip(data.sides, trials, strict=True)
    ]
    return Checked(choice=msgspec.to_builtins(choices))


def _chosen(data: DetectionData, judging: Judging, choice: Any) -> Task:
    return detection(data, judging, msgspec.convert(choice, list[Choice]))


def _require_valid_ids(pictures: EvaluatedPictures, labels: LabelFile | None) -> None:
    """Raise for class ids at which the native tool stops with ``Encountered invalid class ID``."""
    if labels is None:
        raise DataError("--compat=native needs --model_output_labels: its lines give the number of classes")
    for picture in pictures.truth.native if pictures.truth else ():
        wrong = [number for number in picture.class_ids.tolist() if not 0 <= number < len(labels.lines)]
        if wrong:
            raise DataError(
                f"Encountered invalid class ID: {wrong[0]} in {picture.name}: {labels.path} has {len(labels.lines)} "
                "lines, for the classes 0 to one less. COCO needs 91 lines, the first for the background. Leave out "
                "--compat=native to evaluate all the same"
            )
