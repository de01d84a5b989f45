"""The part of a result about a model file."""

from __future__ import annotations

from msgspec import Struct, field


class Tensor(Struct, frozen=True):
    """An input or output of the model; -1 in ``shape`` is a size that may change."""

    name: str
    dtype: str
    shape: list[int]
    scale: float | None
    zero_point: int | None


class Model(Struct, frozen=True):
    """The model file. ``sha256`` is that of its bytes; ``operators`` counts those of all its graphs by name."""

    file: str
    sha256: str
    size_bytes: int
    node_count: int
    inputs: list[Tensor]
    outputs: list[Tensor]
    operators: dict[str, int] = field(default_factory=dict)
