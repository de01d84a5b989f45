"""What a COCO detection evaluation finds out: how outputs were read, what each configuration found, what changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct, field

from evaltools.metrics.boxes import BoxAgreement, Detection
from evaltools.metrics.coco_stats import CocoEvaluation
from evaltools.metrics.interval import Interval
from evaltools.metrics.native_average_precision import NativeAveragePrecision

_FEW_PAIRS: Final = 20
_MOSTLY: Final = 0.5


class OutputMap(Struct, frozen=True):
    """Positions of the model's outputs, and how they are known.

    ``count`` null: every row whose score is not 0 is a detection.
    """

    boxes: int
    classes: int
    scores: int
    count: int | None
    source: str

    def __str__(self) -> str:
        """As ``--output_map`` takes it."""
        count = "" if self.count is None else f",count={self.count}"
        return f"boxes={self.boxes},classes={self.classes},scores={self.scores}{count}"


HeadSource = Literal["stated", "shape", "shape and values", "ground truth", "default"]


class HeadUsed(Struct, frozen=True):
    """How the raw head of a YOLO was read, and how that is known.

    ``shape`` is that of the output, ``coordinates`` says in what it gives boxes: shares or pixels of the input, or raw
    values of the grid. Of the ``compared`` best boxes, as many per picture as it has objects, ``right`` says by decoder
    how many lie on an object of their class (IoU 0.5 or more). ``better`` names a decoder that gets clearly more right
    than the one in use. ``ignored`` are values of each box that are of no detection.
    """

    decoder: str
    shape: list[int]
    coordinates: Literal["shares", "pixels", "grid"]
    source: HeadSource
    compared: int = 0
    right: dict[str, int] = field(default_factory=dict)
    better: str | None = None
    ignored: str = ""

    def describe(self) -> str:
        """One line: decoder, output, in what boxes are given, and the evidence."""
        shape = ",".join(map(str, self.shape))
        units = {"shares": "shares of the input", "pixels": "pixels of the input", "grid": "raw values of the grid"}
        known = {
            "shape": "recognised by shape",
            "shape and values": "recognised by shape and values",
            "ground truth": "recognised by the ground truth",
        }
        counts = ", ".join(f"{name}: {count}" for name, count in self.right.items())
        evidence = f"; right of the {self.compared} best boxes with {counts}" if self.compared else ""
        source = known.get(self.source, self.source)
        without = f", without its {self.ignored}" if self.ignored else ""
        return f"decoder = {self.decoder}, [{shape}] in {units[self.coordinates]}{without} ({source}{evidence})"


MappingSource = Literal["stated", "decoder", "detected", "default"]


class ClassMappingUsed(Struct, frozen=True):
    """How a class of the model becomes a category: ``+1``, ``0`` or another number to add, or ``dense``.

    ``dense``: class k is the k-th category that exists, which in COCO turns 80 classes into ids up to 90. ``source``
    is decoder where the raw head of a YOLO has one class for each category. Of ``pairs`` detections that lie on an
    object (IoU 0.5 or more) with a score of 0.25 or more, ``agreeing`` says for how many each mapping is right.
    ``better`` names another mapping that fits clearly better than the one in use.
    """

    name: str
    source: MappingSource
    pairs: int
    agreeing: dict[str, int]
    better: str | None

    @property
    def is_doubtful(self) -> bool:
        """Whether few detections show that it is right, or many that it is not."""
        right = self.agreeing.get(self.name, 0)
        return self.better is not None or self.pairs < _FEW_PAIRS or right < _MOSTLY * self.pairs

    def describe(self) -> str:
        """One line: the mapping, why it is taken, and how often each one tried is right."""
        counts = ", ".join(f"{describe_mapping(name)}: {count}" for name, count in self.agreeing.items())
        evidence = f"confident detections on an object: {self.pairs}; right with {counts}"
        if not self.pairs:
            evidence = "no confident detection lies on a known object"
        return f"category = {describe_mapping(self.name)} ({self.source}; {evidence})"


def describe_mapping(name: str) -> str:
    """A mapping in words.

    >>> describe_mapping("+1"), describe_mapping("0"), describe_mapping("dense")
    ('class + 1', 'class as it is', 'dense: the k-th that exists, 80->90 in COCO')
    """
    if name == "dense":
        return "dense: the k-th that exists, 80->90 in COCO"
    return "class as it is" if name == "0" else f"class {name[0]} {name[1:]}"


class GroundTruthUsed(Struct, frozen=True):
    """The ground truth of the pictures that were evaluated.

    ``objects`` counts crowd regions too. ``dropped_by_native`` annotations reach beyond their picture; the native
    tool's preparation leaves them out. ``missing_pictures`` are in the file, but not in the folder.
    """

    file: str
    kind: Literal["COCO annotations", "native proto"]
    sha256: str
    categories: int
    objects: int
    crowd_regions: int
    pictures_without_objects: int
    dropped_by_native: int
    missing_pictures: int


class CocoData(Struct, frozen=True):
    """The ground truth, and how pictures and outputs were read.

    ``unlisted_pictures`` are in the folder, but not in the ground truth, and were left out. ``category_names`` come
    from the ground truth, else from the label file. ``output_map`` and ``class_mapping`` are null where nothing ran.
    ``native``: everything was done as the native tool does it (``--compat=native``). ``head`` says how a raw head was
    read, and is null for a model whose outputs are boxes, classes and scores; boxes of it were suppressed by a better
    one of their class from an IoU above ``nms_iou``, unless that is null.
    """

    skipped_files: int
    unlisted_pictures: int
    ground_truth: GroundTruthUsed | None
    labels_sha256: str | None
    normalization: str
    resize: str
    score_threshold: float
    category_names: dict[int, str]
    output_map: OutputMap | None
    class_mapping: ClassMappingUsed | None
    native: bool = False
    head: HeadUsed | None = None
    nms_iou: float | None = None
    channel_order: str = "rgb"


class DetectionFigures(Struct, frozen=True):
    """What one configuration found in the ``pictures`` that it finished.

    ``evaluation`` has the figures of COCO, ``native`` those of the native tool; both are null without ground truth.
    ``nonfinite_detections`` have a NaN or infinite score, class or box and count nowhere. ``findings`` are signs that
    outputs are not what they are taken for. ``resampled`` has each figure of COCO over resamples of the pictures, which
    are the same for every configuration; null in a resample without an object of that kind.
    """

    configuration: str
    pictures: int
    detections: int
    nonfinite_detections: int
    evaluation: CocoEvaluation | None
    native: NativeAveragePrecision | None
    findings: list[str]
    resampled: dict[str, list[float | None]] = field(default_factory=dict)


class StatChange(Struct, frozen=True):
    """A figure of COCO of ``other`` minus that of ``baseline``, with its 95 % interval (paired bootstrap).

    ``p_value`` is that of the interval: the error with which it would just exclude no change. ``p_value_holm`` is the
    same, of mAP corrected for all configurations that are compared with one baseline, of the other figures for all of
    these figures and configurations. About ``differing`` pictures make the difference, as far as a thousand draws show.
    """

    stat: str
    change: float
    interval: Interval
    p_value: float
    p_value_holm: float = 1.0
    differing: float = 0.0


class CategoryChange(Struct, frozen=True):
    """AP of a category, ``before`` in the baseline and ``after``, with ``objects`` in ``pictures`` that count.

    ``p_value`` as that of a :class:`StatChange`, and never below what a sign test of so many pictures could show;
    ``p_value_holm`` the same corrected for all categories and all configurations compared with the baseline.
    """

    name: str
    objects: int
    pictures: int
    before: float
    after: float
    p_value: float
    p_value_holm: float = 1.0


class BoxComparison(Struct, frozen=True):
    """Boxes of ``other`` compared with those of ``baseline`` on the ``example_count`` pictures that both finished.

    In ``identical`` of them all classes, boxes and scores are bit for bit the same. ``changes`` has the figures of COCO
    that both have, ``categories`` those categories whose AP differs, where both finished the same pictures.
    """

    baseline: str
    other: str
    example_count: int
    boxes: BoxAgreement
    changes: list[StatChange] = field(default_factory=list)
    categories: list[CategoryChange] = field(default_factory=list)
    identical: int = 0

    @property
    def matched_share(self) -> float | None:
        """The share of the baseline's boxes that have a partner, 0..1; None where it has no box."""
        there_were = self.boxes.matched + self.boxes.lost
        return self.boxes.matched / there_were if there_were else None

    @property
    def boxes_in_words(self) -> str:
        """How many boxes of the baseline have no partner, and how many others there are."""
        count = self.boxes.matched + self.boxes.lost
        return f"{self.boxes.lost} of {count} {'box' if count == 1 else 'boxes'} lost, {self.boxes.new} gained"


class AnnotatedObject(Struct, frozen=True):
    """A ground truth; ``box`` as that of a :class:`Detection`."""

    category_id: int
    box: tuple[float, float, float, float]
    is_crowd: bool


class DetectedPicture(Struct, frozen=True):
    """A picture, its size in pixels, its annotated objects, and what each configuration that finished it found.

    Detections stand in the model's order. ``image_id`` is null where the ground truth does not name the picture.
    Without a ground truth it is the number that the file's name is, or that of the picture from 1, and ``objects`` is
    empty.
    """

    example: str
    image_id: int | None
    width: int
    height: int
    objects: list[AnnotatedObject]
    detections: dict[str, list[Detection]]


class Detected(Struct, frozen=True):
    """What all configurations found."""

    data: CocoData
    figures: list[DetectionFigures]
    comparisons: list[BoxComparison]
    pictures: Sequence[DetectedPicture]
