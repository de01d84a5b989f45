"""The inputs of a native tool: the same data that evaltools evaluates, checked for that tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.datasets.labels import read_labels
from evaltools.datasets.native_ground_truth import NativeGroundTruth
from evaltools.errors import DataError, ModelError, UsageError
from evaltools.gates.criteria import Criterion
from evaltools.model import ModelFile, read_model
from evaltools.native.logs.evaluation import NativeTask
from evaltools.preprocess import NATIVE
from evaltools.tasks.coco.boxes import Boxes, Judging
from evaltools.tasks.coco.classes import ClassMapping
from evaltools.tasks.coco.detector import SSD, DetectorOptions, check_detector
from evaltools.tasks.coco.evaluation import load_data
from evaltools.tasks.coco.outputs import NATIVE_ORDER, operator_output_map
from evaltools.tasks.coco.reading import Choice
from evaltools.tasks.framework.image_input import describe_normalization, input_transform
from evaltools.tasks.framework.request import TaskRequest, require_margin
from evaltools.tasks.imagenet.data import LabelledImages, check_model, class_count, load_labelled_images
from evaltools.tasks.imagenet.evaluation import facts_of
from evaltools.tasks.inference_diff.material import limits_of
from evaltools.tasks.inference_diff.output_comparison import check_types, output_names

NATIVE_ENDINGS: Final = frozenset({".jpg", ".jpeg", ".rgb8"})
NATIVE_RUNS: Final = 50
"""Runs of inference_diff where nothing else is asked for."""
NATIVE_CLASS_OFFSET: Final = 1
"""What the native tool adds to a class."""
_FEWEST_CLASS_LINES: Final = 1000
_ELSEWHERE: Final = "or evaluate with --device_program=evaltools, which can"
Data = TypeVar("Data")


class NativeInputs(Struct, Generic[Data], frozen=True):
    """Checked inputs of a native tool.

    ``data`` is what a result says of them: :class:`LabelledImages` of imagenet, :class:`Boxes` of coco,
    the limits of inference_diff, which makes its own random numbers for ``num_runs`` runs. ``truth`` is
    the content of the file with the ground truth, None where there is none. ``label_text`` is the content of
    ``--model_output_labels``, None where the tool takes none. ``given`` decides the figures beside the pictures.
    """

    task: NativeTask
    request: TaskRequest
    model: ModelFile
    data: Data
    pictures: tuple[Path, ...] = ()
    truth: bytes | None = None
    label_text: bytes | None = None
    num_runs: int | None = None
    given: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """Those of the runs, of which each has a reference inside in inference_diff."""
        return self.request.tests if self.task == "inference_diff" else self.request.configurations

    @property
    def example_count(self) -> int:
        """The pictures, or the runs."""
        return len(self.pictures) if self.num_runs is None else self.num_runs


def prepare_imagenet(request: TaskRequest) -> NativeInputs[LabelledImages]:
    """Read and check what imagenet is to evaluate; raises :class:`UsageError` for what the native tool cannot.

    Options about reading are not looked at: :mod:`evaltools.device.native_program` refuses those that the tool lacks.
    """
    options = request.values
    model = read_model(request.model_file)
    check_model(model, native=True)
    input_type, output_type = model.inputs[0].dtype, model.outputs[0].dtype
    if input_type != output_type:
        raise ModelError(
            f"{model.path}: input {input_type}, output {output_type}. The native tool takes the output for the input's "
            f"type, so its accuracy would mean nothing; convert the model with one type for both, {_ELSEWHERE}"
        )
    labels = read_labels(options["model_output_labels"], "--model_output_labels")
    if len(labels.lines) != class_count(model):
        raise DataError(
            f"{options['model_output_labels']} has {len(labels.lines)} lines, the model's output has "
            f"{class_count(model)}, and the native tool wants as many. Take the label list that belongs to this model"
        )
    images = load_labelled_images(
        options["ground_truth_images_path"],
        options["ground_truth_labels"],
        options["denylist_file_path"],
        options["num_images"],
    )
    _require_native_pictures(images.paths)
    if not set(images.truths) & set(labels.lines):
        raise DataError(
            f"not one label in {options['ground_truth_labels']} (such as {images.truths[0]!r}) is in "
            f"{options['model_output_labels']} (such as {labels.lines[-1]!r}); both must use the same words"
        )
    return NativeInputs(
        "imagenet",
        request,
        model,
        images,
        pictures=tuple(images.paths),
        truth=_text(images.truths),
        label_text=_text(labels.lines),  # a label with the line end of Windows would be another one
        given=facts_of(images, labels, 0, input_transform(model, model.inputs[0], native=True)),
        warnings=normalization_warnings(model),
    )


def prepare_coco(request: TaskRequest) -> NativeInputs[Boxes]:
    """Read and check what coco is to evaluate, as :func:`prepare_imagenet` does."""
    options = request.values
    require_margin(request)
    judging = Judging(
        options["coco_evaluator"],
        options["bootstrap_resamples"],
        options["debug_mode"] or options["detections_path"] is not None,
        bool(options["ground_truth_annotations"] or options["ground_truth_proto"]),
    )
    model = read_model(request.model_file)
    check_detector(model, native=True)
    known = operator_output_map(model)
    if known is not None and str(known) != str(NATIVE_ORDER):
        raise ModelError(
            f"{model.path}: its outputs are {known}, the native tool reads them as {NATIVE_ORDER}; convert the model "
            f"with its outputs in that order, {_ELSEWHERE}"
        )
    odd = [str(tensor) for tensor in model.outputs if tensor.dtype != "float32"]
    if odd:
        raise ModelError(
            f"{model.path}: the output {odd[0]} is not float32, but the native tool reads it as that; convert the "
            f"model with float outputs, {_ELSEWHERE}"
        )
    data = load_data(
        [model],
        DetectorOptions(decoder=SSD, native=request.native),
        options["ground_truth_images_path"],
        options["ground_truth_annotations"],
        options["ground_truth_proto"],
        options["model_output_labels"],
        options["num_images"],
    )
    pictures, labels = data.pictures, data.labels
    to_tensor = input_transform(model, model.inputs[0], native=True, crop_fraction=None)
    side = replace(data.sides[0], to_tensor=to_tensor, mapping=ClassMapping("+1", NATIVE_CLASS_OFFSET))
    as_native = replace(data, sides=(side,), options=DetectorOptions())
    _require_native_pictures(pictures.paths)
    truth = pictures.truth.native if pictures.truth else ()
    # The tool ends at a class beyond its labels, whose names mean nothing to it; more lines change no figure.
    classes = 1 + max((number for picture in truth for number in picture.class_ids.tolist()), default=0)
    lines = labels.lines if labels else ()
    missing = max(_FEWEST_CLASS_LINES, classes) - len(lines)
    return NativeInputs(
        "coco",
        request,
        model,
        Boxes(data=as_native, judging=judging, choices=(Choice(NATIVE_ORDER),)),
        pictures=tuple(pictures.paths),
        truth=NativeGroundTruth(truth).to_bytes() if pictures.truth else None,
        label_text=_text([*lines, *["???"] * missing]),
        warnings=normalization_warnings(model),
    )


def prepare_diff(request: TaskRequest) -> NativeInputs[tuple[Criterion, ...]]:
    """Read and check what inference_diff is to compare, as :func:`prepare_imagenet` does."""
    options = request.values
    model = read_model(request.model_file)
    check_types(model, native=True)
    if not model.outputs:
        raise ModelError(f"{model.path} has no outputs, so there is nothing to compare; convert it with outputs")
    _require_native_reference(request.reference)
    limits = limits_of(options["max_avg_error"], options["max_quanta"], options["min_snr_db"])
    for limit in limits:
        if limit.figure != "avg_error":
            raise UsageError(f"{limit.text}: the native tool gives only avg_error; use --max_avg_error, {_ELSEWHERE}")
        if limit.output is not None and not any(limit.output in names for names in output_names(model)):
            model.named("output", limit.output, model.outputs)
    runs = NATIVE_RUNS if options["num_runs"] is None else options["num_runs"]
    return NativeInputs("inference_diff", request, model, limits, num_runs=runs)


def prepare_native(request: TaskRequest) -> NativeInputs[Any]:
    """Read and check what a native tool is to evaluate; raises :class:`UsageError` for a task that has none."""
    native: dict[str, Callable[[TaskRequest], NativeInputs[Any]]] = {
        "imagenet": prepare_imagenet, "coco": prepare_coco, "inference_diff": prepare_diff
    }  # fmt: skip
    prepare = native.get(request.loaded.name)
    if prepare is None:
        raise UsageError(f"there is no native tool for this task; {_ELSEWHERE.removeprefix('or ')}")
    return prepare(request)


def normalization_warnings(model: ModelFile) -> list[str]:
    """A warning where the model's metadata ask for other values of pictures than the native tool feeds."""
    stated = input_transform(model, model.inputs[0], crop_fraction=None)
    wanted = stated.normalization
    if wanted is None or (set(wanted.mean), set(wanted.std)) == (set(NATIVE.mean), set(NATIVE.std)):
        return []
    return [
        f"the model's metadata ask for input values by {describe_normalization(stated)}; the native tool feeds -1..1, "
        "so its accuracy may be too low"
    ]


def _text(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _require_native_pictures(paths: Sequence[Path]) -> None:
    other = next((path for path in paths if path.suffix.lower() not in NATIVE_ENDINGS), None)
    if other is not None:
        raise DataError(
            f"{other.name}: the native tool reads pictures that end in {', '.join(sorted(NATIVE_ENDINGS))} only, and "
            f"ends at the first other one; convert the pictures to JPEG, {_ELSEWHERE}"
        )


def _require_native_reference(reference: Configuration | None) -> None:
    if reference is None:
        raise UsageError("the native tool always compares with its own reference; leave --reference=none out")
    flags = [flag for flag in reference.to_flags() if flag != "--kernels=default"]
    if flags:
        raise UsageError(
            f"--reference: {' '.join(flags)}: the native tool's reference is one thread with the default kernels, "
            f"nothing else; leave --reference out, {_ELSEWHERE}"
        )
