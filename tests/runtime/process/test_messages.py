"""What a child may answer: values of the expected type, and nothing that is code."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from msgspec import Struct

from evaltools.delegates.gpu import GPU
from evaltools.errors import ConfigurationUnavailable, EvaltoolsError, InferenceError, SessionEnded
from evaltools.runtime import TensorSpec
from evaltools.runtime.process.messages import (
    HEAD,
    MAGIC,
    Failure,
    WrongMessage,
    answer_size,
    decoded,
    encoded,
    framed,
    packed,
    unpacked,
)
from evaltools.tasks.framework.image_input import PictureFrame


def test_the_head_of_an_answer_states_its_size() -> None:
    sent = framed(3, b"answer")
    assert answer_size(sent[: HEAD.size], os.getpid(), 3) == len(sent) - HEAD.size


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"\0" * HEAD.size, "bytes that are no message"),
        (HEAD.pack(MAGIC, 8, 1, 0), "an answer of a copy of the process: native code called fork, and both went on"),
        (HEAD.pack(MAGIC, 7, 3, 0), "an answer to question 3, and 1 was asked"),
    ],
)
def test_what_is_no_answer_to_what_was_asked_is_refused(head: bytes, said: str) -> None:
    with pytest.raises(WrongMessage, match=said):
        answer_size(head, 7, 1)


class Given(Struct, frozen=True):
    numbers: npt.NDArray[Any]
    spec: TensorSpec | None = None


class Pickled:
    """Would run code where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os._exit, (3,)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (pickle.dumps(Pickled()), Given),
        (encoded("text"), int),
        (encoded({"numbers": ("O", (1,), b"12345678")}), Given),
        (encoded({"numbers": ("<f4", (2,), b"1234")}), Given),
        (encoded({"numbers": ("<f4,<f4", (1,), b"12345678")}), Given),
        (encoded({"numbers": ("texts", (1,), [3])}), Given),
        (encoded({"numbers": np.zeros(1), "spec": {"name": "x", "dtype": "<f4,O", "shape": ()}}), Given),
        (encoded({"kind": "EvaltoolsError"}), Failure),
    ],
)
def test_bytes_that_are_none_of_the_wanted_type_are_refused(content: bytes, wanted: Any) -> None:
    with pytest.raises(WrongMessage, match="a message that cannot be read"):
        decoded(content, wanted)


@pytest.mark.parametrize(
    "error",
    [
        SessionEnded("late", hung=True),
        ConfigurationUnavailable("no [driver]", GPU.name, cannot_exist=True),
        InferenceError("caf\udce9"),
    ],
)
def test_an_error_keeps_its_kind_its_text_and_what_it_knows(error: EvaltoolsError) -> None:
    found = decoded(encoded(Failure.of(error)), Failure).error
    assert (type(found), str(found), vars(found)) == (type(error), str(error), vars(error))


def test_of_an_error_of_somebody_else_the_nearest_kind_is_known() -> None:
    class Theirs(InferenceError):
        pass

    assert type(Failure.of(Theirs("x")).error) is InferenceError


@pytest.mark.parametrize("kind", ["SystemExit", "DEBUG", "os", ""])
def test_no_other_class_is_taken_for_an_error(kind: str) -> None:
    with pytest.raises(WrongMessage, match="an error of the unknown kind"):
        _ = Failure(kind, b"").error


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
