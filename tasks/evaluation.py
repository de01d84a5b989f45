"""What every evaluation has in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from evaltools.configuration import Configuration
from evaltools.engine import Open, Opened, open_all
from evaltools.errors import ModelError
from evaltools.model import ModelFile, TensorInfo
from evaltools.report.assemble import describe_entry
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


@dataclass(frozen=True)
class OpenConfigurations:
    """What every configuration runs on, reference first, and the sessions of those that can run."""

    described: list[ConfigurationResult]
    sessions: dict[str, Session]

    @property
    def runnable(self) -> bool:
        """Whether a test configuration can run; with the reference alone nothing is measured."""
        return any(entry.role == "test" and entry.name in self.sessions for entry in self.described)


@contextmanager
def open_configurations(
    model: ModelFile,
    reference: Configuration | None,
    tests: Sequence[Configuration],
    open_with: Open,
    allow_fallback: bool,
    observer: Observer,
) -> Iterator[OpenConfigurations]:
    """Open all configurations of one model and show them; the sessions are closed at the end, whatever happens."""
    wanted = ((reference,) if reference else ()) + tuple(tests)
    with open_all([(model, configuration) for configuration in wanted], open_with, allow_fallback) as entries:
        described = [
            describe_entry(entry, "reference" if entry.configuration is reference else "test")
            for entry in entries.values()
        ]
        observer.opened(described)
        yield OpenConfigurations(
            described, {name: entry.session for name, entry in entries.items() if isinstance(entry, Opened)}
        )
