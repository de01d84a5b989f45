"""What ``import evaltools`` gives, with its types; scripts/generate.py writes it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from evaltools.api.benchmarks import OnRound
from evaltools.api.configurations import AnyPath, OneConfiguration, Tests
from evaltools.api.configurations import Configuration as _Configuration
from evaltools.api.evaluations import SeveralPaths
from evaltools.api.inputs import Inputs
from evaltools.api.locating import OnPart
from evaltools.api.measured import Measured
from evaltools.api.progress import OnProgress
from evaltools.suite.run import OnEntry

__all__: list[str]
from evaltools.api.files import inspect as inspect
from evaltools.api.files import load as load
from evaltools.api.gates import GateReport as GateReport
from evaltools.api.gates import gate as gate
from evaltools.api.progress import Progress as Progress
from evaltools.api.result import Located as Located
from evaltools.api.result import Models as Models
from evaltools.api.result import Result as Result
from evaltools.errors import ConfigurationUnavailable as ConfigurationUnavailable
from evaltools.errors import DataError as DataError
from evaltools.errors import EvaltoolsError as EvaltoolsError
from evaltools.errors import ImageError as ImageError
from evaltools.errors import InferenceError as InferenceError
from evaltools.errors import LimitNotKept as LimitNotKept
from evaltools.errors import ModelError as ModelError
from evaltools.errors import OutputError as OutputError
from evaltools.errors import TaskError as TaskError
from evaltools.errors import UsageError as UsageError
from evaltools.metrics.metric import Metric as Metric
from evaltools.result.section import Drawing as Drawing
from evaltools.result.section import Panel as Panel
from evaltools.tasks.framework.definition import Checked as Checked
from evaltools.tasks.framework.definition import Example as Example
from evaltools.tasks.framework.definition import Mean as Mean
from evaltools.tasks.framework.definition import Setting as Setting
from evaltools.tasks.framework.definition import Task as Task
from evaltools.tasks.framework.definition import TopK as TopK
from evaltools.tasks.framework.definition import Trial as Trial
from evaltools.tasks.framework.definition import WithContext as WithContext
from evaltools.tasks.framework.definition import mean as mean
from evaltools.tasks.framework.definition import pooled as pooled
from evaltools.tasks.framework.definition import task as task
from evaltools.tasks.framework.definition import topk as topk
from evaltools.tasks.framework.pictures import image_input as image_input
from evaltools.tasks.framework.pictures import pairs as pairs
from evaltools.tasks.framework.tensors import Outputs as Outputs
from evaltools.tasks.framework.tensors import TaskTensor as TaskTensor

class AnyRow(Measured):
    """A number each, None where it is not known."""

    top1: float | Any
    """Top-1 accuracy, 0..1"""
    top2: float | Any
    """Top-2 accuracy, 0..1"""
    top3: float | Any
    """Top-3 accuracy, 0..1"""
    top4: float | Any
    """Top-4 accuracy, 0..1"""
    top5: float | Any
    """Top-5 accuracy, 0..1"""
    top6: float | Any
    """Top-6 accuracy, 0..1"""
    top7: float | Any
    """Top-7 accuracy, 0..1"""
    top8: float | Any
    """Top-8 accuracy, 0..1"""
    top9: float | Any
    """Top-9 accuracy, 0..1"""
    top10: float | Any
    """Top-10 accuracy, 0..1"""
    agreement: float | Any
    """imagenet: share of examples with the reference's best class, 0..1"""
    distinct_answers: float | Any
    """imagenet: how many classes came first at least once"""
    ap: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ap50: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ap75: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ap_small: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ap_medium: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ap_large: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ar_1: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ar_10: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ar_100: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ar_small: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ar_medium: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ar_large: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    matched_boxes: float | Any
    """coco: share of the reference's boxes that were found again, 0..1"""
    avg_error: float | Any
    """inference_diff: mean absolute error as the native tool prints it (raw numbers of quantised outputs)"""
    max_error: float | Any
    """inference_diff: largest absolute error, real units"""
    max_quanta: float | Any
    """inference_diff: largest error of a quantised output in quanta"""
    snr_db: float | Any
    """inference_diff: signal to noise, dB; no number where nothing differs"""
    relative_rms: float | Any
    """inference_diff: RMS of the error by that of the reference"""
    same_best: float | Any
    """inference_diff: share of the answers of scores with the same best class, 0..1"""
    accuracy: float | Any
    """audio, text: share of examples whose best label is right, 0..1"""
    label_map: float | Any
    """audio, text: mean over the labels of the average precision of their scores, 0..1"""
    same_answer: float | Any
    """audio, text: share of examples with the reference's best label, 0..1"""
    score_shift: float | Any
    """audio, text: largest change of a score against the reference, mean over the examples"""
    recall_at_1: float | Any
    """embeddings: share of pictures whose nearest other has their label, 0..1"""
    recall_at_5: float | Any
    """embeddings: share of pictures of whose 5 nearest others one has their label, 0..1"""
    cosine: float | Any
    """embeddings: cosine to the reference's embedding, -1..1"""
    psnr: float | Any
    """image_to_image: peak signal by noise against the target, in dB, at most 100"""
    ssim: float | Any
    """image_to_image: structural similarity to the target, -1..1"""
    error_to_reference: float | Any
    """image_to_image: root mean squared error to the reference, 1 from black to white"""
    ssim_to_reference: float | Any
    """image_to_image: structural similarity to the reference's output, -1..1"""
    oks_ap: float | Any
    """keypoints: COCO's AP by object keypoint similarity of 0.50:0.95, 0..1"""
    oks_ap50: float | Any
    """keypoints: the same at 0.50, 0..1"""
    pck: float | Any
    """keypoints: share of annotated keypoints that are found near their place, 0..1"""
    same_keypoints: float | Any
    """keypoints: share of those that the reference gives min_score or more which are within a twentieth of the input of where it has them, 0..1"""
    keypoint_shift: float | Any
    """keypoints: mean distance of the same to the reference's, as a share of the input"""
    miou: float | Any
    """segmentation: mean over the classes of intersection by union over all pixels, 0..1"""
    pixel_accuracy: float | Any
    """segmentation: share of labelled pixels with their class, 0..1"""
    same_pixels: float | Any
    """segmentation: share of pixels with the reference's class, 0..1"""
    miou_to_reference: float | Any
    """segmentation: mean IoU with the reference's classes as the truth, 0..1"""
    absolute_error: float | Any
    """text: mean absolute error of a regression"""
    correlation: float | Any
    """text: Pearson's correlation of a regression with the right numbers, -1..1"""
    number_shift: float | Any
    """text: mean distance of a regression to the reference's number"""
    examples: float | Any
    """examples with an answer, which the figures are of"""
    latency_ms: float | Any
    """median time of invoke, ms"""
    latency_p90_ms: float | Any
    """time within which 90 % of invokes ended, of 10 or more, ms"""
    latency_p99_ms: float | Any
    """time within which 99 % of invokes ended, of 100 or more, ms"""
    load_ms: float | Any
    """time to load the model and create its delegates, ms"""
    model_mb: float | Any
    """size of the model file, MB (1024 * 1024 bytes)"""
    latency_ratio: float | Any
    """time by that of the reference"""
    latency_cpu_ratio: float | Any
    """time by that of the fastest configuration of the run on the CPU"""
    peak_memory_mb: float | Any
    """largest resident memory of the configuration's process (Python, runtime, model, delegate), MB"""
    delegated_share: float | Any
    """share of the model's nodes that ran on delegates, 0..1"""
    partitions: float | Any
    """number of partitions of all delegates"""
    failed_examples: float | Any
    """examples without an answer"""
    nan_outputs: float | Any
    """outputs with NaN or infinite numbers (coco: detections, inference_diff: elements)"""

    def __getattr__(self, name: str) -> Any: ...

