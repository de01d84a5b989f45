"""What a task needs to interpret outputs comes back from another process as it was, or is not sent; never code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from msgspec import Struct

from evaltools.engine.context import packed, unpacked
from evaltools.runtime.process.messages import WrongMessage, encoded
from evaltools.tasks.framework.image_input import PictureFrame


@dataclass(frozen=True)
class Place:
    """What is made anew without a call: that would double."""

    box: tuple[float, tuple[int, int]]
    names: list[str]

    def __post_init__(self) -> None:
        self.names.append(self.names[0])


CONTEXTS: list[Any] = [
    None,
    {"factor": 2.5, 3: (True, b"\xff"), (4, "x"): {}},
    Place((0.5, (3, 4)), ["a"]),
    PictureFrame(3, 4, None),
]


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_context_of_data_comes_back_as_it_was(context: Any) -> None:
    found = unpacked(packed(context))
    assert (found, type(found)) == (context, type(context))


def test_arrays_in_a_context_keep_their_type_and_can_be_changed() -> None:
    array, number = unpacked(packed([np.arange(3, dtype=np.int8), np.float32(2)]))
    array += 1
    assert (array.dtype, array.tolist(), number.dtype, float(number)) == (np.int8, [1, 2, 3], np.float32, 2)


class Size(NamedTuple):
    width: int


@dataclass
class Slotted:
    __slots__ = ("width",)
    width: int


class Doubled(Struct):
    width: int

    def __post_init__(self) -> None:
        self.width *= 2


@dataclass(frozen=True)
class More(Place):
    """Its base may keep something of its own."""


OTHER_CONTEXTS = [
    object(),
    {1, 2},
    open,
    lambda: None,
    [object()],
    Size(3),
    Slotted(3),
    Doubled(3),
    More((0.5, (3, 4)), ["a"]),
    1 << 70,
    "\udcff",
    np.array([1, None]),
    np.zeros(2, [("x", "f4")]),
    np.zeros(2).view(np.recarray),
]


@pytest.mark.parametrize("context", OTHER_CONTEXTS)
def test_what_would_not_come_back_as_it_was_is_not_packed(context: Any) -> None:
    assert packed(context) == b""


@pytest.mark.parametrize(
    "name",
    ["os:system", "subprocess:Popen", "builtins:eval", "functools:partial", "nowhere:Class", f"{__name__}:Doubled"],
)
def test_nothing_but_a_class_of_data_is_made(name: str) -> None:
    with pytest.raises(WrongMessage):
        unpacked(encoded([name, ["width", 3]]))


@pytest.mark.parametrize("content", [b"", b"\xc1", encoded([]), encoded([1]), encoded(["dict", 3]), encoded(["array"])])
def test_what_was_not_packed_is_refused(content: bytes) -> None:
    with pytest.raises(WrongMessage):
        unpacked(content)
