"""A comparison of two models: each is given its own inputs, which are made of the same example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.runtime import Delegation, Inference, RuntimeFacts, Session, TensorSpec
from evaltools.runtime.session import Array


class SessionWithOwnInput:
    """A session that is given one input for each of several models, and runs its model with that at ``place``."""

    def __init__(self, session: Session, place: int, inputs: Sequence[TensorSpec]) -> None:
        self._session = session
        self._place = place
        self.facts: Final[RuntimeFacts] = session.facts
        self.delegation: Final[Delegation] = session.delegation
        self.inputs: Final[tuple[TensorSpec, ...]] = tuple(inputs)
        self.outputs: Final[tuple[TensorSpec, ...]] = session.outputs

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Run the model with its own input."""
        return self._session.run([inputs[self._place]], invocations)

    def close(self) -> None:
        """Close the session."""
        self._session.close()
