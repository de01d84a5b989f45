"""What a diff or a detection found out before it concluded, beside its result."""

from __future__ import annotations

from collections import deque
from typing import Any, Final
from unittest import mock

from evaltools.result.result import Result
from evaltools.runs import evaluate as evaluating
from evaltools.tasks.coco import boxes, conclude
from evaltools.tasks.coco.result import Detected
from evaltools.tasks.inference_diff import differences
from evaltools.tasks.inference_diff.result import InferenceDiff

_FOUND: Final[deque[tuple[Result, Any]]] = deque(maxlen=20)


def evaluate(*given: Any) -> Result:
    """Evaluate, and remember what was found out."""
    with (
        mock.patch.object(differences, "concluded", wraps=differences.concluded) as of_diff,
        mock.patch.object(boxes, "concluded", wraps=conclude.concluded) as of_boxes,
    ):
        result = evaluating.evaluate(*given)
    called = of_diff.call_args or of_boxes.call_args
    _FOUND.append((result, called.args[0]))
    return result


def diff_of(result: Result) -> InferenceDiff:
    """Of a diff that was evaluated here."""
    found = next(facts for each, facts in _FOUND if each is result)
    assert isinstance(found, InferenceDiff)
    return found


def boxes_of(result: Result) -> Detected:
    """Of a detection that was evaluated here."""
    found = next(facts for each, facts in _FOUND if each is result)
    assert isinstance(found, Detected)
    return found
