"""Photos are decoded as by Pillow alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from evaltools.preprocess.decode import decode_image


@pytest.fixture(scope="module")
def files(shared: Path) -> list[Path]:
    """200 ImageNet photos and 94 of COCO."""
    found = [path for kind in ("imagenet", "coco") for path in (shared / "realdata" / kind / "images").iterdir()]
    assert len(found) >= 294
    return sorted(found)


def by_pillow(path: Path) -> npt.NDArray[np.uint8]:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


def test_every_photo_is_decoded_as_by_pillow(files: list[Path]) -> None:
    different = [path.name for path in files if not np.array_equal(decode_image(path), by_pillow(path))]
    assert different == []
