"""Native code that writes to every descriptor runs no code in the parent, and gives it no wrong outputs.

It runs none there either when it answers in the place of the child.
"""

from __future__ import annotations

import inspect
import os
import pickle
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import Raw

from evaltools.configuration import Configuration
from evaltools.errors import InferenceError, SessionEnded
from evaltools.runtime import Inference
from evaltools.runtime.process.isolated import Ran
from evaltools.runtime.process.messages import Answer, Failure, encoded, framed
from evaltools.runtime.process.restarting import RestartingSession
from evaltools.runtime.process.shared_arrays import Placed
from evaltools.runtime.session import Array
from tests.hostile.examples import EXAMPLES
from tests.runtime.openers import Stated, isolated

Harm = Callable[[int], object]
"""What is done to a descriptor."""


class Touching:
    """Makes a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def writing(content: bytes, descriptor: int) -> None:
    os.write(descriptor, content)


def overwriting(content: bytes, descriptor: int) -> None:
    os.pwrite(descriptor, content, 0)


def cutting(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)


def forging(question: int, descriptor: int) -> None:
    os.write(descriptor, framed(question, encoded(Answer())))


def junk(number: int) -> bytes:
    """Random bytes, of every length up to some thousand, or what begins like a message."""
    chance = np.random.default_rng(number)
    content = chance.bytes(int(chance.integers(1, 5000)))
    return [content, bytes(number % 40), b"\x80\x05" + content, framed(number % 5, content)][number % 4]


HARMS: dict[str, Harm] = {
    **{f"junk {number}": partial(writing, junk(number)) for number in range(EXAMPLES // 10)},
    **{f"forged answer {question}": partial(forging, question) for question in range(1, 4)},
    "pickle": partial(writing, pickle.dumps(Touching(Path("touched")))),
    "framed pickle": partial(writing, framed(2, pickle.dumps(Touching(Path("touched"))))),
    "overwritten": partial(overwriting, b"\x55" * 5000),
    "cut": cutting,
}


def harming(_model: object, configuration: Configuration) -> Stated:
    """A session that doubles, and from its second answer on does harm to all descriptors before it answers."""
    harm, runs = HARMS[str(configuration.delegates.value("external_delegate_path"))], 0

    def run(inputs: Sequence[Array]) -> tuple[Array, ...]:
        nonlocal runs
        runs += 1
        for descriptor in range(3, 256) if runs > 1 else ():
            with suppress(OSError, ValueError):  # it is closed, or of another kind
                harm(descriptor)
        return (np.multiply(inputs[0], 2),)

    return Stated(run)


@pytest.mark.parametrize("harm", HARMS)
def test_whatever_is_written_to_all_descriptors_outputs_are_right_or_there_are_none(
    harm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    opened = partial(isolated, harming, f"external_delegate_path='{harm}'", 20.0)
    session = RestartingSession(opened(), opened)
    outcomes = session.run_block([[np.full((2, 3), value, np.float32)] for value in range(3)])
    for value, outcome in enumerate(outcomes):
        if isinstance(outcome, SessionEnded):
            assert re.search(
                r"sent (bytes that are no message|a message that cannot be read|an answer to)|died", str(outcome)
            )
        else:
            assert isinstance(outcome, Inference)
            assert (outcome.outputs[0] == 2 * value).all()
    session.close()
    assert session.crashes.count or harm in ("cut", "overwritten")
    assert list(tmp_path.iterdir()) == [], "no code ran"


FORGED: dict[str, bytes] = {
    "pickle": pickle.dumps(Touching(Path("touched"))),
    "pickle in an answer": encoded(Answer(Raw(pickle.dumps(Touching(Path("touched")))))),
    "nothing": encoded(Answer()),
    "another type": encoded(Answer(Raw(encoded(["text"])))),
    "addresses": encoded(Answer(Raw(encoded([Ran((Placed("|O", (2, 3), 0),))])))),
    "addresses in bytes": encoded(Answer(Raw(encoded([Ran((Placed("|O", (1,), -1, b"12345678"),))])))),
    "a place outside": encoded(Answer(Raw(encoded([Ran((Placed("<f4", (2, 3), 1 << 40),))])))),
    "too many numbers": encoded(Answer(Raw(encoded([Ran((Placed("<f4", (1 << 40,), 0),))])))),
    "a class": encoded(Answer(failure=Failure("SystemExit", b"3"))),
    "a module": encoded(Answer(failure=Failure("annotations", b""))),
}


def forging_all(_model: object, configuration: Configuration) -> Stated:
    """A session that finds the socket, and answers in the place of the child."""
    content = FORGED[str(configuration.delegates.value("external_delegate_path"))]

    def run(_inputs: Sequence[Array]) -> tuple[Array, ...]:
        caller = inspect.currentframe()
        while caller is not None and "question" not in caller.f_locals:
            caller = caller.f_back
        assert caller is not None
        known = caller.f_locals
        known["end"].sendall(framed(known["question"], content))
        os._exit(0)

    return Stated(run)


@pytest.mark.parametrize("forged", FORGED)
def test_an_answer_of_native_code_is_data_or_an_error(
    forged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session = isolated(forging_all, f"external_delegate_path='{forged}'", 20.0)
    (outcome,) = session.run_block([[np.zeros((2, 3), np.float32)]])
    assert isinstance(outcome, InferenceError)
    session.close()
    assert list(tmp_path.iterdir()) == [], "no code ran"
