"""Archives that were packed to do harm: bombs, other methods, headers that lie. The number of a case is its seed."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from evaltools.datasets import sample

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
