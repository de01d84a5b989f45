"""The native tools' faces: their lines on stdout, their binary protobuf.

A task is one module here plus one line in ``_FACES``.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Final

from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.coco import native_lines as native_coco
from evaltools.tasks.imagenet import native_lines as native_imagenet
from evaltools.tasks.inference_diff import native_lines as native_inference_diff

_FACES: Final[dict[str, ModuleType]] = {
    "imagenet": native_imagenet,
    "inference_diff": native_inference_diff,
    "coco": native_coco,
}


def native_lines(result: EvaluationResult) -> list[str]:
    """The lines of the native tool for each measured test configuration.

    Several configurations give one block each, headed by its name.
    """
    measured = measured_tests(result)
    lines: list[str] = []
    for configuration in measured:
        if len([entry for entry in result.configurations if entry.role == "test"]) > 1:
            lines.append(f"Configuration: {configuration.name}")
        lines.extend(_FACES[result.task].lines(result, configuration))
    return [line if line.startswith("WARN: ") else f"INFO: {line}" for line in lines]


def measured_tests(result: EvaluationResult) -> Sequence[ConfigurationResult]:
    """The test configurations that have figures, in the order given."""
    return [entry for entry in result.configurations if entry.role == "test" and entry.status == "measured"]


def native_proto(result: EvaluationResult, configuration: ConfigurationResult) -> bytes:
    """``EvaluationStageMetrics`` of one configuration, serialised."""
    from evaltools.proto import message_class

    message = message_class("EvaluationStageMetrics")()
    _FACES[result.task].fill(message, result, configuration)
    data: bytes = message.SerializeToString()
    return data
