"""Regular runs of a benchmark that wait, in the child, until a test has done what it will."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.benchmark.loop import PhaseLimits, RunPace
from evaltools.benchmark.self_measuring import Regular, run_regular
from evaltools.runtime import Session
from evaltools.runtime.session import Array

HOLD_IN: Final = "EVALTOOLS_TEST_HOLD_IN"
"""In the environment: the folder of :class:`Hold`."""


class Hold(Struct, frozen=True):
    """What a test and held runs tell each other by files of a folder."""

    folder: Path

    def wait_until_held(self) -> None:
        """The runs are about to begin, and wait."""
        deadline = time.monotonic() + 60
        while not (self.folder / "held").exists():
            assert time.monotonic() < deadline, "the runs that wait were not begun"
            time.sleep(0.01)

    def go_on(self) -> None:
        """Let them begin."""
        (self.folder / "go on").touch()

    def wait(self) -> None:
        """In the child."""
        (self.folder / "held").touch()
        while not (self.folder / "go on").exists():
            time.sleep(0.01)


def held(session: Session, inputs: Sequence[Array], limits: PhaseLimits, pace: RunPace) -> Regular:
    """In place of ``run_regular``."""
    Hold(Path(os.environ[HOLD_IN])).wait()
    return run_regular(session, inputs, limits, pace)
