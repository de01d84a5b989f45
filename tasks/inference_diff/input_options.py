"""The options about inputs, and the kinds of runs that they make."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.datasets.gaussian import NATIVE_SEED
from evaltools.tasks.framework.image_input import (
    StatedLayout,
)

DEFAULT_RUNS: Final = 50
NOISE: Final = "noise"
PHOTOS: Final = "photos"
FILES: Final = "files"
SAVED: Final = "saved"


class InputOptions(Struct, frozen=True):
    """The options about inputs. ``num_runs`` None means 50, or as many as the files or pictures hold.

    ``kind`` is "noise", "photos", "both", or "auto": pictures where ``images`` has them, both for an input that is
    shaped like a picture, else noise; ``native`` is only noise.
    """

    num_runs: int | None = None
    seed: int = NATIVE_SEED
    ranges: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    images: Path | None = None
    normalization: str = "auto"
    native: bool = False
    kind: str = "auto"
    input_layout: StatedLayout = "auto"
    channel_order: str = "rgb"
