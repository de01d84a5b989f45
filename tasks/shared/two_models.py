"""A comparison of two models: each is given its own inputs, which are made of the same example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from evaltools.model import ModelFile
from evaltools.runtime import Delegation, Inference, RuntimeFacts, Session, TensorSpec
from evaltools.runtime.session import Array


class SessionWithOwnInputs:
    """A session that is given the inputs of two models, one model's behind the other's, and takes its own of them."""

    def __init__(self, session: Session, model: ModelFile, reference_model: ModelFile, is_reference: bool) -> None:
        count = len(model.inputs)
        self._session = session
        self._own = slice(count, None) if is_reference else slice(count)
        self.facts: Final[RuntimeFacts] = session.facts
        self.delegation: Final[Delegation] = session.delegation
        self.inputs: Final[tuple[TensorSpec, ...]] = tuple(
            TensorSpec(tensor.name, np.dtype("S" if tensor.dtype == "string" else tensor.dtype), tensor.shape)
            for each in (model, reference_model)
            for tensor in each.inputs
        )
        self.outputs: Final[tuple[TensorSpec, ...]] = session.outputs

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Run the model with its own inputs."""
        return self._session.run(inputs[self._own], invocations)

    def close(self) -> None:
        """Close the session."""
        self._session.close()
