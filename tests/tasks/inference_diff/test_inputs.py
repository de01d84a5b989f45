"""Where inputs come from: ranges of random numbers, and files; run by run the same, whoever asks in whatever order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.datasets.gaussian import GaussianInputs
from evaltools.errors import DataError, ImageError, ModelError, UsageError
from evaltools.model import ModelFile, TensorInfo
from evaltools.model.metadata import ValueRange
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.input_options import InputOptions
from evaltools.tasks.inference_diff.inputs import InputPlan, Ranges, RunInputs, plan_inputs

STATED = ", stated in the model's metadata"


def tensor(name: str = "x", dtype: str = "float32", shape: tuple[int, ...] = (500,), **facts: object) -> TensorInfo:
    return replace(TensorInfo(0, name, dtype, shape, shape, None, None), **facts)


def model(*inputs: TensorInfo, **facts: object) -> ModelFile:
    return replace(ModelFile(Path("m"), "", 0, inputs, (), 1, None), **facts)


def plan(*inputs: TensorInfo, **options: object) -> InputPlan:
    return plan_inputs(model(*inputs), inputs, InputOptions(**options))  # type: ignore[arg-type]


def drawn(info: TensorInfo, **options: object) -> tuple[list[float], str]:
    """All numbers of the first ten runs, and the words for them."""
    found = plan(info, **options)
    runs = [found.source.inputs(run)[0] for run in range(10)]
    assert all((values.dtype, values.shape) == (np.dtype(info.dtype), info.shape) for values in runs)
    return np.concatenate(runs).tolist(), found.described[0]


@pytest.mark.parametrize(
    ("info", "lowest", "highest", "words"),
    [
        (tensor(dtype="uint8"), 0, 254, "Gaussian in 0..255"),
        (tensor(dtype="int8"), -127, 126, "Gaussian in -128..127"),
        (tensor(dtype="int32"), 0, 127, "Gaussian in 0..127"),
        (tensor(dtype="uint64"), 0, 127, "Gaussian in 0..127"),
        (tensor(dtype="int64", rows=30), 0, 29, "Gaussian in 0..29, rows of a table of 30"),
        (tensor(rows=30), 0, 29, "Gaussian in 0..29, rows of a table of 30"),
        (tensor(dtype="int32", rows=1), 0, 0, "Gaussian in 0..0, rows of a table of 1"),
        (tensor(dtype="uint8", stated_range=ValueRange(3, 9)), 3, 9, f"Gaussian in 3..9{STATED}"),
        (tensor(dtype="uint8", stated_range=ValueRange(0, 255)), 0, 254, f"Gaussian in 0..255{STATED}"),
        (tensor(dtype="int8", stated_range=ValueRange(0, 255)), -127, 126, "Gaussian in -128..127"),
        (tensor(dtype="int32", rows=5, stated_range=ValueRange(0, 9)), 0, 4, "Gaussian in 0..4, rows of a table of 5"),
    ],
)  # fmt: skip
def test_whole_numbers_are_drawn_where_they_make_sense(info: TensorInfo, lowest: int, highest: int, words: str) -> None:
    values, described = drawn(info)
    assert (min(values), max(values), described) == (lowest, highest, words)


def test_floats_are_drawn_as_in_the_native_tool() -> None:
    values, described = drawn(tensor(shape=(5,)))
    recorded = [-0.0813105106, -0.72454536, 0.456193328, -0.716792822, 0.0221796036]
    assert values[:5] == np.array(recorded, np.float32).tolist()
    assert described == "Gaussian in -1..1"
    assert drawn(tensor(), seed=2)[0] != drawn(tensor())[0]


def test_complex_numbers_have_two_parts_each() -> None:
    values, _ = drawn(tensor(dtype="complex64", shape=(2,)))
    assert values[:2] == [
        complex(*pair) for pair in GaussianInputs().values("float32", 4, -1, 1).reshape(2, 2).tolist()
    ]


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (tensor(dtype="bool"), "false, as the native tool"),
        (tensor(dtype="int32", rows=3), "Gaussian in -2.14748e+09..2.14748e+09, as the native tool"),
        (tensor(rows=3), "Gaussian in -1..1, as the native tool"),
    ],
)
def test_native_inputs_ignore_what_the_model_tells(info: TensorInfo, words: str) -> None:
    values, described = drawn(info, native=True)
    assert described == words
    assert set(values) == {False} if info.dtype == "bool" else min(values) < 0


def test_given_ranges_reach_both_ends() -> None:
    assert set(drawn(tensor(dtype="int32", rows=3), ranges=("5:8",))[0]) == {5, 6, 7, 8}
    values, described = drawn(tensor("a:0"), ranges=("a:0:-3:4.5",))
    assert (round(min(values)), round(max(values), 1), described) == (-3, 4.5, "Gaussian in -3..4.5, as given")
    assert plan(tensor(dtype="int8"), ranges=("-128:127",)).described == ("Gaussian in -128..127, as given",)


def test_ranges_go_to_the_input_that_they_name() -> None:
    found = plan(tensor("a"), tensor("b"), tensor("c", signature_name="d"), ranges=("1:0:5", "d:7:9"))
    assert [words.removesuffix(", as given").rpartition(" ")[2] for words in found.described] == [
        "-1..1",
        "0..5",
        "7..9",
    ]


@pytest.mark.parametrize(
    ("info", "text", "message"),
    [
        (tensor(), "x:1", "use NAME:LOW:HIGH with LOW below HIGH"),
        (tensor(), "7", "use NAME:LOW:HIGH"),
        (tensor(), "x:1:1", "use NAME:LOW:HIGH"),
        (tensor(), "x:2:1", "use NAME:LOW:HIGH"),
        (tensor(), "x:0:inf", "use NAME:LOW:HIGH"),
        (tensor(), "x:nan:1", "use NAME:LOW:HIGH"),
        (tensor(), "y:0:1", "has no input 'y'; it has 'x'"),
        (tensor(dtype="bool"), "0:1", "holds no numbers; leave the flag out"),
        (tensor(dtype="string"), "0:1", "holds no numbers"),
        (tensor(dtype="int8"), "-129:0", "needs whole numbers in -128..127"),
        (tensor(dtype="int8"), "0:128", "needs whole numbers in -128..127"),
        (tensor(dtype="uint8"), "0:0.5", "needs whole numbers in 0..255"),
    ],
)
def test_ranges_that_mean_nothing_are_refused(info: TensorInfo, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(info, ranges=(text,))
    assert message in str(caught.value)


def test_a_range_without_a_name_is_not_given_to_one_of_several_inputs() -> None:
    with pytest.raises(ModelError, match="has no input ''; it has 'a', 'b'"):
        plan(tensor("a"), tensor("b"), ranges=("0:1",))
    with pytest.raises(UsageError, match="'0' is given twice"):
        plan(tensor("a"), tensor("b"), ranges=("a:0:1", "0:0:1"))


def test_examples_of_files_are_used_in_turn(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3, dtype=np.float32)[:, None])
    found = plan(tensor(shape=(1,)), tensor("y"), files=(f"x={tmp_path}/x.npy",))
    assert (found.example_ids, found.described[0]) == (("run 0", "run 1", "run 2"), "files, 3 examples")
    assert [found.source.inputs(run)[0].tolist() for run in (0, 2, 4)] == [[0], [2], [1]]
    assert len(plan(tensor(shape=(1,)), num_runs=7, files=(f"{tmp_path}/x.npy",)).example_ids) == 7


def test_unnamed_inputs_are_told_by_their_position(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(1, np.float32))
    swapped = [tensor("", shape=(1,), index=1), tensor("", shape=(1,), index=0)]
    assert plan(*swapped, files=(f"1={tmp_path}/x.npy",)).described == ("Gaussian in -1..1", "files, 1 example")
    with pytest.raises(DataError, match="is not an input. Inputs: '0' float32"):
        plan(*swapped, files=(f"2={tmp_path}/x.npy",))


RUNS = 12
BROKEN = (0, 3, 4, 9)


TENSORS = (
    tensor("floats", "float32", (7, 3)),
    tensor("halves", "float16", (7, 3)),
    tensor("whole", "int32", (7, 3), rows=40),
    tensor("bytes", "uint8", (7, 3)),
    tensor("complex", "complex64", (7, 3)),
    tensor("truths", "bool", (7, 3)),
    tensor("words", "string", (7, 3)),
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
