"""What the text of a native evaluation says: imagenet, coco and inference_diff, or ours in their words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from evaltools.errors import DataError
from evaltools.metrics.boxes import Detection
from evaltools.native.logs.log_lines import LogLine, plain_lines

NativeTask = Literal["imagenet", "inference_diff", "coco"]
"""As the tasks are named in a result."""

FAILED: Final = "Could not run the task evaluation!"
WITHOUT_TRUTH: Final = "mAP metrics are meaningless w/o ground truth."
UNCONSUMED: Final = "Unconsumed cmdline flags:"
NATIVE_TOP_K: Final = 10
_NOISE: Final = frozenset({"", "All log messages before absl::InitializeLog() is called are written to STDERR"})
_INT: Final = r"-?\d{1,18}"
_FINITE: Final = rf"{_INT}(?:\.\d{{1,18}})?(?:e[+-]?\d{{1,3}})?"
_REAL: Final = rf"(?:{_FINITE}|-?nan|-?inf)"
_LATENCY: Final = rf"avg=(?P<avg>{_FINITE})\(us\), std_dev=(?P<std>{_INT})\(us\)"
_RUNS: Final = re.compile(r"Num evaluation runs: (?P<runs>\d{1,9})")
_PREPROCESSING: Final = re.compile(f"Preprocessing latency: {_LATENCY}")
_INFERENCE: Final = re.compile(f"Inference latency: {_LATENCY}")
_REFERENCE: Final = re.compile(f"Reference run latency: {_LATENCY}")
_TEST: Final = re.compile(f"Test run latency: {_LATENCY}")
_TOP_K: Final = re.compile(rf"Top-(?P<key>\d{{1,4}}) Accuracy: (?P<value>{_REAL})")
_PRECISION: Final = re.compile(rf"Average Precision \[IOU Threshold=(?P<key>{_FINITE})\]: (?P<value>{_REAL})")
_OVERALL: Final = re.compile(rf"Overall mAP: (?P<value>{_REAL})")
_DIFFERENCE: Final = re.compile(
    rf"OutputDiff\[(?P<key>\d{{1,6}})\]: avg_error=(?P<avg>{_REAL}), std_dev=(?P<std>{_REAL})"
)
_PROGRESS: Final = re.compile(r"(?:Evaluated|Finished): (?P<percent>\d{1,9})%")
_CRASH: Final = re.compile(r"terminate called .+|what\(\): .+")
_IMAGE: Final = "Image: "
_OBJECT: Final = re.compile(r"Object \[(?P<index>\d{1,9})\]")
_END_OF_IMAGE: Final = "=" * 54
_OBJECT_FIELDS: Final = (
    "Score",
    "Class-ID",
    "Normalized Top",
    "Normalized Bottom",
    "Normalized Left",
    "Normalized Right",
)
_NUMBER: Final = re.compile(_REAL)
_WHOLE: Final = re.compile(_INT)


class LoggedLatency(NamedTuple):
    """Average with six digits and standard deviation cut to a whole number, in microseconds."""

    avg_us: float
    std_us: int


class LoggedDifference(NamedTuple):
    """Over the runs, average and standard deviation of the mean error of an output; NaN where there is no number."""

    avg_error: float
    std_dev: float


class LoggedPicture(Struct, frozen=True):
    """What ``--debug_mode`` prints of a picture; numbers have six digits, classes have the tool's offset added."""

    name: str
    detections: tuple[Detection, ...]


class NativeEvaluationLog(Struct, frozen=True):
    """What a text says; None or empty where it does not say it. Times are in microseconds, shares 0..1.

    ``topk`` has the accuracies by K, ``precisions`` the average precisions by IoU threshold, ``differences`` those of
    outputs by number. ``without_truth``: the tool warned that it had no ground truth; it prints an mAP of 0 then.
    ``pictures`` has those whose block is whole. ``progress`` is the last that was told, in percent as printed, which
    can be above 100. ``errors`` holds what was logged as an error or as fatal, and what a crash said.
    """

    runs: int | None
    preprocessing: LoggedLatency | None
    inference: LoggedLatency | None
    reference: LoggedLatency | None
    test: LoggedLatency | None
    topk: dict[int, float]
    precisions: dict[float, float]
    overall_map: float | None
    without_truth: bool
    differences: dict[int, LoggedDifference]
    pictures: tuple[LoggedPicture, ...]
    progress: int | None
    warnings: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def task(self) -> NativeTask | None:
        """Whose text this is; None where it ends before that shows."""
        if self.reference or self.test or self.differences:
            return "inference_diff"
        if self.precisions or self.overall_map is not None or self.without_truth or self.pictures:
            return "coco"
        return "imagenet" if self.topk or (self.runs == 0 and self.inference) else None

    @property
    def is_complete(self) -> bool:
        """Whether the evaluation came to its end.

        How many outputs an inference diff has the text does not say: those at the end may be missing.
        """
        if self.runs is None or FAILED in self.errors:
            return False
        if self.task == "coco":
            return self.inference is not None and self.overall_map is not None
        if self.task == "inference_diff":
            return self.test is not None and bool(self.differences)
        return self.task == "imagenet" and (self.runs == 0 or sorted(self.topk) == [*range(1, NATIVE_TOP_K + 1)])

    @property
    def failure(self) -> str | None:
        """Why the evaluation failed, as far as the text tells: of many errors the first and the last two."""
        reasons = [error for error in self.errors if error != FAILED and not error.startswith("usage: ")]
        return "; ".join([*reasons[:1], *reasons[1:][-2:]]) or (self.errors[0] if self.errors else None)


