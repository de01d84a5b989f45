"""Fixtures for tests on real photos, real models and the native tools' recorded output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CLASSIFIERS = (
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v1_0.25_224_float",
    "mobilenet_v1_0.5_160_quant",
    "tf2_mobilenet_v2_1.0_224_ptq",
)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with ``realdata/`` and ``oracle/``."""
    folder = os.environ.get("EVALTOOLS_REALDATA")
    if not folder:
        pytest.skip("EVALTOOLS_REALDATA is not set: no real photos and no recorded native output here")
    return Path(folder)


@pytest.fixture(scope="session")
def photos(shared: Path) -> Path:
    """200 ImageNet photos with label files."""
    return shared / "realdata" / "imagenet"


@pytest.fixture(scope="session")
def zoo(shared: Path) -> Path:
    """Real .tflite models."""
    return shared / "realdata" / "zoo"


def zoo_models() -> list[str]:
    """Names of the models, for parametrised tests; none where there is no collection."""
    folder = Path(os.environ.get("EVALTOOLS_REALDATA", "")) / "realdata" / "zoo"
    return sorted(path.stem for path in folder.glob("*.tflite"))
