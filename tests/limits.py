"""Limits as the flags of an inference diff state them."""

from __future__ import annotations

from typing import Final

from evaltools.gates.criteria import Criterion
from evaltools.gates.limits import parse_limit
from evaltools.tasks.inference_diff import options

LIMITS: Final = {each.name: each for each in options.LIMITS}


def limit_of(name: str, text: str) -> Criterion:
    return parse_limit(LIMITS[name], text)