class ImagenetRow(Measured):
    """A number each, None where it is not known."""

    top1: float | Any
    """Top-1 accuracy, 0..1"""
    top2: float | Any
    """Top-2 accuracy, 0..1"""
    top3: float | Any
    """Top-3 accuracy, 0..1"""
    top4: float | Any
    """Top-4 accuracy, 0..1"""
    top5: float | Any
    """Top-5 accuracy, 0..1"""
    top6: float | Any
    """Top-6 accuracy, 0..1"""
    top7: float | Any
    """Top-7 accuracy, 0..1"""
    top8: float | Any
    """Top-8 accuracy, 0..1"""
    top9: float | Any
    """Top-9 accuracy, 0..1"""
    top10: float | Any
    """Top-10 accuracy, 0..1"""
    agreement: float | Any
    """imagenet: share of examples with the reference's best class, 0..1"""
    distinct_answers: float | Any
    """imagenet: how many classes came first at least once"""
    examples: float | Any
    """examples with an answer, which the figures are of"""
    latency_ms: float | Any
    """median time of invoke, ms"""
    latency_p90_ms: float | Any
    """time within which 90 % of invokes ended, of 10 or more, ms"""
    latency_p99_ms: float | Any
    """time within which 99 % of invokes ended, of 100 or more, ms"""
    load_ms: float | Any
    """time to load the model and create its delegates, ms"""
    model_mb: float | Any
    """size of the model file, MB (1024 * 1024 bytes)"""
    latency_ratio: float | Any
    """time by that of the reference"""
    latency_cpu_ratio: float | Any
    """time by that of the fastest configuration of the run on the CPU"""
    peak_memory_mb: float | Any
    """largest resident memory of the configuration's process (Python, runtime, model, delegate), MB"""
    delegated_share: float | Any
    """share of the model's nodes that ran on delegates, 0..1"""
    partitions: float | Any
    """number of partitions of all delegates"""
    failed_examples: float | Any
    """examples without an answer"""
    nan_outputs: float | Any
    """outputs with NaN or infinite numbers (coco: detections, inference_diff: elements)"""

class ImagenetResult(Result):
    """Its rows have the figures of that task, and no others."""

    def __getitem__(self, name: str) -> ImagenetRow: ...  # type: ignore[override]
    def __iter__(self) -> Iterator[ImagenetRow]: ...  # type: ignore[override]

class ImagenetModels(Models):
    """The result of each model."""

    def __getitem__(self, name: str) -> ImagenetResult: ...

class CocoRow(Measured):
    """A number each, None where it is not known."""

    ap: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ap50: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ap75: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ap_small: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ap_medium: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ap_large: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ar_1: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ar_10: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ar_100: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ar_small: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ar_medium: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    ar_large: float | Any
    """COCO figure of that name, 0..1; ap is mAP"""
    matched_boxes: float | Any
    """coco: share of the reference's boxes that were found again, 0..1"""
    examples: float | Any
    """examples with an answer, which the figures are of"""
    latency_ms: float | Any
    """median time of invoke, ms"""
    latency_p90_ms: float | Any
    """time within which 90 % of invokes ended, of 10 or more, ms"""
    latency_p99_ms: float | Any
    """time within which 99 % of invokes ended, of 100 or more, ms"""
    load_ms: float | Any
    """time to load the model and create its delegates, ms"""
    model_mb: float | Any
    """size of the model file, MB (1024 * 1024 bytes)"""
    latency_ratio: float | Any
    """time by that of the reference"""
    latency_cpu_ratio: float | Any
    """time by that of the fastest configuration of the run on the CPU"""
    peak_memory_mb: float | Any
    """largest resident memory of the configuration's process (Python, runtime, model, delegate), MB"""
    delegated_share: float | Any
    """share of the model's nodes that ran on delegates, 0..1"""
    partitions: float | Any
    """number of partitions of all delegates"""
    failed_examples: float | Any
    """examples without an answer"""
    nan_outputs: float | Any
    """outputs with NaN or infinite numbers (coco: detections, inference_diff: elements)"""

class CocoResult(Result):
    """Its rows have the figures of that task, and no others."""

    def __getitem__(self, name: str) -> CocoRow: ...  # type: ignore[override]
    def __iter__(self) -> Iterator[CocoRow]: ...  # type: ignore[override]

class CocoModels(Models):
    """The result of each model."""

    def __getitem__(self, name: str) -> CocoResult: ...

