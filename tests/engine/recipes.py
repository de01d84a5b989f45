"""How inputs are made in tests, to be run in the processes of a pool."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evaltools.engine.task import Example, Prepared
from evaltools.errors import ImageError
from evaltools.runtime.session import Array

SHAPE = (2, 3)


@dataclass(frozen=True)
class Recipe:
    """Makes ``[index, index, ..]``, or comes to an end as ``how`` says.

    Nothing else: ``killed`` and ``left`` end the process, ``hangs`` never does, ``broken`` and ``large`` raise,
    ``slow`` says in a file of ``folder`` which process runs it and takes long.
    ``copied`` forks, and its copy goes on once the next example is under way, which is ``overtaken`` by that.
    ``speaks`` prints a line on stdout, ``shouts`` a megabyte, ``babbles`` never ends printing.
    """

    index: int
    how: str = ""
    folder: Path | None = None

    def __call__(self) -> Prepared:
        if self.how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "left":
            os._exit(7)
        if self.how == "hangs":
            time.sleep(1000)
        if self.how == "copied" and not os.fork():
            self.wait_for_next()
        if self.how == "overtaken" and self.note():
            os.wait()
        if self.how == "speaks":
            print(f"this is e{self.index}")
        if self.how == "shouts":
            print("x" * (1 << 20))
        while self.how == "babbles":
            print("x" * (1 << 10))
        if self.how == "broken":
            raise ImageError(f"e{self.index} is broken")
        if self.how == "large":
            raise MemoryError
        if self.how == "slow" and self.note():
            time.sleep(1000)
        arrays: tuple[Array, ...] = (np.full(SHAPE, self.index, np.float32),)
        if self.how == "odd":
            arrays = (np.full((50, 50), self.index), np.array([b"a", b""], object), np.array(True))
        return Prepared(arrays, (self.index, os.getpid()), (("decode", 5),))

    def wait_for_next(self) -> None:
        """Wait until the next example has said which process runs it."""
        assert self.folder is not None
        while not (self.folder / str(self.index + 1)).exists():
            time.sleep(0.01)

    def note(self) -> bool:
        """Say which process this is; false where that has been said."""
        assert self.folder is not None
        path = self.folder / str(self.index)
        if path.exists():
            return False
        unfinished = path.with_suffix(".part")
        unfinished.write_text(str(os.getpid()))
        unfinished.rename(path)
        return True


class Recipes:
    """A task whose inputs can be made anywhere; it is never run."""

    def __init__(self, fates: dict[int, str] | None = None, folder: Path | None = None) -> None:
        self.fates = fates or {}
        self.folder = folder
        self.examples = [Example(index, f"e{index}") for index in range(1000)]
        self.observation_type = int
        self.in_order = False
        self.keeps_state = False

    def recipe(self, example: Example) -> Recipe:
        return Recipe(example.index, self.fates.get(example.index, ""), self.folder)

    def prepare(self, example: Example) -> Prepared:
        return self.recipe(example)()

    def observe(self, prepared: Prepared, outputs: Any, reference: Any) -> int:
        raise AssertionError("nothing is observed here")
