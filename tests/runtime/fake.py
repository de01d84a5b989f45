"""Sessions without a process of their own, for tests: one without a runtime, and one with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from evaltools.configuration import Configuration
from evaltools.errors import InferenceError
from evaltools.model import ModelFile
from evaltools.runtime import open_session
from evaltools.runtime.delegation import Delegation
from evaltools.runtime.session import Array, Crashes, Inference, RuntimeFacts, Session, TensorSpec


class FakeSession:
    """Answers with a function of the inputs; what it claims about delegates is given. It has no process of its own."""

    longest_block = 1
    not_clean = ""
    peak_memory_kb = 0
    process_id: int | None = None

    def __init__(
        self,
        function: Callable[[Sequence[Array]], tuple[Array, ...]],
        delegation: Delegation | None = None,
        invoke_us: float = 100,
    ) -> None:
        self._function = function
        self._invoke_us = invoke_us
        self.facts: Final = RuntimeFacts("fake", "fake", "0", "builtin")
        self.delegation: Final = delegation or Delegation(1, (), {})
        self.inputs: Final[tuple[TensorSpec, ...]] = ()
        self.outputs: Final[tuple[TensorSpec, ...]] = ()
        self.closed = False

    @property
    def crashes(self) -> Crashes:
        """None: there is no process."""
        return Crashes()

    def run_block(self, block: Sequence[Sequence[Array]], invocations: int = 1) -> list[Inference | InferenceError]:
        """Run one after the other."""
        outcomes: list[Inference | InferenceError] = []
        for inputs in block:
            try:
                outcomes.append(self.run(inputs, invocations))
            except InferenceError as error:
                outcomes.append(error)
        return outcomes

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Call the function; what it raises is raised."""
        return Inference(self._function(inputs), (self._invoke_us,) * invocations)

    def close(self) -> None:
        """Remember that the session was closed."""
        self.closed = True


class HereSession(FakeSession):
    """A real session in this process, which takes the place of one in a process of its own."""

    def __init__(self, session: Session) -> None:
        super().__init__(tuple)
        self._session = session
        self.facts = session.facts  # type: ignore[misc]
        self.delegation = session.delegation  # type: ignore[misc]
        self.inputs = session.inputs  # type: ignore[misc]
        self.outputs = session.outputs  # type: ignore[misc]

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Run the session."""
        return self._session.run(inputs, invocations)

    def close(self) -> None:
        """Close the session."""
        self._session.close()


def open_here(model: ModelFile, configuration: Configuration) -> HereSession:
    """Open a model in this process, which takes less time than in another one."""
    return HereSession(open_session(model, configuration))
