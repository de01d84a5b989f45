"""``--executor=ray`` with drawn examples: the reference runs here, tasks on the cluster get the drawn ones.

The records of a task are put into the journal of the run as soon as they come back, so that a run goes on with the
examples that are missing.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evaltools.engine.execution import Shard
from evaltools.engine.journal import Journal
from evaltools.engine.run_folder import RunIdentity, journals_of
from evaltools.engine.task import Example
from evaltools.errors import UsageError
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.runs.on_ray import for_tasks, keep, run_shard
from evaltools.runs.ray_cluster import RETRIES, cpus_of, joined, ray_module, results_in_turn, tasks_asked_for
from evaltools.tasks.shared.options.execution import flags_to_repeat
from evaltools.tasks.shared.options.sampling import SAMPLING
from evaltools.tasks.shared.run_identity import RunAtPlace, described_in, differences_of_runs, require_one_run


@contextmanager
def drawn_on_ray(request: Request) -> Iterator[DrawnOnRay]:
    """A context in which a cluster runs the tests on examples that are drawn.

    Raises :class:`UsageError` where Ray is not installed, or the cluster is not reachable.
    """
    tasks, ray = tasks_asked_for(request.options), ray_module()
    with tempfile.TemporaryDirectory(prefix="evaltools-") as folder, joined(ray, request.options.text("ray_address")):
        yield DrawnOnRay(ray, request, tasks or cpus_of(ray), Path(folder))


class DrawnOnRay:
    """The tests of an evaluation on a cluster: its :class:`~evaltools.tasks.shared.sampled.elsewhere.OtherMachines`.

    Examples are done by as many as ``tasks`` at a time, each of which opens the model for its own. The first task has
    no example, and says what the tests run on there. The journals that come back lie in ``folder`` meanwhile.
    """

    def __init__(self, ray: Any, request: Request, tasks: int, folder: Path) -> None:
        self._ray, self._request, self._tasks, self._folder = ray, request, tasks, folder
        self._first = folder / "first"

    def describe(self, identity: RunIdentity, beside_reference: bool, _journal: Journal) -> list[ConfigurationResult]:
        """What the tests run on there; raises :class:`UsageError` where files or software are not those here."""
        reference = self._request.reference if beside_reference else None
        request = for_tasks(self._request).in_parts().without(*(parameter.name for parameter in SAMPLING))
        self._request = replace(request, reference=reference)
        for _, done in self._results([()]):
            keep(done, self._first, _name(()))
        require_one_run(RunAtPlace((self._first,), flags=flags_to_repeat(self._request.options)), identity)
        with journals_of([self._first]) as (opened,):
            return [entry for entry in described_in(opened) if entry.role == "test"]

    def run(self, examples: Sequence[Example], journal: Journal) -> None:
        """Have the examples done; raises :class:`UsageError` where a task failed, or ran on another software."""
        numbers = [example.index for example in examples]
        each = -(-len(numbers) // self._tasks)
        parts = [tuple(numbers[start : start + each]) for start in range(0, len(numbers), each)]
        for part, done in self._results(parts):
            folder = self._folder / str(part[0])
            keep(done, folder, _name(part))
            changes = differences_of_runs(self._first, folder)
            if changes:
                raise UsageError(
                    f"{_name(part)} ran on another node than the tasks before, and there {'; '.join(changes)}"
                )
            with journals_of([folder]) as (records,):
                journal.take_records(records, *(test.name for test in self._request.tests))

    def complete(self, result: EvaluationResult) -> EvaluationResult:
        """The result as it is: nothing more is known of the nodes."""
        return result

    def _results(self, parts: Sequence[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], Any]]:
        task = self._ray.remote(num_cpus=1, max_retries=RETRIES)(run_shard)
        plain = to_plain(self._request)
        return results_in_turn(self._ray, {task.remote(plain, Shard(drawn=part)): part for part in parts}, _name)


def _name(part: Sequence[int]) -> str:
    """What a task is called in messages: by its first example, as numbered in the whole run."""
    return f"the task with example {part[0]} and {len(part) - 1} more" if part else "the task that opens the model"