class DiffRow(Measured):
    """A number each, None where it is not known."""

    avg_error: float | Any
    """inference_diff: mean absolute error as the native tool prints it (raw numbers of quantised outputs)"""
    max_error: float | Any
    """inference_diff: largest absolute error, real units"""
    max_quanta: float | Any
    """inference_diff: largest error of a quantised output in quanta"""
    snr_db: float | Any
    """inference_diff: signal to noise, dB; no number where nothing differs"""
    relative_rms: float | Any
    """inference_diff: RMS of the error by that of the reference"""
    same_best: float | Any
    """inference_diff: share of the answers of scores with the same best class, 0..1"""
    examples: float | Any
    """examples with an answer, which the figures are of"""
    latency_ms: float | Any
    """median time of invoke, ms"""
    latency_p90_ms: float | Any
    """time within which 90 % of invokes ended, of 10 or more, ms"""
    latency_p99_ms: float | Any
    """time within which 99 % of invokes ended, of 100 or more, ms"""
    load_ms: float | Any
    """time to load the model and create its delegates, ms"""
    model_mb: float | Any
    """size of the model file, MB (1024 * 1024 bytes)"""
    latency_ratio: float | Any
    """time by that of the reference"""
    latency_cpu_ratio: float | Any
    """time by that of the fastest configuration of the run on the CPU"""
    peak_memory_mb: float | Any
    """largest resident memory of the configuration's process (Python, runtime, model, delegate), MB"""
    delegated_share: float | Any
    """share of the model's nodes that ran on delegates, 0..1"""
    partitions: float | Any
    """number of partitions of all delegates"""
    failed_examples: float | Any
    """examples without an answer"""
    nan_outputs: float | Any
    """outputs with NaN or infinite numbers (coco: detections, inference_diff: elements)"""

class DiffResult(Result):
    """Its rows have the figures of that task, and no others."""

    def __getitem__(self, name: str) -> DiffRow: ...  # type: ignore[override]
    def __iter__(self) -> Iterator[DiffRow]: ...  # type: ignore[override]

class DiffModels(Models):
    """The result of each model."""

    def __getitem__(self, name: str) -> DiffResult: ...

class AudioRow(Measured):
    """A number each, None where it is not known."""

    accuracy: float | Any
    """audio, text: share of examples whose best label is right, 0..1"""
    label_map: float | Any
    """audio, text: mean over the labels of the average precision of their scores, 0..1"""
    same_answer: float | Any
    """audio, text: share of examples with the reference's best label, 0..1"""
    score_shift: float | Any
    """audio, text: largest change of a score against the reference, mean over the examples"""
    examples: float | Any
    """examples with an answer, which the figures are of"""
    latency_ms: float | Any
    """median time of invoke, ms"""
    latency_p90_ms: float | Any
    """time within which 90 % of invokes ended, of 10 or more, ms"""
    latency_p99_ms: float | Any
    """time within which 99 % of invokes ended, of 100 or more, ms"""
    load_ms: float | Any
    """time to load the model and create its delegates, ms"""
    model_mb: float | Any
    """size of the model file, MB (1024 * 1024 bytes)"""
    latency_ratio: float | Any
    """time by that of the reference"""
    latency_cpu_ratio: float | Any
    """time by that of the fastest configuration of the run on the CPU"""
    peak_memory_mb: float | Any
    """largest resident memory of the configuration's process (Python, runtime, model, delegate), MB"""
    delegated_share: float | Any
    """share of the model's nodes that ran on delegates, 0..1"""
    partitions: float | Any
    """number of partitions of all delegates"""
    failed_examples: float | Any
    """examples without an answer"""
    nan_outputs: float | Any
    """outputs with NaN or infinite numbers (coco: detections, inference_diff: elements)"""

class AudioResult(Result):
    """Its rows have the figures of that task, and no others."""

    def __getitem__(self, name: str) -> AudioRow: ...  # type: ignore[override]
    def __iter__(self) -> Iterator[AudioRow]: ...  # type: ignore[override]

class AudioModels(Models):
    """The result of each model."""

    def __getitem__(self, name: str) -> AudioResult: ...

class EmbeddingsRow(Measured):
    """A number each, None where it is not known."""

    recall_at_1: float | Any
    """embeddings: share of pictures whose nearest other has their label, 0..1"""
    recall_at_5: float | Any
    """embeddings: share of pictures of whose 5 nearest others one has their label, 0..1"""
    cosine: float | Any
    """embeddings: cosine to the reference's embedding, -1..1"""
    examples: float | Any
    """examples with an answer, which the figures are of"""
    latency_ms: float | Any
    """median time of invoke, ms"""
    latency_p90_ms: float | Any
    """time within which 90 % of invokes ended, of 10 or more, ms"""
    latency_p99_ms: float | Any
    """time within which 99 % of invokes ended, of 100 or more, ms"""
    load_ms: float | Any
    """time to load the model and create its delegates, ms"""
    model_mb: float | Any
    """size of the model file, MB (1024 * 1024 bytes)"""
    latency_ratio: float | Any
    """time by that of the reference"""
    latency_cpu_ratio: float | Any
    """time by that of the fastest configuration of the run on the CPU"""
    peak_memory_mb: float | Any
    """largest resident memory of the configuration's process (Python, runtime, model, delegate), MB"""
    delegated_share: float | Any
    """share of the model's nodes that ran on delegates, 0..1"""
    partitions: float | Any
    """number of partitions of all delegates"""
    failed_examples: float | Any
    """examples without an answer"""
    nan_outputs: float | Any
    """outputs with NaN or infinite numbers (coco: detections, inference_diff: elements)"""

class EmbeddingsResult(Result):
    """Its rows have the figures of that task, and no others."""

    def __getitem__(self, name: str) -> EmbeddingsRow: ...  # type: ignore[override]
    def __iter__(self) -> Iterator[EmbeddingsRow]: ...  # type: ignore[override]

class EmbeddingsModels(Models):
    """The result of each model."""

    def __getitem__(self, name: str) -> EmbeddingsResult: ...

