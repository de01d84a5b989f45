"""``--executor=ray``: the shards of a run as tasks on a Ray cluster, merged here.

The nodes need evaltools, and the model, pictures and labels under the same paths. A task whose node or process is lost
is started again elsewhere. Shards that have come back lie in the run folder, so that a run goes on with the others.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evaltools.cli import exit_codes
from evaltools.cli.execution_flags import flags_to_repeat, read_execution
from evaltools.cli.finished_shards import FinishedShards
from evaltools.cli.flags import GivenFlags
from evaltools.cli.progress import show_progress
from evaltools.cli.stored_command import StoredCommand
from evaltools.cli.terminal import make_console
from evaltools.engine import Tally
from evaltools.engine.journal import JOURNAL_NAME
from evaltools.engine.run_folder import COMMAND, encode, require_same_run, run_journal
from evaltools.errors import EvaltoolsError, OutputError, UsageError

_RETRIES: Final = 5
_TASKS: Final = "tasks on the cluster"
_SECONDS_TO_CONNECT: Final = 5.0
_WITH_A_JOURNAL: Final = (
    exit_codes.OK, exit_codes.LIMIT_BROKEN, exit_codes.NOT_MEASURED, exit_codes.EXAMPLES_FAILED,
)  # fmt: skip


@dataclass(frozen=True)
class ShardDone:
    """What a task sends back: its exit code, its journal, and what it printed to stderr."""

    code: int
    journal: bytes
    printed: str


def run_on_ray(name: str, flags: GivenFlags, arguments: Sequence[str]) -> int:
    """Run a command's shards on a cluster, then merge them; returns the exit code.

    Raises :class:`UsageError` where Ray is not installed, the cluster is not there, or the command is wrong.
    """
    tasks = flags.number("ray_tasks")
    if tasks < 0:
        raise UsageError(f"--ray_tasks={tasks}: use a number of shards, or 0 for one per CPU")
    read_execution(flags)
    ray = _ray()
    command = StoredCommand(Path.cwd(), name, tuple(arguments))
    with _run_folder(flags.path("run_dir")) as folder:
        stated = _begin(folder, flags, command)
        _start(ray, flags.text("ray_address"))
        try:
            count = tasks or stated or max(1, int(ray.cluster_resources().get("CPU", 1)))
            with run_journal(folder) as journal:
                journal.state({_TASKS: str(count)})
            folders = _collect(ray, command.without(*_only_here(command)), count, folder, flags.text("progress"))
        finally:
            ray.shutdown()
        return command.without("executor", "ray_address", "ray_tasks", "run_dir").run(
            FinishedShards.of_one_run(folders)
        )


def _begin(folder: Path, flags: GivenFlags, command: StoredCommand) -> int:
    """Refuse the folder of another run; the number of shards that an earlier part of this one had, else 0."""
    identity = {"the executor": "ray", "the command": command.name, **flags_to_repeat(flags)}
    with run_journal(folder) as journal:
        require_same_run(journal, identity, begun=any(folder.glob("shard-*")))
        journal.state({COMMAND: encode([str(command.folder), "evaltools", command.name, *command.arguments])})
        return int(journal.fact(_TASKS) or 0)


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise UsageError("--executor=ray needs Ray: pip install 'evaltools[ray]'") from error


@contextlib.contextmanager
def _run_folder(stated: Path | None) -> Iterator[Path]:
    if stated is not None:
        yield stated.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
        yield Path(folder)


def _start(ray: Any, address: str) -> None:
    """Join the cluster at that address; without one, start Ray on this machine."""
    _require_listening(address)
    try:
        ray.init(address=address or "local", log_to_driver=False, include_dashboard=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = (
            f"--ray_address={address}: no Ray cluster can be joined there" if address else "Ray cannot be started here"
        )
        raise UsageError(f"{where}: {error}") from error


def _require_listening(address: str) -> None:
    """Ray waits for minutes for an address where nobody is."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise UsageError(f"--ray_address={address}: nobody answers there: {error.strerror or error}") from error


def _collect(ray: Any, command: StoredCommand, count: int, folder: Path, progress: str) -> list[Path]:
    """Have the shards that are missing done; the folders of all of them."""
    folders = [folder / f"shard-{index}-of-{count}" for index in range(count)]
    missing = [index for index, shard in enumerate(folders) if not (shard / JOURNAL_NAME).exists()]
    task = ray.remote(num_cpus=1, max_retries=_RETRIES)(run_shard)
    waiting = {
        task.remote(command.name, list(command.arguments), str(command.folder), index, count): index
        for index in missing
    }
    tally = Tally(done=count - len(missing))
    with show_progress("shards", count, make_console(), progress) as on_progress:
        while waiting:
            (finished,), _ = ray.wait(list(waiting), num_returns=1)
            index = waiting.pop(finished)
            _keep(_result(ray, finished, index), folders[index], index)
            tally.done += 1
            on_progress(tally)
    return folders


def _only_here(command: StoredCommand) -> list[str]:
    """The flags that shards are not told of: about the result, the run as a whole, or another executor."""
    of_shards = [each for each in command.parameters if each.must_agree or (each.is_sent and not each.only_with)]
    return [each.name for each in command.parameters if each not in of_shards]


def _result(ray: Any, finished: Any, index: int) -> ShardDone:
    try:
        done: ShardDone = ray.get(finished)
    except ray.exceptions.RayTaskError as error:
        raise UsageError(
            f"shard {index} failed on its node: {error.cause}. evaltools and the files must be there under the same "
            "paths"
        ) from error
    except ray.exceptions.RayError as error:
        raise UsageError(f"shard {index} was lost {_RETRIES + 1} times: {error}") from error
    return done


def _keep(done: ShardDone, folder: Path, index: int) -> None:
    if done.code not in _WITH_A_JOURNAL:
        raise UsageError(f"shard {index} ended with exit code {done.code}: {done.printed.strip()}")
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


def run_shard(name: str, arguments: Sequence[str], working_folder: str, index: int, count: int) -> ShardDone:
    """Evaluate one shard in this process, which is a worker of the cluster."""
    from evaltools.cli.main import COMMANDS

    os.chdir(working_folder)
    printed = io.StringIO()
    with tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
        own = (f"--run_dir={folder}/run", f"--shard_index={index}", f"--shard_count={count}", "--workers=1")
        command: Callable[[list[str]], int] = importlib.import_module(COMMANDS[name].module).run
        with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
            try:
                code = command([*arguments, *own, "--progress=none"])
            except EvaltoolsError as error:
                return ShardDone(error.exit_code, b"", str(error))
        journal = Path(folder, "run", JOURNAL_NAME)
        return ShardDone(code, journal.read_bytes() if journal.exists() else b"", printed.getvalue())
