"""Values of one input from files: raw numbers, texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt
import pytest

from evaltools.benchmark.inputs import read_values
from evaltools.errors import DataError
from evaltools.model import TensorInfo


def tensor(dtype: str = "float32", shape: tuple[int, ...] = (2,)) -> TensorInfo:
    return TensorInfo(0, "x", dtype, shape, shape, None, None)


def read(info: TensorInfo, path: Path) -> npt.NDArray[Any]:
    values = read_values(info, str(path))
    assert values.shape == info.shape
    return values


@pytest.mark.parametrize(
    ("dtype", "content", "values"),
    [
        ("float32", b"\x00\x00\x80\x3f\x00\x00\x00\xc0", [1.0, -2.0]),
        ("int16", b"\xff\xff\x00\x01", [-1, 256]),
        ("uint64", b"\x01" + bytes(14) + b"\x80", [1, 2**63]),
        ("bool", b"\x00\x02", [False, True]),
        ("bfloat16", b"\x80\x3f\x00\xc0", [0x3F80, 0xC000]),
        ("complex64", bytes(8) + b"\x00\x00\x80\x3f\x00\x00\x00\xc0", [0, 1 - 2j]),
    ],
)
def test_raw_files_hold_little_endian_numbers(tmp_path: Path, dtype: str, content: bytes, values: list[Any]) -> None:
    (tmp_path / "x").write_bytes(content)
    array = read(tensor(dtype=dtype), tmp_path / "x")
    assert array.tolist() == values
    assert array.dtype.isnative
    assert array.flags.writeable


@pytest.mark.parametrize(
    ("name", "content", "shape", "texts"),
    [
        ("x.txt", b"one\0two\0", (2,), [b"one", b"two"]),
        ("x.txt", b"one\0two", (2, 1), [[b"one"], [b"two"]]),
        ("x.txt", b"\0\0\0", (3,), [b"", b"", b""]),
        ("x.txt", b"one", (), b"one"),
        ("x.pb", b"a\0b\0", (1,), [b"a\0b\0"]),
        ("x.pb", b"", (1, 1), [[b""]]),
        ("x.txt", b"", (0,), []),
    ],
)
def test_texts_come_from_files(tmp_path: Path, name: str, content: bytes, shape: tuple[int, ...], texts: Any) -> None:
    (tmp_path / name).write_bytes(content)
    assert read(tensor(dtype="string", shape=shape), tmp_path / name).tolist() == texts


@pytest.mark.parametrize(
    ("dtype", "name", "content", "words"),
    [
        ("float32", "x.bin", bytes(7), "The size of {path} is 7 bytes. It should be 8 bytes. The input x: float32[2]"),
        ("float32", "x.bin", b"", "The size of {path} is 0 bytes. It should be 8 bytes."),
        ("string", "x.txt", b"a", "The number of string in the input_layer_value_file({path}) is 1. It should be 2."),
        ("string", "x.pb", b"a\0b", "The number of string in the input_layer_value_file({path}) is 1. It should be 2."),
    ],
)
def test_files_of_another_size_are_refused(tmp_path: Path, dtype: str, name: str, content: bytes, words: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(tensor(dtype=dtype), path)
    assert str(caught.value).startswith(words.format(path=path))


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    missing = tmp_path / "none.bin"
    with pytest.raises(DataError) as caught:
        read(tensor(), missing)
    assert str(caught.value).startswith(f"Failed to read the input_layer_value_file:{missing}; No such file")
    with pytest.raises(DataError, match="Is a directory"):
        read(tensor(), tmp_path)
