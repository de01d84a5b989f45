"""Label lists and lists of excluded examples."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.datasets.files import decode_text, numbers_by_line, read_bytes
from evaltools.errors import DataError, UsageError
from evaltools.file_content import DATA_BYTES, TEXT_BYTES, Unreadable, zip_members

_GIVE_LABELS: Final = "give a text file of labels"


class LabelFile(Struct, frozen=True):
    """The lines of a label file, and the sha256 of its bytes."""

    path: Path
    lines: tuple[str, ...]
    sha256: str


def read_labels(path: Path, flag: str, keep_carriage_return: bool = False) -> LabelFile:
    r"""Read one label per line; blank lines count, a last line without a line end too.

    Lines are UTF-8; other bytes are kept as they are (surrogates), so that equal bytes stay equal labels, which are one
    string in memory. A byte order mark is dropped, and the ``\r`` of Windows line ends, unless
    ``keep_carriage_return`` (what the native tools do: such labels then never match). Of a model they are those in its
    metadata.

    Raises :class:`DataError` for a missing, empty or non-text file, and for a model without labels.
    """
    is_model = path.suffix == ".tflite"
    content = read_bytes(path, flag, "a text file", most_bytes=DATA_BYTES if is_model else TEXT_BYTES)
    if is_model:
        content = _packed_labels(content, f"{flag}={path}")
    text = decode_text(content, f"{flag}={path}")
    if not keep_carriage_return:
        text = text.replace("\r\n", "\n")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise DataError(f"{flag}={path} is empty; it must have one label per line")
    return LabelFile(path, tuple(map(sys.intern, lines)), hashlib.sha256(content).hexdigest())


def _packed_labels(model: bytes, where: str) -> bytes:
    """The one text file that is packed behind a model, as its metadata have it."""
    try:
        with zip_members(model) as packed:
            texts = [name for name in packed.namelist() if name.endswith(".txt")]
            if len(texts) == 1:
                return packed.read(texts[0])
    except Unreadable as error:
        raise DataError(f"{where} has no labels that can be read in its metadata: {error}; {_GIVE_LABELS}") from error
    raise DataError(f"{where} has {len(texts) or 'no'} label files in its metadata; {_GIVE_LABELS}")


def labels_beside(model: Path) -> list[Path]:
    """Where the labels of a model may be: in its metadata, then in files beside it.

    Those are ``MODEL.txt``, ``MODEL_labels.txt``, ``labels.txt`` and ``labelmap.txt``, in this order.
    """
    if not model.is_file():
        return []
    names = (f"{model.stem}.txt", f"{model.stem}_labels.txt", "labels.txt", "labelmap.txt")
    files = [model.parent / name for name in names if (model.parent / name).is_file()]
    return [*([model] if _words_in(model) else []), *files]


def fitting_labels(candidates: Sequence[Path], truth: Path) -> Path | None:
    """The first that has a word of the ground truth, else the first; None where there is none."""
    words = _words_in(truth)
    fitting = [path for path in candidates if words & _words_in(path)]
    return next(iter([*fitting, *candidates]), None)


def _words_in(path: Path) -> set[str]:
    """The labels of a file; none where it cannot be read as one."""
    try:
        return set(read_labels(path, "").lines) - {""}
    except UsageError:
        return set()


def read_denylist(path: Path, flag: str, example_count: int) -> frozenset[int]:
    """Read 1-based numbers of examples to leave out, one per line; returns 0-based indices.

    Blank lines are skipped. Raises :class:`DataError` for a line that is not a number or out of range.
    """
    where, content = f"{flag}={path}", read_bytes(path, flag, "a text file", most_bytes=TEXT_BYTES)
    positions = numbers_by_line(content, where, "give one picture number per line")
    for line, position in positions.items():
        if not 1 <= position <= example_count:
            raise DataError(f"{where}, line {line}: no picture {position}; numbers go from 1 to {example_count}")
    return frozenset(position - 1 for position in positions.values())
