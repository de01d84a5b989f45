"""``--executor=ray``: the shards of a run as tasks on a Ray cluster, merged here.

The nodes need evaltools, and the model, pictures and labels under the same paths. A task whose node or process is lost
is started again elsewhere. Shards that have come back lie in the run folder, so that a run goes on with the others.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from evaltools.engine.execution import Shard
from evaltools.engine.journal import JOURNAL_NAME, Journal
from evaltools.engine.ledger import Tally
from evaltools.engine.run_folder import RunIdentity, request_facts, require_same_run, run_folder, run_journal
from evaltools.errors import EvaltoolsError, OutputError, UsageError
from evaltools.exit_codes import MEASURED
from evaltools.request import Request
from evaltools.request.plain import from_plain, to_plain
from evaltools.runs.finished_shards import FinishedShards
from evaltools.runs.ray_cluster import RETRIES, cpus_of, joined, ray_module, results_in_turn, tasks_asked_for
from evaltools.runs.stored import seen_from
from evaltools.tasks.shared.evaluation import record
from evaltools.tasks.shared.kind import EvaluationKind, evaluation_kind
from evaltools.tasks.shared.measuring import Observer
from evaltools.tasks.shared.request import flags_to_repeat

TASKS: Final = "tasks on the cluster"
"""The fact with the number of shards."""
OnProgress = Callable[[int], AbstractContextManager[Callable[[Tally], None]]]


class ShardDone(Struct, frozen=True):
    """What a task sends back: the exit code of its shard, its journal, and why it has none."""

    code: int
    journal: bytes
    reason: str


@contextlib.contextmanager
def shards_on_ray(kind: EvaluationKind, request: Request, progress: OnProgress) -> Iterator[FinishedShards]:
    """The shards of a request, done on a cluster; ``progress`` is a context that is entered with their number.

    Raises :class:`UsageError` where Ray is not installed, the cluster is not reachable, or the request is wrong.
    """
    options = request.options
    tasks = tasks_asked_for(options)
    kind.read(request)
    ray = ray_module()
    with run_folder(options.path("run_dir")) as folder, run_journal(folder) as journal:
        stated = _begin(journal, folder, request)
        with joined(ray, options.text("ray_address")):
            count = tasks or stated or cpus_of(ray)
            journal.state({TASKS: str(count)})
            folders = _collect(ray, request, count, folder, progress)
        yield FinishedShards.of_one_run(folders)


def _begin(journal: Journal, folder: Path, request: Request) -> int:
    """Raise :class:`UsageError` for the folder of another run.

    Returns the number of shards that the run has in it, else 0.
    """
    identity = RunIdentity(
        {"the executor": "ray", "the task": request.task},
        options=flags_to_repeat(request.options),
        configurations={each.name: {"its setting": " ".join(each.to_flags())} for each in request.configurations},
    )
    require_same_run(journal, identity, has_begun=any(folder.glob("shard-*")))
    journal.state(request_facts(to_plain(request), identity))
    return int(journal.fact(TASKS) or 0)


def _collect(ray: Any, request: Request, count: int, folder: Path, progress: OnProgress) -> list[Path]:
    """Do the missing shards; returns the folders of all shards."""
    folders = [folder / f"shard-{index}-of-{count}" for index in range(count)]
    missing = [index for index, shard in enumerate(folders) if not (shard / JOURNAL_NAME).exists()]
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(run_shard)
    plain = to_plain(for_tasks(request))
    tasks = {task.remote(plain, Shard(index, count)): index for index in missing}
    tally = Tally(done=count - len(missing))
    with progress(count) as on_progress:
        for index, done in results_in_turn(ray, tasks, "shard {}".format):
            keep(done, folders[index], f"shard {index}")
            tally.done += 1
            on_progress(tally)
    return folders


def for_tasks(request: Request) -> Request:
    """The request without what is about the result, the run as a whole, or another executor."""
    parameters = request.options.parameters.values()
    of_shards = [each for each in parameters if each.must_agree or (each.is_sent and not each.only_with)]
    return request.without(*(each.name for each in parameters if each not in of_shards))


def keep(done: ShardDone, folder: Path, what: str) -> None:
    """Write the journal of a shard to a folder; raises :class:`UsageError`, which says of ``what``, without one."""
    if done.code not in MEASURED:
        raise UsageError(f"{what} ended with exit code {done.code}: {done.reason.strip()}")
    unfinished = folder / f"{JOURNAL_NAME}.part"
    try:
        folder.mkdir(exist_ok=True)
        unfinished.write_bytes(done.journal)
        unfinished.rename(folder / JOURNAL_NAME)
    except OSError as error:
        raise OutputError(
            f"{unfinished} cannot be written: {error.strerror}. Shards written before are kept: make room, then give "
            "the same command with the same --run_dir"
        ) from error


def run_shard(plain: dict[str, Any], shard: Shard) -> ShardDone:
    """Evaluate one shard in this process, which is a worker of the cluster."""
    with tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
        try:
            request = seen_from(from_plain(plain, {}), Path.cwd()).stating(
                run_dir=f"{folder}/run", shard_index=shard.index, shard_count=shard.count, workers="1"
            )
            kind = evaluation_kind(request.task)
            code = record(kind.prepare, kind.read(request), Observer())
        except EvaltoolsError as error:
            return ShardDone(error.exit_code, b"", str(error))
        journal = Path(folder, "run", JOURNAL_NAME)
        return ShardDone(code, journal.read_bytes() if journal.exists() else b"", "")
