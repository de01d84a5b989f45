"""The seal on a request: whose it is, and what becomes of it where no key can be kept."""

from __future__ import annotations

import hashlib
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaltools.engine.seal import is_sealed, key_file, seal_of


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


def test_a_damaged_key_seals_nothing(state: Path) -> None:
    seal = seal_of("a request")
    (state / "evaltools" / "key").write_bytes(b"short")
    assert seal_of("a request") == ""
    assert not is_sealed("a request", seal)


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
