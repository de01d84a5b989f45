"""Where the library of a delegate is found that is named without a folder."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import pytest

from evaltools.configuration import Configuration
from evaltools.delegates.provider import library_file

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries have other names elsewhere")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    return tmp_path


@pytest.mark.usefixtures("here")
def test_an_installed_library_is_the_one_that_the_loader_takes() -> None:
    ctypes.CDLL("libm.so.6")
    loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libm.so.6" in line}
    assert [str(Path(library_file("libm.so.6")).resolve())] == [str(Path(path).resolve()) for path in loaded]


def test_a_file_here_comes_first_then_the_folders_in_order(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Path(library_file("libm.so.6")).read_bytes()
    for folder in ("one", "two"):
        (here / folder).mkdir()
        (here / folder / "libm.so.6").write_bytes(library)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{here}/none:{here}/one:{here}/two")
    configuration = Configuration.from_text("test", "external_delegate_path=libm.so.6")
    assert configuration.libraries == [here / "one" / "libm.so.6"]
    assert configuration.to_flags() == ["--external_delegate_path=libm.so.6"]
    (here / "libm.so.6").write_bytes(library)
    assert configuration.libraries == [Path("libm.so.6")]


def test_a_library_for_another_machine_is_passed_over(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = bytearray(Path(library_file("libm.so.6")).read_bytes())
    library[18:20] = b"\xff\x7f"  # no processor has this number
    (here / "libs").mkdir()
    (here / "libs" / "libm.so.6").write_bytes(library)
    found = library_file("libm.so.6")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(here / "libs"))
    assert library_file("libm.so.6") == found