class ImageToImageRow(Measured):
    """A number each, None where it is not known."""

    psnr: float | Any
    """image_to_image: peak signal by noise against the target, in dB, at most 100"""
    ssim: float | Any
    """image_to_image: structural similarity to the target, -1..1"""
    error_to_reference: float | Any
    """image_to_image: root mean squared error to the reference, 1 from black to white"""
    ssim_to_reference: float | Any
    """image_to_image: structural similarity to the reference's output, -1..1"""
    examples: float | Any
    """examples with an answer, which the figures are of"""
    latency_ms: float | Any
    """median time of invoke, ms"""
    latency_p90_ms: float | Any
    """time within which 90 % of invokes ended, of 10 or more, ms"""
    latency_p99_ms: float | Any
    """time within which 99 % of invokes ended, of 100 or more, ms"""
    load_ms: float | Any
    """time to load the model and create its delegates, ms"""
    model_mb: float | Any
    """size of the model file, MB (1024 * 1024 bytes)"""
    latency_ratio: float | Any
    """time by that of the reference"""
    latency_cpu_ratio: float | Any
    """time by that of the fastest configuration of the run on the CPU"""
    peak_memory_mb: float | Any
    """largest resident memory of the configuration's process (Python, runtime, model, delegate), MB"""
    delegated_share: float | Any
    """share of the model's nodes that ran on delegates, 0..1"""
    partitions: float | Any
    """number of partitions of all delegates"""
    failed_examples: float | Any
    """examples without an answer"""
    nan_outputs: float | Any
    """outputs with NaN or infinite numbers (coco: detections, inference_diff: elements)"""

class ImageToImageResult(Result):
    """Its rows have the figures of that task, and no others."""

    def __getitem__(self, name: str) -> ImageToImageRow: ...  # type: ignore[override]
    def __iter__(self) -> Iterator[ImageToImageRow]: ...  # type: ignore[override]

class ImageToImageModels(Models):
    """The result of each model."""

    def __getitem__(self, name: str) -> ImageToImageResult: ...

class KeypointsRow(Measured):
    """A number each, None where it is not known."""

    oks_ap: float | Any
    """keypoints: COCO's AP by object keypoint similarity of 0.50:0.95, 0..1"""
    oks_ap50: float | Any
    """keypoints: the same at 0.50, 0..1"""
    pck: float | Any
    """keypoints: share of annotated keypoints that are found near their place, 0..1"""
    same_keypoints: float | Any
    """keypoints: share of those that the reference gives min_score or more which are within a twentieth of the input of where it has them, 0..1"""
    keypoint_shift: float | Any
    """keypoints: mean distance of the same to the reference's, as a share of the input"""
    examples: float | Any
    """examples with an answer, which the figures are of"""
    latency_ms: float | Any
    """median time of invoke, ms"""
    latency_p90_ms: float | Any
    """time within which 90 % of invokes ended, of 10 or more, ms"""
    latency_p99_ms: float | Any
    """time within which 99 % of invokes ended, of 100 or more, ms"""
    load_ms: float | Any
    """time to load the model and create its delegates, ms"""
    model_mb: float | Any
    """size of the model file, MB (1024 * 1024 bytes)"""
    latency_ratio: float | Any
    """time by that of the reference"""
    latency_cpu_ratio: float | Any
    """time by that of the fastest configuration of the run on the CPU"""
    peak_memory_mb: float | Any
    """largest resident memory of the configuration's process (Python, runtime, model, delegate), MB"""
    delegated_share: float | Any
    """share of the model's nodes that ran on delegates, 0..1"""
    partitions: float | Any
    """number of partitions of all delegates"""
    failed_examples: float | Any
    """examples without an answer"""
    nan_outputs: float | Any
    """outputs with NaN or infinite numbers (coco: detections, inference_diff: elements)"""

class KeypointsResult(Result):
    """Its rows have the figures of that task, and no others."""

    def __getitem__(self, name: str) -> KeypointsRow: ...  # type: ignore[override]
    def __iter__(self) -> Iterator[KeypointsRow]: ...  # type: ignore[override]

class KeypointsModels(Models):
    """The result of each model."""

    def __getitem__(self, name: str) -> KeypointsResult: ...

class SegmentationRow(Measured):
    """A number each, None where it is not known."""

    miou: float | Any
    """segmentation: mean over the classes of intersection by union over all pixels, 0..1"""
    pixel_accuracy: float | Any
    """segmentation: share of labelled pixels with their class, 0..1"""
    same_pixels: float | Any
    """segmentation: share of pixels with the reference's class, 0..1"""
    miou_to_reference: float | Any
    """segmentation: mean IoU with the reference's classes as the truth, 0..1"""
    examples: float | Any
    """examples with an answer, which the figures are of"""
    latency_ms: float | Any
    """median time of invoke, ms"""
    latency_p90_ms: float | Any
    """time within which 90 % of invokes ended, of 10 or more, ms"""
    latency_p99_ms: float | Any
    """time within which 99 % of invokes ended, of 100 or more, ms"""
    load_ms: float | Any
    """time to load the model and create its delegates, ms"""
    model_mb: float | Any
    """size of the model file, MB (1024 * 1024 bytes)"""
    latency_ratio: float | Any
    """time by that of the reference"""
    latency_cpu_ratio: float | Any
    """time by that of the fastest configuration of the run on the CPU"""
    peak_memory_mb: float | Any
    """largest resident memory of the configuration's process (Python, runtime, model, delegate), MB"""
    delegated_share: float | Any
    """share of the model's nodes that ran on delegates, 0..1"""
    partitions: float | Any
    """number of partitions of all delegates"""
    failed_examples: float | Any
    """examples without an answer"""
    nan_outputs: float | Any
    """outputs with NaN or infinite numbers (coco: detections, inference_diff: elements)"""

class SegmentationResult(Result):
    """Its rows have the figures of that task, and no others."""

    def __getitem__(self, name: str) -> SegmentationRow: ...  # type: ignore[override]
    def __iter__(self) -> Iterator[SegmentationRow]: ...  # type: ignore[override]

class SegmentationModels(Models):
    """The result of each model."""

    def __getitem__(self, name: str) -> SegmentationResult: ...

