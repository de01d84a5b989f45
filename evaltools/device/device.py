"""One device of a run: what is sent to it, the work that it does, and how it is left."""

from __future__ import annotations

import posixpath
import shlex
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Final

from rich.filesize import decimal

from evaltools.device import detached
from evaltools.device.adb import SHELL_TIMEOUT_S, Adb, Answer, Link
from evaltools.device.errors import DeviceError, FileMissing
from evaltools.device.facts import conditions_now, masks_of_cpus
from evaltools.device.flags import DEFAULT_ROOT, DeviceFlags
from evaltools.device.store import RUNS, DeviceLock, archives, remote_path, runs_on, stored_folder
from evaltools.device.transfer import pull, push
from evaltools.device.work import Program, SentFiles, Work, WorkDone, cool_down
from evaltools.errors import OutputError
from evaltools.result.device import DeviceConditions, DeviceFacts, DeviceWork

_LARGE: Final = 10_000_000
"""Bytes of a file about whose sending a line is printed."""
_LONGEST_COMMAND: Final = 30_000
"""Bytes of a command, in the quotes that it is sent in; what starts it comes on top."""


class Device:
    """A device that does one work at a time; files can be sent while its :attr:`lock` is held.

    ``stop`` ends everything that is under way. ``report`` gets lines for the user.

    Attributes:
        link: the way to it
        facts: at the beginning; the Python in them is the one that is used
        lock: that of evaltools' folder there
        known: files that the device has had since it was away
        python: evaltools there, once it has been looked at since then
    """

    def __init__(
        self,
        adb: Adb,
        facts: DeviceFacts,
        flags: DeviceFlags,
        stop: threading.Event,
        report: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.link = Link(adb, facts.serial, flags.patience_s, stop)
        self.serial = facts.serial
        self.facts = facts
        self.flags = flags
        self.lock = DeviceLock(self.link, flags.root, flags.takes_by_force)
        self._report = report
        self.known: set[str] = set()
        self.python: Program | None = None
        self._left: list[str] | None = None

    def shell(self, command: str, timeout_s: float = SHELL_TIMEOUT_S) -> Answer:
        """Run a command once, as :meth:`Link.shell` does."""
        return self.link.shell(command, timeout_s)

    def put(self, local: Path, remote: str = "") -> str:
        """Send a file unless the device has its content; returns its path on the device. Raises as :func:`push` does.

        ``remote`` is the value of :func:`remote_path`, if that is known already.
        """
        remote = remote or remote_path(self.flags.root, local)

        def on_sending(size: int) -> None:
            if size >= _LARGE:
                self._report(f"{self.serial}: sending {local.name}, {decimal(size)}")

        if remote not in self.known:
            push(self.link, local, remote, on_sending=on_sending)
            self.known.add(remote)
        return remote

    def is_back(self) -> bool:
        """Whether the device, which was lost, can be used again; waits as long as it may be away.

        Its files may be gone, so that they are looked for again.
        """
        self.known.clear()
        self.python = None
        try:
            self.lock.take()
        except DeviceError:
            return False
        return True

    def do(
        self,
        work: Work,
        program: Program,
        folder: Path,
        on_output: Callable[[bytes, bytes], None] = lambda _out, _err: None,
    ) -> WorkDone:
        """Wait until the device is cool, send the files of the work, run a program; results are put into ``folder``.

        If the device goes away afterwards, the work still counts, and the conditions after it are not known. Raises
        :class:`DeviceError` where the device did not finish, or another has taken its lock.
        """
        self.lock.take()
        self.link.patiently(self._remove_left)
        before, waited_s = self._begin()
        started_at, started = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.monotonic()
        answer = self._run(work, program, self._send(work), folder, on_output)
        elapsed_s = round(time.monotonic() - started, 3)
        try:
            after = self._conditions()
        except DeviceError:
            after = DeviceConditions()
        self.clean_up()
        done = DeviceWork(self.serial, started_at, round(waited_s, 3), elapsed_s, before, after)
        return WorkDone(done, answer.code, answer.text, answer.err.decode("utf-8", "replace"), folder)

    def _run(
        self,
        work: Work,
        program: Program,
        sent: SentFiles,
        folder: Path,
        on_output: Callable[[bytes, bytes], None],
    ) -> Answer:
        flags = self.flags
        run = posixpath.join(flags.root, RUNS, uuid.uuid4().hex[:16])
        taskset = masks_of_cpus(self.facts.conditions.cpu_frequencies).get(flags.taskset, flags.taskset)
        command = self._with_libraries(program.command(sent, taskset))
        if len(shlex.quote(shlex.quote(command)).encode()) > _LONGEST_COMMAND:  # too long for adb's command line
            command = f"exec sh {shlex.quote(self._put_content('command', command.encode()))}"
        self._left = [*(self._left or []), run]
        self.link.patiently(partial(detached.start, self.link, command, run, flags.ends_itself_after_s))
        answer = detached.wait(self.link, run, flags.silence_s, on_output)
        for result in work.results:
            local = folder / result
            local.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileMissing):  # the exit code shows why the command did not write it
                pull(self.link, posixpath.join(run, result), local)
        return answer

    def _with_libraries(self, command: str) -> str:
        """The command, for which the libraries of ``--device_libraries`` are found there; they are sent, too."""
        if self.flags.libraries is None:
            return command
        folder, files = stored_folder(self.flags.root, self.flags.libraries)
        for local, remote in files.items():
            self.put(local, remote)
        own = shlex.quote(folder)
        loader = f"LD_LIBRARY_PATH={own}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"
        signal_processor = f'ADSP_LIBRARY_PATH={own}"${{ADSP_LIBRARY_PATH:+;$ADSP_LIBRARY_PATH}}"'
        return f"export {loader} {signal_processor}\n{command}"

    def _begin(self) -> tuple[DeviceConditions, float]:
        if self.flags.cool_down_c is None:
            return self._conditions(), 0.0
        return cool_down(self._conditions, self.serial, self.flags.cool_down_c, self.link.stop, report=self._report)

    def _conditions(self) -> DeviceConditions:
        return self.link.patiently(partial(conditions_now, self.link))

    def _send(self, work: Work) -> SentFiles:
        for local, remote in work.files.items():
            self.put(local, remote)
        folders = {}
        for name, sent in work.folders.items():
            names = [self._put_content("names.json", sent.names)] if sent.names else []
            tars = archives(sent.folder, sent.files)
            folders[name] = [*names, *(self._put_content("files.tar", content) for content in tars)]
        request = self._put_content("request.json", work.request) if work.request else ""
        return SentFiles(folders, request, work.kept)

    def _put_content(self, name: str, content: bytes) -> str:
        with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary:
            file = Path(temporary, name)
            try:
                file.write_bytes(content)
            except OSError as error:
                raise OutputError(f"{file} cannot be written: {error.strerror}; make room, or set TMPDIR") from error
            return self.put(file)

    def clean_up(self) -> DeviceError | None:
        """End and delete what earlier attempts left on the device. If that fails, the next one tries it again.

        Returns the error if something may still run or lie there, None if not.
        """
        try:
            if self._left:
                self._remove_left()
        except DeviceError as error:
            return error
        return None

    def _remove_left(self) -> None:
        """End and delete runs; at first those that earlier commands left on the device."""
        link = self.link.unstoppable(self.link.patience_s)
        if self._left is None:
            self._left = runs_on(link, self.flags.root)
        for run in list(self._left):
            detached.remove(link, run)
            self._left.remove(run)

    def leave(self) -> None:
        """End what still runs there; what stays is said."""
        flags, problem = self.flags, self.clean_up()
        words = ["evaltools", "device", "clean", f"--serials={self.serial}"]
        words += [f"--adb={flags.adb}"] if flags.adb else []
        words += [f"--device_folder={flags.root}"] if flags.root != DEFAULT_ROOT else []
        if problem is not None:
            self._report(
                f"evaltools: {self.serial}: something may still run there, and its files be left ({problem}); it ends "
                f"itself after {flags.ends_itself_after_s / 60:.0f} minutes, and {shlex.join(words)} --force ends and "
                "deletes all"
            )
