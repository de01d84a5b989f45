"""The native tool's binary protobuf, one file per test configuration."""

from __future__ import annotations

from typing import Final

from evaltools.native.lines.evaluation import native_proto
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult

PER_CONFIGURATION: Final = True


def render(result: EvaluationResult, configuration: ConfigurationResult | None) -> bytes:
    """``EvaluationStageMetrics`` of a configuration."""
    assert configuration is not None
    return native_proto(result, configuration)
