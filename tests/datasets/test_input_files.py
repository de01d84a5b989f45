"""Inputs from the user's own files: which input they are for, what they must be, and files that cannot be read."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.datasets.input_files import Wanted, read_input_files
from evaltools.errors import DataError

PAIR = Wanted(("pair", "serving:0"), "float32", (2, 3))
IDS = Wanted(("ids", "a=b"), "int8", (1, 4))
SIX = np.arange(6, dtype=np.float32).reshape(2, 3)


def saved(path: Path, values: npt.ArrayLike, dtype: str | None = None) -> str:
    np.save(path, np.array(values, dtype))
    return str(path)


def read_one(text: str, tensor: Wanted) -> list[object]:
    """The examples of the only input, as lists."""
    arrays = read_input_files([text], [tensor])[0]
    assert all(isinstance(array, np.ndarray) and array.shape == tensor.shape for array in arrays)
    assert {array.dtype for array in arrays} == {np.dtype(object if tensor.dtype == "string" else tensor.dtype)}
    return [array.tolist() for array in arrays]


def refused(text: str, *tensors: Wanted) -> str:
    with pytest.raises(DataError) as caught:
        read_input_files([text], tensors)
    assert str(caught.value).startswith("--input_files")
    return str(caught.value)


def test_an_array_for_the_only_input(tmp_path: Path) -> None:
    assert read_one(saved(tmp_path / "x.npy", SIX), PAIR) == [SIX.tolist()]


def test_an_archive_names_its_inputs(tmp_path: Path) -> None:
    for save in (np.savez, np.savez_compressed):
        arrays: Any = {"ids": np.zeros((1, 4), np.int8), "serving:0": SIX}
        save(tmp_path / "x.npz", **arrays)
        found = read_input_files([str(tmp_path / "x.npz")], [PAIR, IDS])
        assert {position: arrays[0].tolist() for position, arrays in found.items()} == {
            0: SIX.tolist(),
            1: [[0, 0, 0, 0]],
        }


@pytest.mark.parametrize("name", ["pair", "serving:0", "0"])
def test_an_input_goes_by_each_of_its_names_and_its_number(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path / "with=and:.npy", SIX)
    assert read_input_files([f"{name}={path}"], [PAIR, IDS]).keys() == {0}


def test_without_a_name_one_of_several_inputs_is_not_guessed(tmp_path: Path) -> None:
    path = saved(tmp_path / "x.npy", SIX)
    assert f"does not say which input it is for; write NAME={path}" in refused(path, PAIR, IDS)


@pytest.mark.parametrize("text", ["", "pair=", "none.npy", "pair=none.npy", "long" * 100, "pair=a=b"])
def test_a_path_that_leads_nowhere_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "x.npy", SIX)
    assert "give PATH, or NAME=PATH" in refused(text, PAIR)


def test_a_folder_stands_for_its_files_in_order(tmp_path: Path) -> None:
    for name, value in (("b.npy", 2.0), ("a.npy", 1.0), (".hidden", 0.0)):
        with (tmp_path / name).open("wb") as stream:
            np.save(stream, np.full((2, 3), value, np.float32))
    (tmp_path / "c.raw").write_bytes(np.full((2, 2, 3), 3, "<f4").tobytes())
    arrays = read_input_files([str(tmp_path)], [PAIR])[0]
    assert [float(array.max()) for array in arrays] == [1, 2, 3, 3]


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert "has no files" in refused(str(tmp_path), PAIR)


def test_files_that_would_run_code_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], object), allow_pickle=True)
    assert "it holds Python objects (pickles), which are never loaded" in refused(str(tmp_path / "x.npy"), PAIR)
    np.savez(tmp_path / "x.npz", pair=np.array([{}], object))
    assert "it holds Python objects (pickles), which are never loaded" in refused(str(tmp_path / "x.npz"), PAIR)


def test_files_that_claim_or_unpack_to_any_size_are_refused_before_they_are_read(tmp_path: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 50000, 50000, 2)}"
    claim = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (tmp_path / "x.npy").write_bytes(claim)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("pair.npy", claim)
    for name in ("x.npy", "x.npz"):
        assert "it states an array of 20000000000 bytes, and has 0" in refused(str(tmp_path / name), PAIR)


def test_files_of_another_kind_than_their_name_says_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", pair=SIX)
    shutil.move(tmp_path / "x.npz", tmp_path / "archive.npy")
    shutil.move(saved(tmp_path / "x.npy", SIX), tmp_path / "array.npz")
    with zipfile.ZipFile(tmp_path / "text.npz", "w") as archive:
        archive.writestr("pair", "hello")
    for name in ("archive.npy", "array.npz", "text.npz"):
        assert "cannot be read" in refused(str(tmp_path / name), PAIR)
    np.savez(tmp_path / "empty.npz")
    assert "holds no array" in refused(str(tmp_path / "empty.npz"), PAIR)


def test_raw_bytes_are_little_endian_numbers(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(bytes([1, 0, 0, 1, 255, 255]))
    assert read_one(str(tmp_path / "x.bin"), Wanted(("x",), "int16", (3,))) == [[1, 256, -1]]
    assert read_one(str(tmp_path / "x.bin"), Wanted(("x",), "uint8", (1, 2))) == [[[1, 0]], [[0, 1]], [[255, 255]]]


@pytest.mark.parametrize("content", [b"", bytes(23), bytes(25)])
def test_raw_bytes_of_another_size_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.bin").write_bytes(content)
    message = f"has {len(content)} bytes; the input 'pair' float32[2,3] takes 24, or a multiple"
    assert message in refused(str(tmp_path / "x.bin"), PAIR)


@pytest.mark.parametrize(
    ("shape", "tensor_shape", "count"),
    [
        ((2, 3), (2, 3), 1),
        ((5, 2, 3), (2, 3), 5),
        ((5, 4), (1, 4), 5),
        ((5, 1, 4), (1, 4), 5),
        ((1, 4), (1, 4), 1),
        ((), (), 1),
        ((5,), (), 5),
        ((5,), (1,), 5),
    ],
)
def test_examples_lie_along_a_first_axis(
    tmp_path: Path, shape: tuple[int, ...], tensor_shape: tuple[int, ...], count: int
) -> None:
    for dtype in ("float32", "string"):
        numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        path = saved(tmp_path / "x.npy", numbers, "float32" if dtype == "float32" else "S")
        examples = read_one(path, Wanted(("x",), dtype, tensor_shape))
        assert len(examples) == count
        joined = np.array(examples).ravel().astype(int).tolist()
        assert joined == numbers.ravel().tolist()


@pytest.mark.parametrize("shape", [(), (6,), (3, 2), (0, 2, 3), (2, 2, 2, 3), (1, 2, 4)])
def test_another_shape_is_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    message = refused(saved(tmp_path / "x.npy", np.zeros(shape)), PAIR)
    assert f"has an array of shape {list(shape)}; the input 'pair' float32[2,3] takes [2, 3], or several" in message


def test_one_example_may_go_with_several(tmp_path: Path) -> None:
    several, one = saved(tmp_path / "s.npy", np.zeros((3, 2, 3))), saved(tmp_path / "o.npy", np.zeros((1, 4), np.int8))
    found = read_input_files([f"pair={several}", f"ids={one}"], [PAIR, IDS])
    assert [len(found[position]) for position in (0, 1)] == [3, 1]
    two = saved(tmp_path / "t.npy", np.zeros((2, 4), np.int8))
    with pytest.raises(DataError, match=r"different numbers of examples \('pair': 3, 'ids': 2\)"):
        read_input_files([f"pair={several}", f"ids={two}"], [PAIR, IDS])


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("int64", "int8"), ("uint8", "int8"), ("bool", "float32"), ("float64", "float16"), ("int32", "float32")],
)
def test_numbers_of_a_wider_type_are_converted(tmp_path: Path, given: str, wanted: str) -> None:
    assert read_one(saved(tmp_path / "x.npy", [1, 0], given), Wanted(("x",), wanted, (2,))) == [[1, 0]]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("float32", "int8"), ("complex64", "float32"), ("int8", "bool"), ("S1", "float32"), ("float32", "string")],
)
def test_numbers_of_another_kind_are_refused(tmp_path: Path, given: str, wanted: str) -> None:
    message = refused(saved(tmp_path / "x.npy", [1, 0], given), Wanted(("x",), wanted, (2,)))
    assert f"needs {wanted}" in message
    assert ("save round(real / scale) + zero point" in message) == (wanted == "int8")


@pytest.mark.parametrize(
    ("values", "given", "wanted"),
    [
        ([127, 128], "int64", "int8"),
        ([-129, 0], "int16", "int8"),
        ([0, 2**63], "uint64", "int64"),
        ([1e300, 0], "float64", "float32"),
        ([0, -1e5], "float32", "float16"),
    ],
)
def test_numbers_out_of_range_are_refused(tmp_path: Path, values: list[float], given: str, wanted: str) -> None:
    message = refused(saved(tmp_path / "x.npy", values, given), Wanted(("x",), wanted, (2,)))
    assert f"has numbers beyond {wanted}" in message


def test_texts_become_bytes(tmp_path: Path) -> None:
    texts = Wanted(("texts",), "string", (2,))
    assert read_one(saved(tmp_path / "u.npy", ["zoë", ""]), texts) == [["zoë".encode(), b""]]
    assert read_one(saved(tmp_path / "s.npy", [b"\xff", b"long"]), texts) == [[b"\xff", b"long"]]
    (tmp_path / "x.txt").write_text("hello")
    assert "texts cannot be read from raw bytes" in refused(str(tmp_path / "x.txt"), texts)