class TextRow(Measured):
    """A number each, None where it is not known."""

    absolute_error: float | Any
    """text: mean absolute error of a regression"""
    correlation: float | Any
    """text: Pearson's correlation of a regression with the right numbers, -1..1"""
    number_shift: float | Any
    """text: mean distance of a regression to the reference's number"""
    accuracy: float | Any
    """audio, text: share of examples whose best label is right, 0..1"""
    label_map: float | Any
    """audio, text: mean over the labels of the average precision of their scores, 0..1"""
    same_answer: float | Any
    """audio, text: share of examples with the reference's best label, 0..1"""
    score_shift: float | Any
    """audio, text: largest change of a score against the reference, mean over the examples"""
    examples: float | Any
    """examples with an answer, which the figures are of"""
    latency_ms: float | Any
    """median time of invoke, ms"""
    latency_p90_ms: float | Any
    """time within which 90 % of invokes ended, of 10 or more, ms"""
    latency_p99_ms: float | Any
    """time within which 99 % of invokes ended, of 100 or more, ms"""
    load_ms: float | Any
    """time to load the model and create its delegates, ms"""
    model_mb: float | Any
    """size of the model file, MB (1024 * 1024 bytes)"""
    latency_ratio: float | Any
    """time by that of the reference"""
    latency_cpu_ratio: float | Any
    """time by that of the fastest configuration of the run on the CPU"""
    peak_memory_mb: float | Any
    """largest resident memory of the configuration's process (Python, runtime, model, delegate), MB"""
    delegated_share: float | Any
    """share of the model's nodes that ran on delegates, 0..1"""
    partitions: float | Any
    """number of partitions of all delegates"""
    failed_examples: float | Any
    """examples without an answer"""
    nan_outputs: float | Any
    """outputs with NaN or infinite numbers (coco: detections, inference_diff: elements)"""

class TextResult(Result):
    """Its rows have the figures of that task, and no others."""

    def __getitem__(self, name: str) -> TextRow: ...  # type: ignore[override]
    def __iter__(self) -> Iterator[TextRow]: ...  # type: ignore[override]

class TextModels(Models):
    """The result of each model."""

    def __getitem__(self, name: str) -> TextResult: ...

