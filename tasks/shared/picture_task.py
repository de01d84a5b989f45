"""A task whose examples are pictures, one each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Generic

from evaltools.datasets.image_folder import printable_name
from evaltools.engine.task import Example, Observation, Prepared
from evaltools.lazy_sequence import LazySequence
from evaltools.preprocess import ImageToTensor
from evaltools.tasks.shared.image_input import prepare_picture, prepare_picture_elsewhere


class PictureTask(Generic[Observation]):
    """Makes inputs of pictures, as :class:`evaltools.engine.task.Task` wants it; what outputs show is a subclass's.

    ``transforms`` make the input of each model of the same picture: of one, or of the reference's behind it. ``truths``
    are the right answers, which become the contexts; without them the contexts are the pictures' frames.
    """

    in_order: Final = False
    is_portable: Final = True
    keeps_state: Final = False

    def __init__(
        self, paths: Sequence[Path], transforms: Sequence[ImageToTensor], truths: Sequence[str] | None = None
    ) -> None:
        self.paths: Final = paths
        self.transforms: Final = tuple(transforms)
        self.truths: Final = truths
        self.examples: Final = LazySequence(range(len(paths)), partial(_example, paths))

    @property
    def to_tensor(self) -> ImageToTensor:
        """What makes the input of the model under test."""
        return self.transforms[0]

    def prepare(self, example: Example) -> Prepared:
        """Decode, resize and convert one picture."""
        return prepare_picture(*self._picture(example))

    def recipe(self, example: Example) -> Callable[[], Prepared]:
        """What :meth:`prepare` does, for another process."""
        return partial(prepare_picture_elsewhere, *self._picture(example))

    def _picture(self, example: Example) -> tuple[Path, tuple[ImageToTensor, ...], str | None]:
        truth = None if self.truths is None else self.truths[example.index]
        return self.paths[example.index], self.transforms, truth


def _example(paths: Sequence[Path], index: int) -> Example:
    return Example(index, printable_name(paths[index].name))
