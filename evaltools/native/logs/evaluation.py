"""What the text of a native evaluation says: imagenet, coco and inference_diff, or ours in their words."""

from __future__ import annotations

import re
from typing import Final, Literal

from msgspec import Struct

from evaltools.errors import DataError
from evaltools.metrics.boxes import Detection
from evaltools.native.logs.log_lines import LogLine, plain_lines

NativeTask = Literal["imagenet", "inference_diff", "coco"]
"""As the tasks are named in a result."""

FAILED: Final = "Could not run the task evaluation!"
WITHOUT_TRUTH: Final = "mAP metrics are meaningless w/o ground truth."
UNCONSUMED: Final = "Unconsumed cmdline flags:"
_NOISE: Final = frozenset({"", "All log messages before absl::InitializeLog() is called are written to STDERR"})
_INT: Final = r"-?\d{1,18}"
_FINITE: Final = rf"{_INT}(?:\.\d{{1,18}})?(?:e[+-]?\d{{1,3}})?"
_REAL: Final = rf"(?:{_FINITE}|-?nan|-?inf)"
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


class LoggedPicture(Struct, frozen=True):
    """What ``--debug_mode`` prints of a picture; numbers have six digits, classes have the tool's offset added."""

    name: str
    detections: tuple[Detection, ...]


class NativeEvaluationLog(Struct, frozen=True):
    """What a text says beside its figures, which are those of the result file; None or empty where it does not say it.

    ``pictures`` has those whose block is whole. ``errors`` holds what was logged as an error or as fatal, and what a
    crash said.
    """

    pictures: tuple[LoggedPicture, ...]
    warnings: tuple[str, ...]
    errors: tuple[str, ...]

    @property
    def failure(self) -> str | None:
        """Why the evaluation failed, as far as the text says: of many errors the first and the last two."""
        reasons = [error for error in self.errors if error != FAILED and not error.startswith("usage: ")]
        return "; ".join([*reasons[:1], *reasons[1:][-2:]]) or (self.errors[0] if self.errors else None)


def parse_evaluation_log(text: str) -> NativeEvaluationLog:
    r"""Read the text of one native evaluation, stdout, stderr or both, whole or cut off.

    Prefixes may be missing. What stands twice, as a phone prints it to stdout and to logcat, counts once. A last line
    without its end is passed over: it may be cut within a number. Lines about anything else are, too. Raises
    :class:`DataError` where the text has two different lists of detections of a picture.

    >>> parse_evaluation_log("INFO: Evaluated: 4%\nERROR: no memory\nINFO: Evalua").failure
    'no memory'
    """
    records = plain_lines(text[: text.rfind("\n") + 1])
    blocks = _PictureBlocks()
    lines = [
        record.text.strip()
        for record in records
        if record.level in ("", "INFO") and record.text and not blocks.take(record.text.strip())
    ]
    errors = [record.text for record in records if record.level in ("ERROR", "FATAL") and record.text]
    warnings = [record.text for record in records if _is_warning(record) and record.text not in _NOISE]
    return NativeEvaluationLog(
        pictures=blocks.whole(),
        warnings=tuple(dict.fromkeys(warnings)),
        errors=tuple(dict.fromkeys(errors + [line for line in lines if _CRASH.fullmatch(line)])),
    )


def _is_warning(record: LogLine) -> bool:
    """Whether a line is a warning. Releases up to 2.11 do not say so: theirs are known by their text."""
    if record.level:
        return record.level == "WARNING"
    return record.text == WITHOUT_TRUTH or record.text.startswith(UNCONSUMED)


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