class Configuration(_Configuration):
    """What a model runs with, by the names of flags; ``name`` is needed only where no mapping gives one.

    >>> Configuration(use_xnnpack=True, num_threads=2)
    Configuration(use_xnnpack=True, num_threads=2)
    """

    def __init__(
        self,
        *,
        name: str = '',
        runtime: str | float = 'auto',
        kernels: Literal['default', 'builtin', 'reference'] = 'default',
        num_interpreter_threads: int = 1,
        threads: int = 1,
        num_threads: int = -1,
        delegate: Literal['xnnpack', 'gpu', 'nnapi', 'hexagon', 'coreml', 'npu'] | None = None,
        native_binary: str | Path | None = None,
        device: str | float | None = None,
        device_libraries: str | Path | None = None,
        max_delegated_partitions: int = 0,
        min_nodes_per_partition: int = 0,
        first_delegate_node_index: int = 0,
        last_delegate_node_index: int = 2147483647,
        gpu_invoke_loop_times: int = -1,
        delegate_serialize_dir: str | Path | None = None,
        delegate_serialize_token: str | float | None = None,
        use_xnnpack: bool = False,
        xnnpack_force_fp16: bool = False,
        xnnpack_weight_cache_file_path: str | Path | None = None,
        xnnpack_runtime_flags: int = 0,
        use_ynnpack: bool = False,
        ynnpack_static_shape: bool = False,
        ynnpack_fast_math: bool = False,
        ynnpack_consistent_arithmetic: bool = False,
        ynnpack_no_excess_precision: bool = False,
        use_gpu: bool = False,
        gpu_precision_loss_allowed: bool = True,
        gpu_experimental_enable_quant: bool = True,
        gpu_inference_for_sustained_speed: bool = False,
        gpu_backend: Literal['cl', 'gl'] | None = None,
        gpu_wait_type: Literal['passive', 'active', 'do_not_wait', 'aggressive'] | None = None,
        gpu_infinite_float_capping: bool = False,
        gpu_allow_src_quantized_fc_conv_ops: bool = False,
        use_nnapi: bool = False,
        nnapi_execution_preference: Literal['low_power', 'fast_single_answer', 'sustained_speed', 'undefined'] | None = None,
        nnapi_execution_priority: Literal['default', 'low', 'medium', 'high'] | None = None,
        nnapi_accelerator_name: str | float | None = None,
        disable_nnapi_cpu: bool = True,
        nnapi_allow_fp16: bool = False,
        nnapi_allow_dynamic_dimensions: bool = False,
        nnapi_use_burst_mode: bool = False,
        nnapi_support_library_path: str | Path | None = None,
        use_hexagon: bool = False,
        hexagon_lib_path: str | Path = '/data/local/tmp',
        hexagon_profiling: bool = False,
        use_coreml: bool = False,
        coreml_version: Literal[0, 2, 3] = 0,
        use_npu: bool = False,
        npu_vendor: Literal['intel_openvino', 'qualcomm', 'mediatek', 'google_tensor', 'samsung'] | None = None,
        npu_soc: str | float | None = None,
        dispatch_library_path: str | Path | None = None,
        compiler_plugin_library_path: str | Path | None = None,
        intel_openvino_graph_backends: str | float | None = None,
        intel_openvino_performance_mode: Literal['latency', 'throughput', 'cumulative_throughput'] = 'latency',
        intel_openvino_configs_map: str | float | None = None,
        intel_openvino_graph_configs_map: str | float | None = None,
        intel_openvino_enable_weight_sharing: bool = True,
        qualcomm_backend: Literal['gpu', 'htp', 'dsp', 'ir', 'lpai'] = 'htp',
        qualcomm_optimization_level: Literal['O1', 'O2', 'O3'] = 'O3',
        qualcomm_graph_priority: Literal['default', 'low', 'normal', 'normal_high', 'high'] = 'default',
        qualcomm_graph_io_tensor_mem_type: Literal['raw', 'memhandle'] = 'memhandle',
        qualcomm_graph_transform: str | float | None = None,
        qualcomm_enable_just_in_time: bool = False,
        qualcomm_enable_weight_sharing: bool = False,
        qualcomm_use_int64_bias_as_int32: bool = True,
        qualcomm_use_conv_hmx: bool = True,
        qualcomm_use_fold_relu: bool = True,
        qualcomm_vtcm_size: int = 0,
        qualcomm_num_hvx_thread: int = 0,
        qualcomm_htp_p_point: int = 0,
        qualcomm_htp_performance_mode: Literal['default', 'sustained_high_performance', 'burst', 'high_performance', 'power_saver', 'low_power_saver', 'high_power_saver', 'low_balanced', 'balanced', 'extreme_power_saver'] = 'default',
        qualcomm_htp_perf_ctrl_mode: Literal['manual', 'auto'] = 'manual',
        qualcomm_htp_pd_session: Literal['unsigned', 'signed', 'adaptive'] = 'unsigned',
        qualcomm_dsp_performance_mode: Literal['default', 'sustained_high_performance', 'burst', 'high_performance', 'power_saver', 'low_power_saver', 'high_power_saver', 'low_balanced', 'balanced'] = 'default',
        qualcomm_dsp_perf_ctrl_mode: Literal['manual', 'auto'] = 'manual',
        qualcomm_dsp_pd_session: Literal['unsigned', 'signed', 'adaptive'] = 'unsigned',
        qualcomm_dsp_encoding: Literal['static', 'dynamic'] = 'static',
        qualcomm_lpai_target: Literal['x86', 'arm', 'adsp', 'tensilica'] = 'adsp',
        qualcomm_lpai_fps: int = 1,
        qualcomm_lpai_ftrt_ratio: int = 10,
        qualcomm_lpai_client_perf_type: Literal['default', 'real_time', 'non_real_time'] = 'default',
        qualcomm_lpai_core_affinity_type: Literal['default', 'soft', 'hard'] = 'default',
        qualcomm_lpai_core_selection: int = 0,
        qualcomm_profiling: Literal['off', 'basic', 'detailed', 'linting', 'optrace'] = 'off',
        qualcomm_log_level: Literal['off', 'error', 'warn', 'info', 'verbose', 'debug'] = 'info',
        qualcomm_dump_tensor_ids: str | float | None = None,
        qualcomm_custom_op_package: str | float = 'name:;interface_provider:;compile_package_path:;dispatch_package_path:;target:;',
        qualcomm_qnn_lib_dir: str | Path | None = None,
        qualcomm_dsp_skel_dir: str | Path | None = None,
        qualcomm_dlc_dir: str | Path | None = None,
        qualcomm_ir_json_dir: str | Path | None = None,
        qualcomm_saver_output_dir: str | Path | None = None,
        qualcomm_schematic_dir: str | Path | None = None,
        mediatek_sdk_version_type: Literal['version7', 'version8', 'version9'] = 'version8',
        mediatek_performance_mode_type: Literal['low_power', 'fast_single_answer', 'sustained_speed', 'turbo_boost'] = 'sustained_speed',
        mediatek_optimization_hint: Literal['normal', 'low_latency', 'deep_fusion', 'batch_processing'] = 'normal',
        mediatek_enable_l1_cache_optimizations: bool = False,
        mediatek_use_get_supported_operations: bool = True,
        mediatek_aot_compilation_options: str | float | None = None,
        mediatek_enable_gemma_compiler_optimizations: bool = False,
        mediatek_option_bundle: str | float | None = None,
        mediatek_option_bundle_decode: str | float = 'gemma-decode-accuracy',
        mediatek_option_bundle_prefill: str | float = 'gemma-prefill-accuracy',
        mediatek_dla_dir: str | Path | None = None,
        mediatek_disable_dla_dir_removal: bool = False,
        google_tensor_truncation_type: Literal['auto', 'no_truncation', 'bfloat16', 'half'] = 'auto',
        google_tensor_int64_to_int32: bool = False,
        google_tensor_enable_4bit_compilation: bool = False,
        google_tensor_enable_dynamic_range_quantization: bool = False,
        google_tensor_enable_large_model_support: bool = False,
        google_tensor_sharding_intensity: Literal['unspecified', 'minimal', 'moderate', 'extensive', 'maximum'] = 'unspecified',
        google_tensor_performance_mode: Literal['extreme_power_saver', 'power_saver', 'balanced', 'high_performance', 'sustained_performance', 'burst'] = 'balanced',
        google_tensor_dump_op_timings: bool = False,
        google_tensor_op_filters_proto: str | Path | None = None,
        google_tensor_extra_options: str | float | None = None,
        google_tensor_extra_options_path: str | Path | None = None,
        samsung_soc_model: str | float = 'E9965',
        samsung_large_model_support: bool = False,
        external_delegate_path: str | Path | Sequence[str | Path] | None = None,
        external_delegate_options: str | float | None = None,
        external_delegate_per_worker: bool = False,
        stable_delegate_settings_file: str | Path | None = None,
    ) -> None:
        ...

def benchmark(
    model: AnyPath | Sequence[AnyPath],
    *,
    tests: Tests = None,
    progress: bool | OnRound | None = None,
    verbose: bool = False,
    num_runs: int = 50,
    min_secs: float = 1.0,
    max_secs: float = 150.0,
    run_delay: float = -1.0,
    run_frequency: float = -1.0,
    warmup_runs: int = 1,
    warmup_min_secs: float = 0.5,
    dry_run: bool = False,
    report_peak_memory_footprint: bool = False,
    memory_footprint_check_interval_ms: int = 50,
    signature_to_run_for: str | float | None = None,
    input_layer: str | float | None = None,
    input_layer_shape: str | float | None = None,
    input_layer_value_range: str | float | None = None,
    input_layer_value_files: str | Path | None = None,
    require_full_delegation: bool = False,
    enable_op_profiling: bool = False,
    op_profiling_output_mode: Literal['stdout', 'csv', 'proto'] = 'stdout',
    perf_options_list: str | float = 'none',
    option_benchmark_run_delay: float = -1.0,
    random_shuffle_benchmark_runs: bool = True,
    rounds: int = 0,
    op_profiling_runs: int = 50,
    accuracy: str | Path | Sequence[str | Path] | None = None,
    compat: Literal['native'] | None = None,
    example_timeout: float = 300.0,
    allow_fallback: bool = False,
) -> Result:
    """How fast a model is with each configuration: load, first run, steady state, memory.

    Without ``tests`` these are the delegates that work on this machine.
    ``options`` are those of ``evaltools benchmark`` by their names, such as ``num_runs=50`` or ``rounds=3``.
    ``progress`` is True for a bar, or is called with the name of the configuration and the number of the round that
    begins. Prints nothing else; Ctrl-C ends it with the rounds measured until then.
    """

