"""What the arrays of the user's own files must be: shapes, numbers of examples, types."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.datasets.input_files import Wanted, read_input_files
from evaltools.errors import DataError
from tests.datasets.test_input_files import IDS, PAIR, read_one, refused, saved


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
    assert f"needs {wanted}" in refused(saved(tmp_path / "x.npy", [1, 0], given), Wanted(("x",), wanted, (2,)))


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
