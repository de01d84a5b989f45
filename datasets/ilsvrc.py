"""The development kit of ILSVRC2012: which class each validation picture has, and what the classes are called."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from evaltools.datasets.files import numbers_by_line, read_bytes
from evaltools.errors import DataError

DEVKIT_FLAG: Final = "--ilsvrc_devkit_dir"
META_FILE: Final = Path("data", "meta.mat")
GROUND_TRUTH_FILE: Final = Path("data", "ILSVRC2012_validation_ground_truth.txt")
_CLASS_COUNT: Final = 1000
_FIELDS: Final = ("ILSVRC2012_ID", "WNID", "words")


class Synset(Struct, frozen=True):
    """A kind of thing: its number in the kit, its WordNet id, its names separated by commas.

    Numbers 1 to 1000 are the classes of the challenge, those above are groups of them.
    """

    number: int
    wnid: str
    words: str

    def label(self, wnids: bool = False) -> str:
        """The first of its names, or its WordNet id.

        >>> Synset(1, "n02119789", "kit fox, Vulpes macrotis").label()
        'kit fox'
        """
        return self.wnid if wnids else self.words.split(",")[0]


def read_synsets(devkit: Path) -> tuple[Synset, ...]:
    """The synsets of ``data/meta.mat``; raises :class:`DataError`."""
    path = devkit / META_FILE
    where = f"{DEVKIT_FLAG}={devkit}: {META_FILE}"
    content = _read(path, devkit)
    from scipy.io import loadmat

    try:
        table = loadmat(io.BytesIO(content), squeeze_me=True, variable_names=["synsets"])["synsets"]
    except Exception as error:  # damaged files raise ValueError, TypeError, zlib.error, NotImplementedError, ...
        raise DataError(
            f"{where} cannot be read: {str(error) or type(error).__name__}; it must be a MATLAB file with the struct "
            "synsets. Unpack the kit again"
        ) from error
    synsets = tuple(
        _synset(entry, f"{where}, synset {number}") for number, entry in enumerate(_entries(table), start=1)
    )
    numbers = [synset.number for synset in synsets]
    if len(set(numbers)) < len(numbers) or not synsets:
        raise DataError(f"{where} has {len(numbers)} synsets with {len(set(numbers))} numbers. Unpack the kit again")
    return synsets


def _entries(table: Any) -> Iterator[Any]:
    """The entries of a struct array of any shape, or of a cell array of structs."""
    import numpy as np

    for entry in np.atleast_1d(table).ravel():
        yield entry[()] if isinstance(entry, np.ndarray) else entry


def _synset(entry: Any, where: str) -> Synset:
    try:
        number, wnid, words = (entry[field] for field in _FIELDS)
        return Synset(int(number), _text(wnid), _text(words))
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise DataError(
            f"{where} does not have the fields {', '.join(_FIELDS)} as a number and two texts ({error}). Give the kit "
            "of ILSVRC2012, whose meta.mat has them"
        ) from error


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or len(value.splitlines()) > 1:
        raise ValueError(f"{value!r} is not a text")
    return str(value)


def read_validation_ids(devkit: Path) -> tuple[int, ...]:
    """The number of the class of each validation picture, in order of the pictures' names."""
    where, content = f"{DEVKIT_FLAG}={devkit}: {GROUND_TRUTH_FILE}", _read(devkit / GROUND_TRUTH_FILE, devkit)
    expected = "each line is the number of a class. Unpack the kit again"
    numbers = numbers_by_line(content, where, expected, skip_blank=False)
    if not numbers:
        raise DataError(f"{where} is empty. Unpack the kit again")
    return tuple(numbers.values())


def validation_labels(synsets: Sequence[Synset], ids: Sequence[int], wnids: bool = False) -> list[str]:
    """The label of each validation picture; raises :class:`DataError` for a class that is not there.

    >>> validation_labels([Synset(1, "n1", "fox, fennec"), Synset(2, "n2", "crane")], [2, 1, 2])
    ['crane', 'fox', 'crane']
    """
    labels = {synset.number: synset.label(wnids) for synset in synsets}
    for line, number in enumerate(ids, start=1):
        if number not in labels:
            raise DataError(
                f"{GROUND_TRUTH_FILE}, line {line}: class {number} is not among the {len(labels)} synsets of "
                f"{META_FILE}. Take both files from the same kit"
            )
    return [labels[number] for number in ids]


def class_labels(synsets: Sequence[Synset], wnids: bool = False, background: bool = False) -> list[str]:
    """The labels of the 1000 classes by ascending WordNet id, the order of most models' outputs.

    With ``background`` that word comes first, as for models with 1001 outputs.

    >>> class_labels([Synset(1, "n2", "fox, fennec"), Synset(2, "n1", "crane")], background=True)
    ['background', 'crane', 'fox']
    """
    classes = sorted((synset for synset in synsets if synset.number <= _CLASS_COUNT), key=lambda synset: synset.wnid)
    return ["background"] * background + [synset.label(wnids) for synset in classes]


def shared_labels(synsets: Sequence[Synset]) -> dict[str, list[str]]:
    """First names that two or more of the 1000 classes have, with their WordNet ids in order.

    >>> shared_labels([Synset(135, "n02012849", "crane"), Synset(518, "n03126707", "crane"), Synset(3, "n1", "fox")])
    {'crane': ['n02012849', 'n03126707']}
    """
    found = defaultdict(list)
    for synset in synsets:
        if synset.number <= _CLASS_COUNT:
            found[synset.label()].append(synset.wnid)
    return {label: sorted(wnids) for label, wnids in sorted(found.items()) if len(wnids) > 1}


def _read(path: Path, devkit: Path) -> bytes:
    if not path.exists():
        raise DataError(
            f"{DEVKIT_FLAG}={devkit} has no {path.relative_to(devkit)}; give the unpacked folder "
            f"ILSVRC2012_devkit_t12, which holds {META_FILE} and {GROUND_TRUTH_FILE}"
        )
    return read_bytes(path, DEVKIT_FLAG, "a file")