@overload
def coco(
    model: AnyPath,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    images: str | Path,
    ground_truth: str | Path | None = None,
    ground_truth_proto: str | Path | None = None,
    labels: str | Path | None = None,
    num_images: int = 0,
    order: Literal['native', 'random'] = 'native',
    seed: int = 1,
    normalization: str | float = 'auto',
    resize: Literal['auto', 'stretch', 'letterbox', 'letterbox_top_left'] = 'auto',
    letterbox_fill: int = 114,
    channel_order: Literal['auto', 'rgb', 'bgr'] = 'auto',
    decoder: Literal['auto', 'ssd', 'none', 'yolov5', 'yolov8', 'yolov8_pose', 'yolox', 'yolo_nms'] = 'auto',
    nms_iou: float = 0.0,
    score_threshold: float = 0.0,
    output_map: str | float = 'auto',
    class_offset: str | float = 'auto',
    coco_evaluator: Literal['pycocotools', 'faster-coco-eval'] = 'pycocotools',
    bootstrap_resamples: int = 1000,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    margin: str | float = '0.5 points',
    record_examples: bool = False,
    input_layout: Literal['auto', 'nhwc', 'nchw'] = 'auto',
    workers: str | float = 'auto',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
) -> CocoResult:
    """MAP of a detector on annotated pictures, and whether the boxes agree; ``ground_truth`` is in COCO's format.

    Everything else as for :func:`imagenet`.
    """

@overload
def coco(
    model: SeveralPaths,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    images: str | Path,
    ground_truth: str | Path | None = None,
    ground_truth_proto: str | Path | None = None,
    labels: str | Path | None = None,
    num_images: int = 0,
    order: Literal['native', 'random'] = 'native',
    seed: int = 1,
    normalization: str | float = 'auto',
    resize: Literal['auto', 'stretch', 'letterbox', 'letterbox_top_left'] = 'auto',
    letterbox_fill: int = 114,
    channel_order: Literal['auto', 'rgb', 'bgr'] = 'auto',
    decoder: Literal['auto', 'ssd', 'none', 'yolov5', 'yolov8', 'yolov8_pose', 'yolox', 'yolo_nms'] = 'auto',
    nms_iou: float = 0.0,
    score_threshold: float = 0.0,
    output_map: str | float = 'auto',
    class_offset: str | float = 'auto',
    coco_evaluator: Literal['pycocotools', 'faster-coco-eval'] = 'pycocotools',
    bootstrap_resamples: int = 1000,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    margin: str | float = '0.5 points',
    record_examples: bool = False,
    input_layout: Literal['auto', 'nhwc', 'nchw'] = 'auto',
    workers: str | float = 'auto',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
) -> CocoModels:
    ...

def diff(
    model: AnyPath,
    *,
    inputs: Inputs | None = None,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    num_runs: int = 50,
    warmup_runs: int = 1,
    output_map: str | float | None = None,
    signature: str | float | None = None,
    seed: int = 1,
    input_range: str | float | Sequence[str | float] | None = None,
    input_files: str | Path | Sequence[str | Path] | None = None,
    input_images: str | Path | None = None,
    normalization: str | float = 'auto',
    channel_order: Literal['rgb', 'bgr'] = 'rgb',
    input_layout: Literal['auto', 'nhwc', 'nchw'] = 'auto',
    input_shape: str | float | Sequence[str | float] | None = None,
    noise_floor_runs: int = 10,
    max_secs: float = 60.0,
    output_kind: str | float | Sequence[str | float] | None = None,
    max_avg_error: str | float | Sequence[str | float] | None = None,
    max_quanta: str | float | Sequence[str | float] | None = None,
    min_snr_db: str | float | Sequence[str | float] | None = None,
    locate: bool = False,
    save_outputs: str | Path | None = None,
    load_reference: str | Path | None = None,
    allow_model_mismatch: bool = False,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    workers: str | float = '1',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
) -> DiffResult:
    """How far the outputs of configurations are from a reference's, for any model.

    ``inputs``: an array, arrays by name, several of either (each is a run), a folder of pictures or files, or "noise",
    "photos" or "both", as ``--inputs`` has them. An array has the shape of the input, or one more axis in front, along
    which runs lie, and is of the input's type or of real numbers, which are quantised as the input is. Errors are in
    the real numbers of the output, ``max_quanta`` in steps of its quantisation. Everything else as for
    :func:`imagenet`.
    """

@overload
def imagenet(
    model: AnyPath,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    images: str | Path,
    ground_truth: str | Path,
    labels: str | Path,
    denylist_file_path: str | Path | None = None,
    num_images: int = 0,
    order: Literal['native', 'random'] = 'native',
    seed: int = 1,
    normalization: str | float = 'auto',
    label_offset: int = 0,
    label_check: bool = True,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    margin: str | float = '0.5 points',
    record_examples: bool = False,
    channel_order: Literal['rgb', 'bgr'] = 'rgb',
    input_layout: Literal['auto', 'nhwc', 'nchw'] = 'auto',
    workers: str | float = 'auto',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
) -> ImagenetResult:
    """Top-1 to Top-10 accuracy on labelled pictures, for a reference and any number of configurations.

    ``model`` is a .tflite file, ``images`` a folder, ``ground_truth`` a file with the label of each picture in a line,
    ``labels`` one with the label of each output. ``tests`` maps names to configurations, each an
    :class:`~evaltools.Configuration` or the text of its flags; without it every delegate that works on this machine is
    tried. ``reference`` is the configuration that they are compared with, the CPU's builtin kernels where it is not
    stated. ``options`` are those of ``evaltools imagenet`` by their names, such as ``num_images=100`` or
    ``run_dir="run"``. Shares such as ``top1`` are 0..1, times milliseconds, sizes MB of 2**20 bytes.

    Prints nothing. Raises :class:`~evaltools.errors.UsageError` and its kinds before any long work for what is wrong;
    Ctrl-C ends it with what was measured until then. Without ``labels``, those in the model's metadata or in a file
    beside it are taken. A list of models gives :class:`~evaltools.Models`: the first is the reference of the others,
    unless ``reference_model`` is another one.
    """

