"""Versions of runtimes: pip installs each into an environment of its own, which the process of its session finds."""

from __future__ import annotations

import importlib.metadata
import os
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.model import read_model
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.registry import open_session
from evaltools.runtime.versions import packages_of

PACKAGE, VERSION = "ai-edge-litert", "0.0.9"


def wheel_of_installed(folder: Path) -> None:
    """The installed package as a wheel of another version, which needs nothing else."""
    found = importlib.metadata.distribution(PACKAGE)
    info = f"ai_edge_litert-{VERSION}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {VERSION}\n"
    with zipfile.ZipFile(folder / f"ai_edge_litert-{VERSION}-py3-none-any.whl", "w") as wheel:
        for file in found.files or ():
            if file.parts[0] == "ai_edge_litert" and "__pycache__" not in file.parts:
                wheel.write(str(file.locate()), str(file))
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks for packages; nothing is in the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


@pytest.mark.once
def test_a_version_runs_in_a_process_of_its_own_and_says_so(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel_of_installed(index)
    model = read_model(sample.model_file("float32"))
    values = np.linspace(-1, 1, 64 * 64 * 3, dtype=np.float32).reshape(model.inputs[0].shape)
    sessions = [
        open_isolated(model, Configuration.from_text("x", f"runtime={runtime}"))
        for runtime in (f"litert=={VERSION}", "litert", f"litert=={importlib.metadata.version(PACKAGE)}")
    ]
    installed = importlib.metadata.version(PACKAGE)
    assert [session.facts.version for session in sessions] == [VERSION, installed, installed]
    outputs = [session.run([values]).outputs[0].tobytes() for session in sessions]
    assert outputs[0] == outputs[1]
    for session in sessions:
        session.close()
    made = packages_of(Configuration.from_text("x", f"runtime=litert=={VERSION}"))
    assert made is not None
    assert made.is_relative_to(os.environ["XDG_CACHE_HOME"])
    monkeypatch.setenv("PIP_FIND_LINKS", "nowhere")
    assert packages_of(Configuration.from_text("x", f"runtime=litert=={VERSION}")) == made, "it is made once"


@pytest.mark.once
def test_what_pip_says_is_the_reason_and_nothing_is_left(index: Path) -> None:
    with pytest.raises(
        ConfigurationUnavailable, match=r"ai-edge-litert==9\.9 cannot be installed: .*computer is offline"
    ):
        open_isolated(read_model(sample.model_file("float32")), Configuration.from_text("x", "runtime=litert==9.9"))
    assert list((Path(os.environ["XDG_CACHE_HOME"]) / "evaltools" / "runtimes").iterdir()) == []


def test_a_process_without_that_version_opens_nothing() -> None:
    with pytest.raises(ConfigurationUnavailable, match=r"litert 9\.9 was asked for, and this process has"):
        open_session(read_model(sample.model_file("float32")), Configuration.from_text("x", "runtime=litert==9.9"))


def test_a_version_is_part_of_the_configuration() -> None:
    own = Configuration.from_text("x", "runtime=compiled==2.1.3")
    assert (own.runtime, own.runtime_version) == ("compiled", "2.1.3")
    assert own.to_flags() == ["--runtime=compiled==2.1.3"]


@pytest.mark.parametrize(
    "text", ["litert==", "litert==../2", "litert==2 --index-url=x", "litert=2", "nothing==2", "litert==2.1==3"]
)
def test_what_is_no_version_never_reaches_pip(text: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"--runtime={text}: not an accepted value")):
        Configuration.from_flags("x", [("runtime", text)])


def test_only_a_package_that_is_known_has_versions() -> None:
    with pytest.raises(UsageError, match="only litert, tflite_runtime, compiled, emulated can have a version"):
        Configuration.from_text("x", "runtime=auto==2.1.3")
