"""The configurations of a run once their models are loaded."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.opening import NotMeasured, Opened, describe_entry
from evaltools.errors import ModelError
from evaltools.model import ModelFile, TensorInfo
from evaltools.result.facts import Model
from evaltools.result.result import Row
from evaltools.runtime import Delegation, Inference, RuntimeFacts, Session, TensorSpec
from evaltools.runtime.session import Array


class OpenConfigurations(Struct, frozen=True):
    """The configurations of an evaluation, reference first: ``described`` are all, ``entries`` those that can run."""

    described: list[Row]
    entries: Sequence[Opened]

    @classmethod
    def of(
        cls,
        entries: Collection[Opened | NotMeasured],
        reference: Configuration | None,
        other_models: Mapping[str, Model],
    ) -> OpenConfigurations:
        """Of the results of opening each configuration; ``reference`` is the configuration that is the reference.

        ``other_models`` are those of configurations that run another model than the evaluation's.
        """
        described = [
            replace(
                describe_entry(entry, "reference" if entry.configuration is reference else "test"),
                other_model=other_models.get(entry.configuration.name),
            )
            for entry in entries
        ]
        return cls(described, [entry for entry in entries if isinstance(entry, Opened)])

    @property
    def sessions(self) -> dict[str, Session]:
        """The sessions by configuration."""
        return {entry.configuration.name: entry.session for entry in self.entries}

    @property
    def warnings(self) -> list[str]:
        """What runtimes said when they opened the model that puts their results in doubt."""
        return [
            f"{entry.configuration.name}: its runtime warns: {text}"
            for entry in self.entries
            for text in entry.session.delegation.warnings
        ]

    @property
    def runnable(self) -> bool:
        """Whether a test configuration can run; with only the reference nothing is measured."""
        return any(entry.role == "test" and entry.name in self.sessions for entry in self.described)


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


def require_stated(
    model: ModelFile,
    session: Session,
    kind: str,
    stated: TensorInfo,
    actual: TensorSpec,
    advice: str = "convert the model again",
) -> None:
    """Raise :class:`ModelError` if a tensor has another type or shape in the runtime than in the model file."""
    dtype = "string" if actual.dtype.kind == "S" else actual.dtype.name
    if (dtype, actual.shape) != (stated.dtype, stated.shape):
        raise ModelError(
            f"{model.path}: the file states the {kind} {stated}, but {session.facts.package} makes it "
            f"{dtype}{list(actual.shape)}; {advice}"
        )
