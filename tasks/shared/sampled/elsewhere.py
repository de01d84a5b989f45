"""Tests that run on other machines, while the reference runs here: what a pass over drawn examples asks of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from evaltools.engine.journal import Journal
from evaltools.engine.run_folder import RunIdentity
from evaltools.engine.task import Example
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult


class OtherMachines(Protocol):
    """Machines that run the tests of an evaluation."""

    def describe(self, identity: RunIdentity, beside_reference: bool, journal: Journal, /) -> list[ConfigurationResult]:
        """What the tests run on there; what an earlier command had done is put into the journal.

        ``identity`` is that of the run here, without its configurations. ``beside_reference``: the reference runs
        beside them once more.
        """

    def run(self, examples: Sequence[Example], journal: Journal) -> None:
        """Run the tests on examples, at least one, of which the journal has no record, and put the records into it."""

    def complete(self, result: EvaluationResult) -> EvaluationResult:
        """The result with what is known of the machines."""


class Elsewhere(Struct, frozen=True):
    """The tests that run on other machines, and the ``names`` of those that can."""

    tests: OtherMachines
    names: Sequence[str]
