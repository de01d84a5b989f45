"""What every evaluation has in common."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from evaltools.errors import ModelError
from evaltools.model import ModelFile, TensorInfo
from evaltools.report.result import ConfigurationResult
from evaltools.runtime import Session, TensorSpec


def require_stated(
    model: ModelFile, session: Session, kind: str, stated: TensorInfo, actual: TensorSpec, advice: str
) -> None:
    """Refuse a tensor that the runtime makes another than the file states; raises :class:`ModelError`."""
    dtype = "string" if actual.dtype.kind == "S" else actual.dtype.name
    if (dtype, actual.shape) != (stated.dtype, stated.shape):
        raise ModelError(
            f"{model.path}: the file states the {kind} {stated}, but {session.facts.package} makes it "
            f"{dtype}{list(actual.shape)}; {advice}"
        )


class Observer(Protocol):
    """Who wants to know how an evaluation goes."""

    def opened(self, configurations: list[ConfigurationResult]) -> None:
        """Called once with what each configuration runs on, before anything is measured."""

    def progress(self, total: int) -> AbstractContextManager[Callable[[int], None]]:
        """Entered around the measurements; what it yields is called after each step with the failed examples so far."""
