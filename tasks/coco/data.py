"""The facts about pictures and ground truth in the result of a detection evaluation."""

from __future__ import annotations

from evaltools.datasets.labels import LabelFile
from evaltools.metrics.latency import Latency
from evaltools.preprocess import ImageToTensor
from evaltools.tasks.coco.result import ClassMappingUsed, CocoData, GroundTruthUsed, HeadUsed, OutputMap
from evaltools.tasks.coco.task import CocoOptions
from evaltools.tasks.coco.truth import EvaluatedPictures
from evaltools.tasks.shared.image_input import describe_normalization


def coco_data(
    options: CocoOptions,
    pictures: EvaluatedPictures,
    labels: LabelFile | None,
    to_tensor: ImageToTensor,
    output_map: OutputMap | None,
    class_mapping: ClassMappingUsed | None,
    preprocessing_latency: Latency,
    head: HeadUsed | None = None,
) -> CocoData:
    """What was evaluated and how it was read; the outputs' map, class mapping and head are those found."""
    return CocoData(
        images=str(options.ground_truth_images_path),
        example_count=len(pictures.paths),
        skipped_files=len(pictures.folder.skipped),
        unlisted_pictures=len(pictures.unlisted),
        ground_truth=_ground_truth_used(pictures),
        labels_sha256=labels.sha256 if labels else None,
        normalization=describe_normalization(to_tensor),
        resize="stretch" if options.resize == "auto" else options.resize,
        score_threshold=options.score_threshold or 0.0,
        category_names=_category_names(pictures, labels),
        output_map=output_map,
        class_mapping=class_mapping,
        preprocessing_latency=preprocessing_latency,
        native=options.native,
        head=head,
        nms_iou=options.nms_iou or None,
        channel_order="bgr" if to_tensor.blue_first else "rgb",
        order=options.order,
        seed=options.seed if options.order == "random" else None,
    )


def _category_names(pictures: EvaluatedPictures, labels: LabelFile | None) -> dict[int, str]:
    """Names by number, those of the ground truth where there is one."""
    if pictures.truth is not None:
        return {category.id: category.name for category in pictures.truth.categories}
    return dict(enumerate(labels.lines)) if labels is not None else {}


def _ground_truth_used(pictures: EvaluatedPictures) -> GroundTruthUsed | None:
    """What is annotated in the pictures, None without a ground truth."""
    truth = pictures.truth
    if truth is None:
        return None
    annotations = [annotation for image in truth.images for annotation in image.annotations]
    return GroundTruthUsed(
        file=str(truth.path),
        kind=truth.kind,
        sha256=truth.sha256,
        categories=len(truth.categories),
        objects=len(annotations),
        crowd_regions=sum(annotation.is_crowd for annotation in annotations),
        pictures_without_objects=sum(not image.annotations for image in truth.images),
        dropped_by_native=truth.dropped_by_native,
        missing_pictures=len(truth.missing),
    )
