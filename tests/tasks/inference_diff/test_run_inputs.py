"""Inputs run by run: whoever asks, in whatever order, gets those of asking from first to last."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.datasets.gaussian import GaussianInputs
from evaltools.errors import ImageError
from evaltools.model import ModelFile, TensorInfo
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.inputs import InputOptions, Ranges, RunInputs, plan_inputs

RUNS = 12
BROKEN = (0, 3, 4, 9)


def tensor(name: str, dtype: str, **facts: Any) -> TensorInfo:
    return replace(TensorInfo(0, name, dtype, (7, 3), (7, 3), None, None), **facts)


TENSORS = (
    tensor("floats", "float32"),
    tensor("halves", "float16"),
    tensor("whole", "int32", rows=40),
    tensor("bytes", "uint8"),
    tensor("complex", "complex64"),
    tensor("truths", "bool"),
    tensor("words", "string"),
)


def planned(native: bool = False) -> RunInputs:
    tensors = tuple(entry for entry in TENSORS if not (native and entry.dtype == "complex64"))
    return plan_inputs(
        ModelFile(Path("m"), "", 0, tensors, (), 1, None), tensors, InputOptions(native=native, seed=3)
    ).source


def with_pictures() -> RunInputs:
    """A stored input beside a random one; some of its runs have no picture."""
    gaussian = GaussianInputs()

    def picture(index: int, _ranges: Ranges) -> Array:
        if index in BROKEN:
            raise ImageError(f"{index}.jpg is broken")
        return np.array([index])

    return RunInputs(
        2, {1: picture}, {0: lambda _index, _ranges: gaussian.values("float32", 5, -1, 1)}, {}, gaussian.restart
    )


def asked(source: RunInputs, index: int) -> list[Any] | str:
    try:
        return [values.tolist() for values in source.inputs(index)]
    except ImageError as error:
        return str(error)


sources = pytest.mark.parametrize("make", [planned, lambda: planned(native=True), with_pictures])


@sources
@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_asking_gives_the_inputs_of_asking_in_order(make: Any, seed: int) -> None:
    source = make()
    in_order = [asked(source, index) for index in range(RUNS)]
    fresh, chance = make(), random.Random(seed)
    for index in (*chance.choices(range(RUNS), k=2 * RUNS), *chance.sample(range(RUNS), RUNS)):
        assert asked(fresh, index) == in_order[index]


@sources
def test_no_two_runs_have_the_same_inputs(make: Any) -> None:
    source = make()
    assert len({str(asked(source, index)) for index in range(RUNS)}) == RUNS


def test_a_run_without_picture_takes_nothing_from_the_random_numbers() -> None:
    source = with_pictures()
    found = [asked(source, index) for index in range(RUNS)]
    assert [index for index, entry in enumerate(found) if isinstance(entry, str)] == list(BROKEN)
    gaussian = GaussianInputs()
    for index in range(RUNS):
        if index not in BROKEN:
            assert found[index] == [gaussian.values("float32", 5, -1, 1).tolist(), [index]]


def test_remembered_runs_are_not_drawn_again() -> None:
    drawn: list[int] = []
    restarts: list[int] = []

    def draw(index: int, _ranges: Ranges) -> Array:
        drawn.append(index)
        return np.array(len(drawn))

    source = RunInputs(1, {}, {0: draw}, {}, lambda: restarts.append(len(drawn)), remember={0, 2})
    for index in (0, 1, 2, 0, 2, 3):
        source.inputs(index)
    assert (drawn, restarts) == ([0, 1, 2, 3], [])
    assert [int(source.inputs(index)[0]) for index in (0, 2)] == [1, 3]
    source.inputs(1)
    assert (drawn[4:], restarts) == ([0, 1], [4])


def test_without_random_inputs_nothing_is_begun_anew() -> None:
    read: list[int] = []

    def stored(index: int, _ranges: Ranges) -> Array:
        read.append(index)
        return np.array(index)

    def refuse() -> None:
        raise AssertionError("there is nothing to begin anew")

    source = RunInputs(1, {0: stored}, {}, {}, refuse)
    assert [int(source.inputs(index)[0]) for index in (7, 2, 9, 2)] == [7, 2, 9, 2]
    assert read == [7, 2, 9, 2]
