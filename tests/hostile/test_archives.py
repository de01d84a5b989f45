"""Archives of strangers, behind a model or by themselves: read, or refused, in little time and memory."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from evaltools import exit_codes
from evaltools.datasets import sample
from evaltools.datasets.input_files import Wanted, read_input_files
from evaltools.datasets.labels import read_labels
from evaltools.errors import DataError, EvaltoolsError
from evaltools.tasks.inference_diff.saved_outputs import read_saved_reference
from tests.command import evaltools_here
from tests.hostile.examples import PARTS, numbers_of
from tests.hostile.watched import Watch

_HEADERS: Final = {b"PK\x03\x04": 30, b"PK\x01\x02": 46, b"PK\x05\x06": 22}
"""Of a member, of its entry, and of the end; with their lengths."""
_NUMBERS: Final = (0, 1, 8, 9, 12, 14, 93, 95, 98, 99, 0x7FFF, 0xFFFE, 0xFFFF)
_METHODS: Final = (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_NAMES: Final = ("../x.npy", "/etc/x.npy", "x" * 5000, "\x1b[2J\u202e.npy", "labels.txt")
_HEADER_TEXTS: Final = (
    "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000, 1000000)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3)}",
    "{'descr': '|V0', 'fortran_order': False, 'shape': (9999999999,)}",
    "{'descr': [('a', '<f4'), ('b', '|O')], 'fortran_order': False, 'shape': (1,)}",
    "{'descr': '<f4'}",
    "(" * 3000,
    "{'shape': " + "9" * 5000 + "}",
    "__import__('os').system('true')",
)
_BOMB_BYTES: Final = 300 << 20
_GIGABYTES: Final = 20


def edited(seed: int) -> tuple[str, bytes]:
    """An archive with one to three edits, and what was done in words."""
    chance = random.Random(seed)
    name = chance.choice(list(_SOUND))
    content = _SOUND[name]()
    done = [name]
    for _ in range(chance.choice((1, 1, 2, 3))):
        what = chance.choice(list(_EDITS))
        content = _EDITS[what](content, chance)
        done.append(what)
    return f"{seed}: {', '.join(done)}", content


def behind_a_model(content: bytes) -> bytes:
    """A model with the archive where metadata keeps labels."""
    return sample.model_file("float32").read_bytes() + content


def sparse(path: Path, content: bytes) -> None:
    """The archive, and gigabytes of nothing in its middle."""
    with path.open("wb") as file:
        file.write(content[: len(content) // 2])
        file.seek(_GIGABYTES << 30)
        file.write(content[len(content) // 2 :])


def npy(values: Any) -> bytes:
    """A file of one array."""
    content = io.BytesIO()
    np.save(content, values)
    return content.getvalue()


def _npy_with_header(text: str) -> bytes:
    header = text.encode()
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header + bytes(24)


def _packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return content.getvalue()


@cache
def _bomb(method: int) -> bytes:
    """A few kilobytes that unpack to 300 MiB."""
    return _packed({"x.npy": bytes(_BOMB_BYTES)}, method)


_SOUND: Final[dict[str, Callable[[], bytes]]] = {
    "arrays": lambda: _packed({"x.npy": npy(np.zeros((1, 2), np.float32)), "y.npy": npy(np.arange(6))}),
    "texts": lambda: _packed({"x.npy": npy(np.array(["a", "bc"]))}),
    "labels": lambda: _packed({"labels.txt": b"cat\ndog\n" * 5}, zipfile.ZIP_STORED),
    "many": lambda: _packed({f"{number}.npy": b"" for number in range(3000)}),
}


def _with_another_number(content: bytes, chance: random.Random) -> bytes:
    """One field of one header says something else: method, flags, sizes, checksum, offsets, lengths of names."""
    found = [(content.find(mark), size) for mark, size in _HEADERS.items() if mark in content]
    if not found:
        return content
    start, size = chance.choice(found)
    place = start + chance.randrange(4, size - 1)
    width = chance.choice(("<H", "<I")) if place + 4 <= start + size else "<H"
    largest = 0xFFFFFFFF if width == "<I" else 0xFFFF
    number = struct.pack(width, chance.choice((*_NUMBERS, largest, chance.randrange(largest))))
    return content[:place] + number + content[place + len(number) :]


_EDITS: Final[dict[str, Callable[[bytes, random.Random], bytes]]] = {
    "a number": _with_another_number,
    "another number": _with_another_number,
    "cut": lambda content, chance: content[: chance.randrange(len(content) + 1)],
    "behind junk": lambda content, chance: chance.randbytes(chance.randrange(1, 3000)) + content,
    "doubled": lambda content, _: content + content,
    "a header": lambda _, chance: _packed({"x.npy": _npy_with_header(chance.choice(_HEADER_TEXTS))}),
    "a bomb": lambda _, chance: _bomb(chance.choice(_METHODS)),
    "a name": lambda _, chance: _packed({chance.choice(_NAMES): npy(np.zeros((1, 2), np.float32))}),
}


WANTED = [Wanted(("x", "0"), "float32", (1, 2)), Wanted(("y", "1"), "int64", (6,))]
WHOLE_COMMANDS = 40
"""One case in so many is given to commands, which take a hundred times as long as their readers."""


@pytest.mark.parametrize("part", PARTS)
def test_an_archive_that_was_packed_to_do_harm_is_read_or_refused(part: int, tmp_path: Path) -> None:
    archive, model = tmp_path / "a.npz", tmp_path / "model.tflite"
    images = f"--images={sample.images_dir()}"
    watch = Watch()
    read = 0
    for seed in numbers_of(part):
        what, content = edited(seed)
        archive.write_bytes(content)
        model.write_bytes(behind_a_model(content))
        with watch.case(what):
            with suppress(EvaltoolsError):
                read_input_files([str(archive)], WANTED)
                read += 1
            with suppress(EvaltoolsError):
                read_labels(model, "--labels")
            if seed // len(PARTS) % WHOLE_COMMANDS == 0:
                for words in (
                    ("diff", str(model), f"--input_files={archive}"),
                    ("locate", str(model), "--kernels=reference", f"--reference_tensors={archive}"),
                    ("imagenet", str(model), images, f"--labels={model}", "--num_images=1", "--kernels=default"),
                ):
                    done = evaltools_here(*words)
                    assert "Traceback" not in done.err, (what, words, done.err)
                    assert done.code != exit_codes.FAULT, (what, words, done.err)
    assert 0 < read < watch.cases, "some are read, others are not"
    watch.require_little_memory()


@pytest.mark.parametrize(
    "read",
    [
        lambda path: read_labels(path, "--labels"),
        lambda path: read_input_files([f"x={path}"], WANTED),
        lambda path: read_saved_reference(path.parent),
    ],
)
def test_gigabytes_of_nothing_are_refused_at_once(tmp_path: Path, read: Callable[[Path], object]) -> None:
    for name in ("x.npz", "x.npy", "manifest.json"):
        sparse(tmp_path / name, npy(np.zeros((1, 2), np.float32)))
    watch = Watch()
    for name in ("x.npz", "x.npy"):
        with watch.case(name), pytest.raises(DataError, match="it is too large|not a text file"):
            read(tmp_path / name)
    watch.require_little_memory()
