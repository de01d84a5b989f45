"""The part of a result about a model file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tensor:
    """An input or output of the model; -1 in ``shape`` is a size that may change."""

    name: str
    dtype: str
    shape: list[int]
    scale: float | None
    zero_point: int | None


@dataclass(frozen=True)
class Model:
    """The model file. ``sha256`` is that of its bytes."""

    file: str
    sha256: str
    size_bytes: int
    node_count: int
    inputs: list[Tensor]
    outputs: list[Tensor]
