"""Sessions in child processes: native code that crashes, aborts or hangs takes one configuration with it, not the run.

The child holds the real session, and may have another version of a runtime, which venv and pip put into an environment
in the user's cache. Arrays travel through shared memory, everything else through a pipe; times are taken in the child.
What native code prints goes to a file, whose end is quoted when the child dies.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from evaltools.configuration import OUR_RUNTIMES, Configuration
from evaltools.errors import ConfigurationUnavailable, InferenceError, SessionEnded
from evaltools.model import ModelFile
from evaltools.runtime.process import child
from evaltools.runtime.process.child import ChildProcess
from evaltools.runtime.process.shared_arrays import Parcel, SharedArrays
from evaltools.runtime.registry import Open, installed_version, open_session
from evaltools.runtime.session import Array, Delegation, Inference, RuntimeFacts, Session, TensorSpec

_NO_INDEX: Final = "from versions: none"
_LONGEST_REASON: Final = 400
_WINDOWS: Final = sys.platform == "win32"


def packages_of(configuration: Configuration) -> Path | None:
    """The folder with the packages of a configuration's runtime version, which is made where it is not there yet.

    None for the version that is installed beside evaltools. Raises :class:`ConfigurationUnavailable` with pip's reason
    where it cannot be installed.
    """
    version = configuration.runtime_version
    if version in ("", installed_version(configuration.runtime)):
        return None
    requirement = f"{OUR_RUNTIMES[configuration.runtime].replace('_', '-')}=={version}"
    place = _cache() / f"{requirement}-{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
    if not place.exists():
        try:
            _make(place, requirement)
        except OSError as error:
            raise ConfigurationUnavailable(
                f"no environment for {requirement} can be made in {place.parent}: {error}"
            ) from error
    return _site_packages(place)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "evaltools" / "runtimes"


def _make(place: Path, requirement: str) -> None:
    """Make an environment; where another process was faster, its own stays."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent, prefix=".") as scratch:
        draft = Path(scratch, "environment")
        python = draft / ("Scripts/python.exe" if _WINDOWS else "bin/python")
        _run([sys.executable, "-m", "venv", str(draft)], requirement)
        _run(
            [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check", requirement], requirement
        )
        try:
            draft.rename(place)
        except OSError:
            if not place.is_dir():
                raise


def _site_packages(place: Path) -> Path:
    return place / "Lib/site-packages" if _WINDOWS else next(place.glob("lib/python*/site-packages"))


def _run(command: list[str], requirement: str) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode == 0:
        return
    lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    said = next(
        (line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")), (lines or ["no reason"])[-1]
    )
    offline = "; no package index was reached, so perhaps this computer is offline" if _NO_INDEX in said else ""
    raise ConfigurationUnavailable(f"{requirement} cannot be installed: {said[:_LONGEST_REASON]}{offline}")


_NAME: Final = "the process of this configuration"
_LONGEST_MESSAGES: Final = 2000
_SECONDS_TO_FREE: Final = 60.0
_TIMES_AS_LONG: Final = 100
_FREEING: Final = "while its model and delegates were released"
_LEAVING: Final = "when it had released its model and delegates, at its exit"
Returned = TypeVar("Returned")


def open_isolated(
    model: ModelFile,
    configuration: Configuration,
    timeout_s: float = 600.0,
    opener: Open = open_session,
    timeout_flag: str = "",
) -> IsolatedSession:
    """Open a session in a child process of its own.

    ``timeout_s`` limits the opening and every block of runs; the user's ``timeout_flag`` sets it, if there is one.
    Raises what the opening raises, and :class:`ConfigurationUnavailable` where the child dies of it or does not answer
    in time.
    """
    try:
        return IsolatedSession(model, configuration, timeout_s, opener, timeout_flag)
    except InferenceError as error:
        requested = configuration.delegates.requested
        suspect = requested[0].name if requested else ""
        raise ConfigurationUnavailable(str(error), suspect, crashed=isinstance(error, SessionEnded)) from None
    except OSError as error:
        raise ConfigurationUnavailable(f"no process of its own could be started for it: {error}") from error


class IsolatedSession(ChildProcess):
    """A session whose work happens in a child process."""

    def __init__(
        self, model: ModelFile, configuration: Configuration, timeout_s: float, opener: Open, timeout_flag: str
    ) -> None:
        self._longest_s = 0.0
        super().__init__(_Held(), _NAME, timeout_s, timeout_flag, packages_of(configuration))
        try:
            facts, self.delegation, self.inputs, self.outputs = self.ask(
                _Held.open, model, configuration, opener, moment="while the model was loaded"
            )
            messages = " ".join(self.printed().split())[:_LONGEST_MESSAGES]
            self.facts: Final = replace(facts, messages=messages)
            self._memory = self._shared_memory()
        except BaseException:
            super().close()
            raise

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Run in the child; raises :class:`InferenceError`, also for a child that has died or does not answer."""
        (outcome,) = self.run_block([inputs], invocations)
        if isinstance(outcome, InferenceError):
            raise outcome
        return outcome

    @property
    def longest_block(self) -> int:
        """How many runs :meth:`run_block` takes at most."""
        return self._memory.slots

    def run_block(self, block: Sequence[Sequence[Array]], invocations: int = 1) -> list[Inference | InferenceError]:
        """Run one after the other without waiting for this process in between; an error takes the place of its run.

        An end of the child takes the places of all.
        """
        if self._over is not None:
            return [self._over] * len(block)
        parcels = [self._memory.put_inputs(slot, inputs) for slot, inputs in enumerate(block)]
        start = time.monotonic()
        try:
            outcomes = self.ask(_Held.run, parcels, invocations, moment="during a run", seconds=self._limit_s)
        except InferenceError as error:
            return [error] * len(block)
        self._longest_s = max(self._longest_s, time.monotonic() - start)
        return [outcome if isinstance(outcome, InferenceError) else self._with_outputs(outcome) for outcome in outcomes]

    @property
    def _limit_s(self) -> float:
        """How long a block may take: the time-out, later a hundred times the longest one, half a minute at least."""
        longest = _TIMES_AS_LONG * self._longest_s
        return min(self.timeout_s, max(child.LEAST_LIMIT_S, longest)) if longest else self.timeout_s

    def call(self, function: Callable[..., Returned], *arguments: Any, timeout_s: float = 0.0) -> Returned:
        """Call ``function`` with the child's session and ``arguments``, all of which must travel.

        ``timeout_s`` is what the call may take beyond the time-out of a run. Raises what it raises, and
        :class:`SessionEnded` for a child that has died or does not answer.
        """
        returned: Returned = self.ask(
            _Held.call, function, arguments, moment="during a call", seconds=self.timeout_s + timeout_s
        )
        return returned

    def close(self) -> None:
        """Release the model and its delegates, and end the child, at once where another thread waits for it.

        What goes wrong meanwhile stands in ``not_clean`` from then on; a crash counts in ``crashes``.
        """
        try:
            if self._over is None and not self._running:
                self.not_clean = self._freed()
        finally:
            super().close()
            self._memory.close()

    def _freed(self) -> str:
        """Have the child release its session and end; what went wrong, empty where nothing did."""
        seconds = min(self.timeout_s, _SECONDS_TO_FREE)
        try:
            self.ask(_Held.free, moment=_FREEING, seconds=seconds)
            return self.leave(_LEAVING, seconds)
        except SessionEnded as error:
            return str(error)

    def _shared_memory(self) -> SharedArrays:
        try:
            memory = SharedArrays.create(self.inputs, self.outputs)
        except OSError as error:
            raise ConfigurationUnavailable(f"no memory for its inputs and outputs: {error.strerror}") from error
        try:
            self.ask(_Held.share, memory.path, moment="after the model was loaded")
        finally:
            memory.forget_path()
        return memory

    def _with_outputs(self, inference: Inference) -> Inference:
        return replace(inference, outputs=self._memory.outputs(inference.outputs))


class _Held:
    """What the child holds: the session, and the memory that it shares with its parent."""

    session: Session
    memory: SharedArrays

    def open(
        self, model: ModelFile, configuration: Configuration, opener: Open
    ) -> tuple[RuntimeFacts, Delegation, tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
        start = time.perf_counter()
        self.session = session = opener(model, configuration)
        facts = replace(session.facts, load_ms=1000 * (time.perf_counter() - start))
        return facts, session.delegation, session.inputs, session.outputs

    def share(self, path: Path) -> None:
        self.memory = SharedArrays.attach(path, self.session.inputs, self.session.outputs)

    def run(self, block: Sequence[Parcel], invocations: int) -> list[Inference | InferenceError]:
        outcomes: list[Inference | InferenceError] = []
        for slot, parcel in enumerate(block):
            try:
                inference = self.session.run(self.memory.inputs(parcel), invocations)
            except InferenceError as error:
                outcomes.append(error)
                continue
            outcomes.append(replace(inference, outputs=self.memory.put_outputs(slot, inference.outputs)))
        return outcomes

    def call(self, function: Callable[..., Returned], arguments: tuple[Any, ...]) -> Returned:
        return function(self.session, *arguments)

    def free(self) -> None:
        self.session.close()
