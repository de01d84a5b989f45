"""A session without a runtime, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from evaltools.runtime.delegation import Delegation
from evaltools.runtime.session import Array, Inference, RuntimeFacts, TensorSpec


class FakeSession:
    """Answers with a function of the inputs; what it claims about delegates is given."""

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

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Call the function; what it raises is raised."""
        return Inference(self._function(inputs), (self._invoke_us,) * invocations)

    def close(self) -> None:
        """Remember that the session was closed."""
        self.closed = True
