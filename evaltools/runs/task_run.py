"""A task that is to be carried out for a request, with its models and data, which were read and checked."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.opening import describe_model
from evaltools.engine.run_folder import RunIdentity, digest, with_files
from evaltools.engine.steps import Steps
from evaltools.errors import InferenceError, UsageError
from evaltools.metrics.metric import SHARE
from evaltools.model import ModelFile, read_model
from evaltools.result.facts import Model
from evaltools.runs.identity import (
    TASK,
    checksums_of,
    files_below,
    libraries_of,
)
from evaltools.runtime import BlockSession, Delegation, Inference, RuntimeFacts, TensorSpec
from evaltools.runtime.session import Array
from evaltools.tasks.framework.definition import Checked, Setting, name_of
from evaltools.tasks.framework.faults import place_of
from evaltools.tasks.framework.request import TaskRequest, require_margin
from evaltools.tasks.framework.steps import ObservedScores, recipe_of, steps_of
from evaltools.tasks.framework.task import make_task, tensors_of_models


class TaskRun:
    """One run of a task: its request, and what that reads.

    It reads and checks model and data, and raises :class:`UsageError` and its kinds. ``name`` is the task's name in
    results. ``task`` makes inputs and scores outputs, ``tensors`` are those of its models. ``keeps_state``: a model
    keeps a state from example to example.
    """

    def __init__(self, request: TaskRequest) -> None:
        self.request: Final = request
        self.name: Final = request.loaded.task
        if request.loaded.origin is None and request.execution.run_dir is not None:
            function = request.loaded.function
            raise UsageError(
                f"{place_of(function)}: the task {name_of(function)} is in no file that could be loaded again, so "
                "its run cannot be resumed; put it into a file of its own, under a name, or leave out run_dir"
            )
        models = _models_of(request)
        for model in models:
            _require_order(model, request)
        setting = self.setting(models)
        self.task = self._stated = make_task(request.loaded, request.values, setting)
        models = list(self.task.models) or models
        self.tensors: Final = tensors_of_models(models, setting)
        self.model: Final = models[0]
        self.reference_model: Final = models[1] if len(models) > 1 else None
        self.keeps_state: Final = any(model.stateful for model in models)
        are_shares = any(each.margin is None and each.bounds == SHARE for each in self.task.means)
        if self.task.whole is not None or are_shares:
            require_margin(request)
        self._choice: Any = None

    def as_checked(self, checked: Checked) -> TaskRun:
        """The run of the task as its check chose it."""
        if checked.choice is None or self._stated.chosen is None:
            return self
        found = copy(self)
        found.task, found._choice = self._stated.chosen(checked.choice), checked.choice
        return found

    def setting(self, models: Sequence[ModelFile]) -> Setting:
        """What the task's function gets beside its options."""
        request = self.request
        return Setting(
            models,
            request.input_layout,
            request.channel_order,
            request.native,
            reference=request.reference,
            tests=request.tests,
        )

    @property
    def wanted(self) -> list[tuple[ModelFile, Configuration]]:
        """Each configuration with the model that it runs; that of the reference may be another."""
        other, reference = self.reference_model or self.model, self.request.reference
        return [
            (other if configuration is reference else self.model, configuration)
            for configuration in self.request.configurations
        ]

    @property
    def other_models(self) -> dict[str, Model]:
        """The models of the configurations that run another one than :attr:`model`."""
        others = ((each.name, model) for model, each in self.wanted if model.sha256 != self.model.sha256)
        return {name: describe_model(model) for name, model in others}

    @property
    def example_count(self) -> int:
        """How many examples there are, over all shards."""
        return len(self.task.examples)

    @property
    def steps(self) -> Steps[ObservedScores[Any]]:
        """What the pass does with each example."""
        request = self.request
        recipe = recipe_of(request.loaded, request.values, self.task, self.tensors, self._choice)
        return steps_of(self.task, self.tensors, self.keeps_state, recipe)

    @property
    def pictures(self) -> Sequence[Path]:
        """The pictures that are evaluated, in the order of the examples; they are used again where they are fewer."""
        stated = self.task.pictures
        if stated is not None:
            return stated
        return [example.input for example in self.task.examples] if self.request.pictures else []

    def pictures_of(self, option: str) -> tuple[Path, ...]:
        """The pictures in the folder of an option that a device needs, in the order of the examples."""
        assert option == self.request.pictures
        return tuple(dict.fromkeys(self.pictures[: self.example_count]))

    def identity(self) -> RunIdentity:
        """What must not change between the parts of a run; it reads the files again at each call.

        These are the task's file, its options and the files that they name, its examples, models and libraries.
        """
        loaded, stated, shard = self.request.loaded, self._stated, self.request.execution.shard
        own = {
            TASK: f"{self.name} {name_of(loaded.function)}",
            "the model": self.model.sha256,
            "the task's file": loaded.origin.sha256 if loaded.origin else "",
            "the examples": digest(example.id for example in self.task.examples),
            **{f"the {name}": fact for name, fact in stated.facts.items()},
        }
        if self.reference_model is not None:
            own["the reference's model"] = self.reference_model.sha256
        found = RunIdentity(
            own,
            options=dict(self.request.flags),
            libraries=libraries_of(configuration for _, configuration in self.wanted),
            shard=str(shard) if shard.count > 1 else "",
        )
        origin = loaded.origin
        if origin is not None and not origin.module:
            found = replace(found, code=checksums_of((origin.file, *origin.beside)))
        for name, paths in self.request.content.items():
            if paths and name == self.request.pictures:
                found = with_files(found, "the pictures", self.pictures)
            elif paths and not stated.facts:
                found = with_files(found, f"the files of {name}", files_below(paths))
        return found

    def wrap(self, name: str, session: BlockSession) -> BlockSession:
        """The session that takes the task's inputs, of that of a configuration.

        With two models these are the inputs of both, the reference's behind.
        """
        if self.reference_model is None:
            return session
        is_reference = name == self.request.reference_name
        return SessionWithOwnInputs(session, self.model, self.reference_model, is_reference)


