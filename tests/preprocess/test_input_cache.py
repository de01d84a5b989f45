"""Inputs that are kept in a folder: found again bit for bit, made again where anything differs or is damaged."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.errors import UsageError
from evaltools.preprocess import ImageToTensor, InputCache, KeptInput

TO_TENSOR = ImageToTensor(4, 6, np.dtype("float32"))
BYTES = 4 * 6 * 3 * 4
PLENTY = 1 << 30


def made(seed: int = 0) -> KeptInput:
    return KeptInput(np.random.default_rng(seed).normal(size=(1, 4, 6, 3)).astype(np.float32), 640, 480)


def kept(cache: InputCache, content: bytes) -> str:
    key = cache.key(content, ".jpg", TO_TENSOR)
    cache.keep(key, made())
    return key


def entry_of(folder: Path) -> Path:
    return next(folder.glob("??/*"))


def test_what_is_kept_is_found_again_also_by_another_process(tmp_path: Path) -> None:
    key = kept(InputCache.opened(tmp_path, PLENTY), b"picture")
    found = InputCache.opened(tmp_path, PLENTY).read(key, TO_TENSOR)
    assert found is not None
    assert found.values.tobytes() == made().values.tobytes()
    assert (found.values.shape, found.width, found.height) == ((1, 4, 6, 3), 640, 480)


def test_another_content_extension_or_transform_is_another_input(tmp_path: Path) -> None:
    cache = InputCache.opened(tmp_path, PLENTY)
    others = [
        cache.key(b"other", ".jpg", TO_TENSOR),
        cache.key(b"picture", ".rgb8", TO_TENSOR),
        cache.key(b"picture", ".jpg", replace(TO_TENSOR, crop_fraction=None)),
        cache.key(b"picture", ".jpg", replace(TO_TENSOR, dtype=np.dtype("float16"))),
    ]
    assert len({cache.key(b"picture", ".jpg", TO_TENSOR), *others}) == 5


@pytest.mark.parametrize("damage", ["flipped bit", "cut short", "longer", "another size"])
def test_a_damaged_entry_is_none(damage: str, tmp_path: Path) -> None:
    cache = InputCache.opened(tmp_path, PLENTY)
    key = kept(cache, b"picture")
    whole = entry_of(tmp_path).read_bytes()
    entry_of(tmp_path).write_bytes(
        {
            "flipped bit": whole[:-1] + bytes([whole[-1] ^ 1]),
            "cut short": whole[:-1],
            "longer": whole + b"\0",
            "another size": whole[:4] + b"\1" + whole[5:],
        }[damage]
    )
    assert cache.read(key, TO_TENSOR) is None


def test_what_was_not_used_for_longest_makes_room(tmp_path: Path) -> None:
    before = InputCache.opened(tmp_path, PLENTY)
    keys = [kept(before, bytes([number])) for number in range(20)]
    for age, key in enumerate(keys):
        os.utime(tmp_path / key[:2] / key[2:], (1_000_000 - age, 1_000_000 - age))
    cache = InputCache.opened(tmp_path, 10 * (BYTES + 12))
    assert [cache.read(key, TO_TENSOR) is not None for key in keys] == [True] * 9 + [False] * 11


def test_nothing_more_is_kept_once_this_run_has_filled_it(tmp_path: Path) -> None:
    cache = InputCache.opened(tmp_path, 10 * (BYTES + 12))
    keys = [kept(cache, bytes([number])) for number in range(100)]
    found = [cache.read(key, TO_TENSOR) is not None for key in keys]
    assert 8 <= sum(found) <= 11
    assert all(found[: sum(found)])


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "aa").mkdir()
    (tmp_path / "aa" / "photo.jpg").write_bytes(b"mine")
    with pytest.raises(UsageError, match="holds other files; give a new or an empty folder"):
        InputCache.opened(tmp_path, 1)
    assert (tmp_path / "aa" / "photo.jpg").exists()


def test_the_cache_of_another_program_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# of another program\n")
    with pytest.raises(UsageError, match="holds other files"):
        InputCache.opened(tmp_path, 1)


def test_only_what_a_cache_has_kept_makes_room(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    kept(InputCache.opened(folder, PLENTY), b"picture")
    elsewhere.mkdir()
    (elsewhere / ("0" * 38)).write_bytes(bytes(1000))
    (folder / "zz").symlink_to(elsewhere)
    (folder / "ab").mkdir(exist_ok=True)
    (folder / "ab" / "thesis.txt").write_bytes(bytes(1000))
    for path in folder.glob("*/*"):
        os.utime(path, (1_000_000, 1_000_000))
    InputCache.opened(folder, 1)
    assert sorted(path.name for path in folder.glob("*/*")) == ["0" * 38, "thesis.txt"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_what_is_no_file_in_place_of_an_entry_is_none(tmp_path: Path) -> None:
    """A pipe would be waited for; a folder costs its own entry alone."""
    cache = InputCache.opened(tmp_path, PLENTY)
    key, other = kept(cache, b"picture"), cache.key(b"other", ".jpg", TO_TENSOR)
    entry_of(tmp_path).unlink()
    os.mkfifo(tmp_path / key[:2] / key[2:])
    (tmp_path / other[:2] / other[2:]).mkdir(parents=True)
    cache.keep(other, made())
    assert (cache.read(key, TO_TENSOR), cache.read(other, TO_TENSOR)) == (None, None)
    assert cache.read(kept(cache, b"third"), TO_TENSOR) is not None


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be used: .*; give another folder"):
        InputCache.opened(tmp_path / "file", PLENTY)
