"""What a child may answer: values of the expected type, and nothing that is code."""

from __future__ import annotations

import os
import pickle
from typing import Any

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
)


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
