"""Shards of a run that are done and are to be made one result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaltools.result.device_run import DeviceRun
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.runs.names_here import NamesHere
from evaltools.tasks.inference_diff.result import InferenceDiff, loaded_from
from evaltools.tasks.shared.run_identity import Place


@dataclass(frozen=True)
class FinishedShards:
    """Where the shards are; where devices did them also how, and by which command.

    ``whole`` is the result where one device gave it and nothing is to be merged. ``names_here`` are those of files and
    folders that devices knew by others; ``reference_here`` what the outputs of the reference are called where they were
    computed here. ``started_at``, ISO 8601, and ``elapsed_s`` are those of the run on devices.
    """

    places: tuple[Place, ...]
    device_run: DeviceRun | None = None
    command: tuple[str, ...] = ()
    whole: EvaluationResult | None = None
    names_here: NamesHere = field(default_factory=NamesHere)
    started_at: str = ""
    elapsed_s: float = 0.0
    reference_here: str = ""

    @classmethod
    def of_one_run(cls, folders: Sequence[Path]) -> FinishedShards:
        """Those of one run, in the folders of its shards."""
        return cls((Place(tuple(folders)),))

    def complete(self, merged: EvaluationResult) -> EvaluationResult:
        """The merged result, with what is to be said of devices."""
        environment = merged.environment
        if self.device_run is not None:
            environment = replace(
                environment, command=list(self.command), started_at=self.started_at, elapsed_s=self.elapsed_s
            )
        part = merged.part
        return replace(
            merged,
            device_run=self.device_run,
            environment=environment,
            part=self._diff(part) if isinstance(part, InferenceDiff) else part,
            configurations=[self._named(entry) for entry in merged.configurations],
            failed=[replace(entry, reason=self.names_here.text(entry.reason)) for entry in merged.failed],
        )

    def _diff(self, diff: InferenceDiff) -> InferenceDiff:
        folder = diff.reference_loaded_from
        if folder is None:
            inputs = [replace(used, source=self.names_here.text(used.source)) for used in diff.inputs]
            return replace(diff, inputs=inputs)
        here = self.reference_here or self.names_here.folders.get(folder, folder)
        inputs = [replace(used, source=self.reference_here or loaded_from(here)) for used in diff.inputs]
        return replace(diff, inputs=inputs, reference_loaded_from=here)

    def _named(self, entry: ConfigurationResult) -> ConfigurationResult:
        names = self.names_here
        return replace(
            entry,
            flags=names.flags(entry.flags),
            delegates=names.delegates(entry.delegates),
            reason=names.reason(entry.reason),
        )