class SessionWithOwnInputs:
    """A session that is given the inputs of two models, one model's behind the other's, and takes its own of them."""

    def __init__(self, session: BlockSession, model: ModelFile, reference_model: ModelFile, is_reference: bool) -> None:
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
        self.longest_block: Final = session.longest_block

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Run the model with its own inputs."""
        return self._session.run(inputs[self._own], invocations)

    def run_block(self, block: Sequence[Sequence[Array]], invocations: int = 1) -> Sequence[Inference | InferenceError]:
        """Run the model with its own of several sets of inputs."""
        return self._session.run_block([inputs[self._own] for inputs in block], invocations)

    def close(self) -> None:
        """Close the session."""
        self._session.close()


def _models_of(request: TaskRequest) -> list[ModelFile]:
    """The model under test and, if it is another, the reference's.

    Raises :class:`UsageError` where there is no reference, and for a file that is not a model.
    """
    model = read_model(request.model_file)
    if request.reference_model_file is None:
        return [model]
    if request.reference is None:
        raise UsageError("--reference_model_file has no effect without a reference; leave one of the two out")
    return [model, read_model(request.reference_model_file)]


def _require_order(model: ModelFile, request: TaskRequest) -> None:
    """Raise :class:`UsageError` for shards or another order of examples where a model keeps a state."""
    if model.stateful and request.execution.shard.count > 1:
        raise UsageError(
            f"--shard_count={request.execution.shard.count}: {model.path} keeps a state from example to example, so "
            "that one host must do all; leave the shards out"
        )
    if model.stateful and request.values.get("order") == "random":
        raise UsageError(
            f"--order=random: {model.path} keeps a state from example to example, so that all must run in their order; "
            "leave it out"
        )