@overload
def imagenet(
    model: SeveralPaths,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    images: str | Path,
    ground_truth: str | Path,
    labels: str | Path,
    denylist_file_path: str | Path | None = None,
    num_images: int = 0,
    order: Literal['native', 'random'] = 'native',
    seed: int = 1,
    normalization: str | float = 'auto',
    label_offset: int = 0,
    label_check: bool = True,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    margin: str | float = '0.5 points',
    record_examples: bool = False,
    channel_order: Literal['rgb', 'bgr'] = 'rgb',
    input_layout: Literal['auto', 'nhwc', 'nchw'] = 'auto',
    workers: str | float = 'auto',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
) -> ImagenetModels:
    ...

def locate(
    model: AnyPath,
    *,
    test: OneConfiguration | None = None,
    progress: bool | OnPart | None = None,
    signature: str | float | None = None,
    operators: str | float | None = None,
    reference_model_file: str | Path | None = None,
    reference_tensors: str | Path | None = None,
    num_inputs: int = 5,
    num_runs: int = 60,
    part_secs: float = 2.0,
    delegate_precision: Literal['auto', 'fp32', 'fp16', 'bf16'] = 'auto',
    max_compiles: int = 0,
    max_secs: float = 0.0,
    seed: int = 1,
    input_range: str | float | Sequence[str | float] | None = None,
    input_files: str | Path | Sequence[str | Path] | None = None,
    inputs: Literal['auto', 'noise', 'photos', 'both'] = 'auto',
    input_images: str | Path | None = None,
    normalization: str | float = 'auto',
    channel_order: Literal['rgb', 'bgr'] = 'rgb',
    input_layout: Literal['auto', 'nhwc', 'nchw'] = 'auto',
    input_shape: str | float | Sequence[str | float] | None = None,
    bundle: str | Path | None = None,
    run_dir: str | Path | None = None,
    at: str | float | None = None,
    example_timeout: float = 300.0,
) -> Located:
    """Which operator makes the difference between a configuration and the CPU.

    ``test`` is the configuration, default kernels with XNNPACK without one; ``options`` are those of ``evaltools
    locate`` by their names, such as ``operators="0-4"`` or ``bundle="report"``. ``progress`` is True for a bar, or is
    called with the number of parts measured and that of all, as far as is known. Prints nothing else. Raises
    :class:`~evaltools.errors.UsageError` and its kinds before anything runs.
    """

@overload
def run(
    task: Literal['audio'],
    model: AnyPath,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    margin: str | float = '0.5 points',
    record_examples: bool = False,
    workers: str | float = 'auto',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
    **options: Any,
) -> AudioResult:
    ...

@overload
def run(
    task: Literal['embeddings'],
    model: AnyPath,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    margin: str | float = '0.5 points',
    record_examples: bool = False,
    workers: str | float = 'auto',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
    **options: Any,
) -> EmbeddingsResult:
    ...

@overload
def run(
    task: Literal['image_to_image'],
    model: AnyPath,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    margin: str | float = '0.5 points',
    record_examples: bool = False,
    workers: str | float = 'auto',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
    **options: Any,
) -> ImageToImageResult:
    ...

@overload
def run(
    task: Literal['keypoints'],
    model: AnyPath,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    margin: str | float = '0.5 points',
    record_examples: bool = False,
    workers: str | float = 'auto',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
    **options: Any,
) -> KeypointsResult:
    ...

@overload
def run(
    task: Literal['segmentation'],
    model: AnyPath,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    margin: str | float = '0.5 points',
    record_examples: bool = False,
    workers: str | float = 'auto',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
    **options: Any,
) -> SegmentationResult:
    ...

@overload
def run(
    task: Literal['text'],
    model: AnyPath,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    margin: str | float = '0.5 points',
    record_examples: bool = False,
    workers: str | float = 'auto',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
    **options: Any,
) -> TextResult:
    ...

@overload
def run(
    task: AnyPath | Callable[..., Task],
    model: AnyPath,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    margin: str | float = '0.5 points',
    record_examples: bool = False,
    workers: str | float = 'auto',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
    **options: Any,
) -> Result:
    """A task of your own: a function with ``@evaltools.task`` or ``"FILE.py:NAME"``.

    One that comes with evaltools or is installed goes by its name. ``options`` are those of the task and those of
    ``evaltools run``. Everything else as for :func:`imagenet`.
    """

@overload
def run(
    task: AnyPath | Callable[..., Task],
    model: SeveralPaths,
    *,
    reference: OneConfiguration | None = None,
    tests: Tests = None,
    progress: bool | OnProgress | None = None,
    reference_model: str | Path | None = None,
    max_failed_examples: int = -1,
    margin: str | float = '0.5 points',
    record_examples: bool = False,
    workers: str | float = 'auto',
    example_timeout: float = 300.0,
    max_crashes: int = 3,
    run_dir: str | Path | None = None,
    shard_index: int = 0,
    shard_count: int = 1,
    executor: Literal['local', 'ray'] = 'local',
    at: str | float | Sequence[str | float] | None = None,
    ray_address: str | float | None = None,
    ray_tasks: int = 0,
    latency_examples: int = -1,
    trace: str | Path | None = None,
    allow_fallback: bool = False,
    compat: Literal['native'] | None = None,
    **options: Any,
) -> Models:
    ...

def suite(
    models: AnyPath | Sequence[AnyPath],
    *,
    tests: Tests = None,
    jobs: Mapping[str, str] | None = None,
    progress: bool | OnEntry | None = None,
    run_dir: str | Path | None = None,
) -> Result:
    """Every model of a folder, of a list or of a suite.toml, in every configuration.

    ``jobs`` maps names to commands such as ``"diff --num_runs=20"``; without them each model's outputs are compared.
    ``options`` are those of ``evaltools suite`` by their names, such as ``run_dir="run"``.
    ``progress`` is True for a bar, or is called with the number of runs done and that of all. Prints nothing else; a
    model that cannot be run costs only its own entry. Raises :class:`~evaltools.errors.UsageError` and its kinds
    before anything runs.
    """
