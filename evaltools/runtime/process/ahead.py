"""Sessions that were opened to find out what works here, for the run that is about to open the same."""

from __future__ import annotations

from threading import Lock
from types import TracebackType

from evaltools.configuration import Configuration
from evaltools.model import ModelFile
from evaltools.runtime.process.isolated import IsolatedSession, open_isolated


class OpenedAhead:
    """A context that keeps sessions; each is given once, and at its end those that nobody took are closed."""

    def __init__(self) -> None:
        self._kept: list[tuple[ModelFile, Configuration, IsolatedSession]] = []
        self._models: list[ModelFile] = []
        self._is_over = False
        self._turn = Lock()

    def __enter__(self) -> OpenedAhead:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        with self._turn:
            self._is_over = True
            left, self._kept = self._kept, []
        for _, _, session in left:
            session.close()

    def keep(self, model: ModelFile, configuration: Configuration, session: IsolatedSession) -> None:
        """Keep a session, whose runs so far no later one can notice; after the end it is closed at once."""
        with self._turn:
            if not self._is_over:
                self._kept.append((model, configuration, session))
                self._models.append(model)  # its session may read the file again, which is there as long as this
                return
        session.close()

    def open(
        self, model: ModelFile, configuration: Configuration, timeout_s: float = 600.0, timeout_flag: str = ""
    ) -> IsolatedSession:
        """The session that is kept for these, else one that is opened now, as :func:`open_isolated` does."""
        with self._turn:
            found = next((each for each in self._kept if _is_for(each[0], model) and each[1] == configuration), None)
            if found is not None:
                self._kept.remove(found)
        if found is None:
            return open_isolated(model, configuration, timeout_s, timeout_flag=timeout_flag)
        session = found[2]
        session.limit(timeout_s, timeout_flag)
        return session


def _is_for(kept: ModelFile, model: ModelFile) -> bool:
    """Whether both are run alike: the content, the graph, and the shapes of its inputs."""
    return (kept.sha256, kept.content, kept.signature, kept.inputs) == (
        model.sha256,
        model.content,
        model.signature,
        model.inputs,
    )