def parse_evaluation_log(text: str) -> NativeEvaluationLog:
    r"""Read the text of one native evaluation, stdout, stderr or both, whole or cut off.

    Prefixes may be missing. What stands twice, as a phone prints it to stdout and to logcat, counts once. A last line
    without its end is passed over: it may be cut within a number. Lines about anything else are, too. Raises
    :class:`DataError` where the text holds more than one evaluation.

    >>> log = parse_evaluation_log("INFO: Num evaluation runs: 4\nINFO: Top-1 Accuracy: 0.75\nINFO: Top-2 Acc")
    >>> log.runs, log.topk, log.task, log.is_complete
    (4, {1: 0.75}, 'imagenet', False)
    """
    records = plain_lines(text[: text.rfind("\n") + 1])
    blocks = _PictureBlocks()
    lines = [
        record.text.strip()
        for record in records
        if record.level in ("", "INFO") and record.text and not blocks.take(record.text.strip())
    ]
    overall = _only(_OVERALL, lines)
    runs = _only(_RUNS, lines)
    progress = [found for found in map(_PROGRESS.fullmatch, lines) if found]
    errors = [record.text for record in records if record.level in ("ERROR", "FATAL") and record.text]
    warnings = [record.text for record in records if _is_warning(record) and record.text not in _NOISE]
    return NativeEvaluationLog(
        runs=int(runs["runs"]) if runs else None,
        preprocessing=_latency(_PREPROCESSING, lines),
        inference=_latency(_INFERENCE, lines),
        reference=_latency(_REFERENCE, lines),
        test=_latency(_TEST, lines),
        topk={int(key): float(found["value"]) for key, found in _stated(_TOP_K, lines).items()},
        precisions={float(key): float(found["value"]) for key, found in _stated(_PRECISION, lines).items()},
        overall_map=float(overall["value"]) if overall else None,
        without_truth=WITHOUT_TRUTH in warnings,
        differences={
            int(key): LoggedDifference(float(found["avg"]), float(found["std"]))
            for key, found in _stated(_DIFFERENCE, lines).items()
        },
        pictures=blocks.whole(),
        progress=int(progress[-1]["percent"]) if progress else None,
        warnings=tuple(dict.fromkeys(warnings)),
        errors=tuple(dict.fromkeys(errors + [line for line in lines if _CRASH.fullmatch(line)])),
    )


def _is_warning(record: LogLine) -> bool:
    """Whether a line is a warning. Releases up to 2.11 do not say so: theirs are known by their text."""
    if record.level:
        return record.level == "WARNING"
    return record.text == WITHOUT_TRUTH or record.text.startswith(UNCONSUMED)


def _stated(pattern: re.Pattern[str], lines: Iterable[str]) -> dict[str, re.Match[str]]:
    """The lines that state a figure, by what each is about; DataError where two state different ones of the same."""
    found: dict[str, re.Match[str]] = {}
    for match in map(pattern.fullmatch, lines):
        if match:
            earlier = found.setdefault(match.groupdict().get("key", ""), match)
            if earlier[0] != match[0]:
                message = f"the text says {earlier[0]!r} and {match[0]!r}; give the text of one native evaluation alone"
                raise DataError(message)
    return found


def _only(pattern: re.Pattern[str], lines: Iterable[str]) -> re.Match[str] | None:
    return _stated(pattern, lines).get("")


def _latency(pattern: re.Pattern[str], lines: Iterable[str]) -> LoggedLatency | None:
    found = _only(pattern, lines)
    return LoggedLatency(float(found["avg"]), int(found["std"])) if found else None


class _PictureBlocks:
    """Collects the blocks of ``--debug_mode``, line by line."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._objects: list[dict[str, str]] = []
        self._found: dict[str, list[dict[str, str]]] = {}

    def take(self, line: str) -> bool:
        """Whether a line belongs to a block."""
        if line.startswith(_IMAGE):
            self._name, self._objects = line.removeprefix(_IMAGE), []
            return True
        if self._name is None:
            return False
        if line == _END_OF_IMAGE:
            self._close(self._name)
            return True
        header = _OBJECT.fullmatch(line)
        if header:
            if int(header["index"]) != len(self._objects):
                self._name = None
            self._objects.append({})
            return True
        key, _, value = line.partition(": ")
        if self._objects and key in _OBJECT_FIELDS:
            self._objects[-1][key] = value
            return True
        return line == "Bounding Box:"

    def whole(self) -> tuple[LoggedPicture, ...]:
        """Those of which no line is missing or damaged."""
        read = ((name, [_detection(found) for found in objects]) for name, objects in self._found.items())
        return tuple(
            LoggedPicture(name, tuple(filter(None, detections))) for name, detections in read if None not in detections
        )

    def _close(self, name: str) -> None:
        self._name = None
        if self._found.setdefault(name, self._objects) != self._objects:
            raise DataError(
                f"the text has two different lists of detections of {name!r}; give the text of one native evaluation "
                "alone"
            )


def _detection(found: dict[str, str]) -> Detection | None:
    values = [found.get(name, "") for name in _OBJECT_FIELDS]
    if not all(_NUMBER.fullmatch(value) for value in values) or not _WHOLE.fullmatch(values[1]):
        return None
    score, _, top, bottom, left, right = map(float, values)
    return Detection(int(values[1]), score, (top, left, bottom, right))
