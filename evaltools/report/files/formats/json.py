"""The whole result as JSON, described by ``result.schema.json``."""

from __future__ import annotations

from typing import Final

from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.json_file import encode_json

PER_CONFIGURATION: Final = False


def render(result: EvaluationResult, _configuration: ConfigurationResult | None) -> bytes:
    """The result, whatever the configuration."""
    return encode_json(result)
