"""``--executor=ray``: the shards of a run as tasks on a Ray cluster, merged here.

The nodes need evaltools, and the model, pictures and labels under the same paths. A task whose node or process is lost
is started again elsewhere. Shards that have come back lie in the run folder, so that a run goes on with the others.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from evaltools.command import TaskCommand
from evaltools.engine.journal import JOURNAL_NAME, Journal
from evaltools.engine.ledger import Tally
from evaltools.engine.run_folder import RunIdentity, request_facts, require_same_run, run_folder, run_journal
from evaltools.errors import OutputError, UsageError
from evaltools.exit_codes import MEASURED
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.tasks.framework import read
from evaltools.tasks.framework.request import flags_to_repeat

TASKS: Final = "tasks on the cluster"
"""The fact with the number of shards."""
_RETRIES: Final = 5
"""How often a task is started again elsewhere when its node or process is lost."""
_SECONDS_TO_CONNECT: Final = 5.0
CarryOut = Callable[[dict[str, Any]], tuple[int, bytes, str]]
"""What does a request, as plain values: its exit code, its journal, and why there is none."""
OnProgress = Callable[[int], AbstractContextManager[Callable[[Tally], None]]]


@contextlib.contextmanager
def shards_on_ray(
    task: TaskCommand, request: Request, progress: OnProgress, carry_out: CarryOut
) -> Iterator[list[Path]]:
    """The folders of a request's shards, done on a cluster; ``progress`` is a context, entered with their number.

    ``carry_out`` does one of them on a node.

    Raises :class:`UsageError` where Ray is not installed, the cluster is not reachable, or the request is wrong.
    """
    options = request.options
    tasks = options.number("ray_tasks")
    if tasks < 0:
        raise UsageError(f"--ray_tasks={tasks}: use a number of tasks, or 0 for one per CPU")
    read(task, request)
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        raise UsageError("--executor=ray needs Ray: pip install 'evaltools[ray]'") from error
    with run_folder(options.path("run_dir")) as folder, run_journal(folder) as journal:
        stated = _begin(journal, folder, request)
        with joined(ray, options.text("ray_address")):
            count = tasks or stated or max(1, int(ray.cluster_resources().get("CPU", 1)))
            journal.state({TASKS: str(count)})
            ranges = _missing(request, count, folder)
            with progress(count) as on_progress:
                tally = Tally(done=count - len(ranges))
                for _ in _carried_out(ray, ranges, carry_out):
                    tally.done += 1
                    on_progress(tally)
        yield [folder / f"shard-{index}-of-{count}" for index in range(count)]


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


def _missing(request: Request, count: int, folder: Path) -> dict[Path, Request]:
    """The requests of the shards whose records do not lie in the folder yet, by their own folders."""
    asked = _for_tasks(request).stating(shard_count=count, workers="1")
    shards = {folder / f"shard-{index}-of-{count}": asked.stating(shard_index=index) for index in range(count)}
    return {shard: own for shard, own in shards.items() if not (shard / JOURNAL_NAME).exists()}


def _carried_out(ray: Any, ranges: Mapping[Path, Request], carry_out: CarryOut) -> Iterator[Path]:
    """Each range as a task; gives each folder as soon as the journal of its range lies there.

    Raises :class:`UsageError` where one failed or was lost; what others did is kept.
    """
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(carry_out)
    tasks = {task.remote(to_plain(request)): folder for folder, request in ranges.items()}
    while tasks:
        (finished,), _ = ray.wait(list(tasks), num_returns=1)
        folder = tasks.pop(finished)
        try:
            code, journal, reason = ray.get(finished)
        except ray.exceptions.RayTaskError as error:
            raise UsageError(
                f"{folder.name} failed on its node: {error.cause}. evaltools and the files must be there under the "
                "same paths"
            ) from error
        except ray.exceptions.RayError as error:
            raise UsageError(f"{folder.name} was lost {_RETRIES + 1} times: {error}") from error
        if code not in MEASURED:
            raise UsageError(f"{folder.name} ended with exit code {code}: {reason.strip()}")
        _keep(journal, folder)
        yield folder


def _for_tasks(request: Request) -> Request:
    """The request without what is about the result, the run as a whole, or another executor."""
    parameters = request.options.parameters.values()
    of_shards = [each for each in parameters if each.must_agree or (each.is_sent and not each.only_with)]
    return request.without(*(each.name for each in parameters if each not in of_shards))


def _keep(journal: bytes, folder: Path) -> None:
    """Write the journal of a shard to a folder."""
    unfinished = folder / f"{JOURNAL_NAME}.part"
    try:
        folder.mkdir(exist_ok=True)
        unfinished.write_bytes(journal)
        unfinished.rename(folder / JOURNAL_NAME)
    except OSError as error:
        raise OutputError(
            f"{unfinished} cannot be written: {error.strerror}. Shards written before are kept: make room, then give "
            "the same command with the same --run_dir"
        ) from error


@contextlib.contextmanager
def joined(ray: Any, address: str) -> Iterator[None]:
    """A context in which the cluster at an address can be used; without an address, Ray is started on this machine.

    Raises :class:`UsageError` where that cannot be.
    """
    _require_listening(address)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        ray.init(address=address or "local", log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    except Exception as error:  # Ray raises no narrower one where a node does not start in time
        ray.shutdown()
        raise UsageError(_cannot_be_used(address, error)) from error
    finally:
        if threading.current_thread() is threading.main_thread():  # Ray takes signals for itself
            for number, handler in handlers.items():
                signal.signal(number, handler)
    try:
        yield
    finally:
        ray.shutdown()


def _cannot_be_used(address: str, error: Exception) -> str:
    message = str(error).strip().removesuffix(".")
    if address:
        return f"--ray_address={address}: no Ray cluster can be joined there: {message}; see ray status"
    return (
        f"Ray cannot be started here: {message}; try again when this machine has less to do, give "
        "--ray_address=HOST:PORT of a cluster that runs, or leave --executor=ray out"
    )


def _require_listening(address: str) -> None:
    """Raise :class:`UsageError` where nobody listens at an address, for which Ray would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise UsageError(f"--ray_address={address}: nobody answers there: {error.strerror or error}") from error
