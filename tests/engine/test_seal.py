"""The seal on a request: whose it is, and what becomes of it where no key can be kept."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaltools.engine.run_folder import is_sealed, key_file, seal_of


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user without a key."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def hmac_by_hand(key: bytes, text: str) -> str:
    """RFC 2104."""
    padded = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded) + text.encode()).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in padded) + inner).hexdigest()


def test_a_seal_is_the_hmac_of_the_text_with_a_key_that_its_user_alone_can_read(state: Path) -> None:
    seal = seal_of("a request")
    key = state / "evaltools" / "key"
    assert seal == hmac_by_hand(key.read_bytes(), "a request")
    assert len(key.read_bytes()) == 32
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert list(key.parent.iterdir()) == [key]


def test_it_fits_its_own_text_alone() -> None:
    seal = seal_of("a request")
    assert is_sealed("a request", seal)
    assert not is_sealed("another", seal)
    assert not any(is_sealed("a request", other) for other in (None, "", "\u00e9", seal[:-1]))


def test_the_seal_of_another_user_fits_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seal = seal_of("a request")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert not is_sealed("a request", seal)
    assert seal_of("a request") != seal
    assert not is_sealed("a request", seal)


def test_without_a_place_for_a_key_nothing_is_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert seal_of("a request") == ""
    assert not is_sealed("a request", "")


def test_runs_that_begin_at_once_have_one_key() -> None:
    with ThreadPoolExecutor(8) as pool:
        seals = set(pool.map(seal_of, ["a request"] * 40))
    assert len(seals) == 1
    assert is_sealed("a request", seals.pop())


@pytest.mark.parametrize("stated", ["", "not/absolute"])
def test_the_key_lies_in_the_home_folder_unless_said_otherwise(stated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", stated)
    monkeypatch.setenv("HOME", "/home/me")
    assert key_file() == Path("/home/me/.local/state/evaltools/key")


def test_without_a_home_folder_no_key_is_read_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where no user is known
    monkeypatch.chdir(tmp_path)
    planted = tmp_path / "~" / ".local" / "state" / "evaltools" / "key"
    planted.parent.mkdir(parents=True)
    planted.write_bytes(b"k" * 32)
    planted.chmod(0o600)
    assert not is_sealed("a request", hmac_by_hand(b"k" * 32, "a request"))
    assert seal_of("a request") == ""


def moved_behind_a_link(key: Path) -> None:
    key.symlink_to(key.rename(key.parent.parent / "elsewhere"))


def replaced_by_a_pipe(key: Path) -> None:
    key.unlink()
    os.mkfifo(key, 0o600)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda key: key.write_bytes(b"short"),
        lambda key: key.chmod(0o640),
        lambda key: key.chmod(0o604),
        lambda key: key.chmod(0o620),
        moved_behind_a_link,
        replaced_by_a_pipe,
    ],
    ids=["short", "group reads", "all read", "group writes", "link", "pipe"],
)
def test_a_key_that_is_damaged_or_not_for_its_user_alone_is_none(spoil: Callable[[Path], None], state: Path) -> None:
    seal = seal_of("a request")
    spoil(state / "evaltools" / "key")
    assert not is_sealed("a request", seal)
    assert seal_of("a request") == ""
