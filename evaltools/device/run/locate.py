"""A search for the operator at fault on a device: evaltools itself does all of it there, and its result comes back.

So parts are cut, run and compared where the delegate is, against the CPU beside it, and no tensor crosses the link.
What a search with a run folder has measured is kept on the device.
"""

from __future__ import annotations

import math
import posixpath
import re
import secrets
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from evaltools.device.adb.errors import CommandFailed, DeviceError, ProgramMissing
from evaltools.device.files.store import SEARCHES
from evaltools.device.programs.part import PartProgress, PartWork, PictureFolder, ProgressReader
from evaltools.device.programs.pool import Job
from evaltools.device.run.devices import DevicesUsed
from evaltools.device.run.flags import DeviceFlags
from evaltools.device.run.identity import identity_of
from evaltools.device.run.jobs import last_lines
from evaltools.device.run.request import DeviceRequest, device_request, pictures_on_device, without_host_options
from evaltools.device.run.runner import AlikeCheck, DeviceProgram, run_on_devices
from evaltools.engine.run_folder import REQUEST, has_own_request, request_facts, require_same_run, run_journal
from evaltools.errors import DataError, OutputError, UsageError
from evaltools.exit_codes import NOT_MEASURED, OK, USAGE
from evaltools.locate.bundle import BUNDLE_FILES, RESULT
from evaltools.locate.kind import KIND
from evaltools.locate.request import LocateRequest
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.result.device_run import DevicePart
from evaltools.result.environment import describe_environment
from evaltools.result.handed_back import ENDING, read_exactly
from evaltools.result.json_file import encode_json
from evaltools.result.locate import LocateResult
from evaltools.result.new_folder import require_new_folder
from evaltools.runs.stored import to_bytes
from evaltools.tasks.shared.host_names import HostNames

_RESULT: Final = f"result{ENDING}"
_BUNDLE: Final = "bundle"
_PLACE: Final = "search on a device"
_PHASE: Final = "operators"
OnPart = Callable[[int], object]
"""Told how many parts were measured so far."""


class SearchDone(Struct, frozen=True):
    """What a device found; ``folder`` holds the files of the bundle, where one was asked for."""

    part: DevicePart
    result: LocateResult
    folder: Path


def locate_on_device(request: LocateRequest, flags: DeviceFlags, console: Console, on_part: OnPart) -> LocateResult:
    """Search on the device that is named, or the only one.

    Raises :class:`UsageError` and its kinds before anything is sent, and :class:`DeviceError` where the device did not
    finish.
    """
    asked = request.asked
    started_at, clock = datetime.now(timezone.utc).isoformat(timespec="seconds"), time.perf_counter()
    _require_sense(flags)
    bundle = asked.options.path("bundle")
    if bundle is not None:
        require_new_folder(bundle, "bundle")
    assert asked.devices is not None
    if "part_timeout" not in asked.devices:
        flags = replace(flags, part_timeout_s=math.inf)
    sent = device_request(asked, flags.root)
    with tempfile.TemporaryDirectory(prefix="evaltools-") as temporary, _kept_there(asked, flags, sent) as place:
        found = _search(request, flags, sent, place, Path(temporary), console, on_part)
        environment = describe_environment(list(asked.command), started_at, round(time.perf_counter() - clock, 3))
        result = replace(found.result, environment=environment)
        if bundle is None or result.bundle is None:
            return result
        result = replace(result, bundle=replace(result.bundle, folder=str(bundle)))
        _keep_bundle(found.folder / _BUNDLE, bundle, result)
    return result


def _search(
    request: LocateRequest,
    flags: DeviceFlags,
    sent: DeviceRequest,
    place: Mapping[str, str],
    folder: Path,
    console: Console,
    on_part: OnPart,
) -> SearchDone:
    """What the device found, with the names that files have here."""
    program = DeviceSearch(request, sent, place, folder, on_part)
    with DevicesUsed(flags, console) as devices:
        if len(devices.serials) > 1:
            raise UsageError(
                f"a search looks into one device, but there are {len(devices.serials)}: {', '.join(devices.serials)}; "
                "name one in --serials"
            )
        found = run_on_devices(program, flags.program, flags.split, 1, devices, console)
    (done,) = found.done.values()
    result = with_host_names(done.result, sent.host_names())
    return replace(done, result=replace(result, device_run=found.device_run))


class DeviceSearch(DeviceProgram[SearchDone, None]):
    """A search by evaltools itself; what it gives is put into folders below ``folder``."""

    def __init__(
        self, request: LocateRequest, sent: DeviceRequest, place: Mapping[str, str], folder: Path, on_part: OnPart
    ) -> None:
        has_bundle = "bundle" in request.options
        stated = {**place, **({"bundle": _BUNDLE} if has_bundle else {})}
        on_device = without_host_options(sent.request).stating(output_file_path=_RESULT, progress="json", **stated)
        manifests = sent.manifests(folder)
        chosen = tuple(dict.fromkeys(request.inputs.pictures))
        self._work = PartWork(
            index=0,
            count=1,
            examples=0,
            request=to_bytes(on_device),
            files=sent.files,
            pictures={
                pictures_on_device(option): PictureFolder(pictures, chosen, manifests[option])
                for option, pictures in sent.pictures.items()
            },
            folders=sent.folders,
            results=(_RESULT, *(f"{_BUNDLE}/{name}" for name in BUNDLE_FILES if has_bundle)),
        )
        self._folder = folder
        self._on_part = on_part

    def run(self, devices: DevicesUsed, serial: str, _job: Job, _alike: AlikeCheck[None]) -> SearchDone:
        """Search; raises :class:`CommandFailed` where the device gives no result."""
        into = Path(tempfile.mkdtemp(dir=self._folder))
        python = devices.python(serial, KIND)
        done = devices.device(serial).do(self._work, python, into, ProgressReader(self._tell, _PHASE))
        if done.code == USAGE:
            raise ProgramMissing(f"{serial}: evaltools refused the command there: {last_lines(done.err)}", serial)
        if done.code not in (OK, NOT_MEASURED) or not (into / _RESULT).is_file():
            raise CommandFailed(
                f"{serial}: evaltools ended there with exit code {done.code} and no result; it printed last: "
                f"{last_lines(done.err)}",
                serial,
            )
        try:
            return SearchDone(done.part, read_exactly(into / _RESULT, LocateResult), into)
        except DataError as error:
            raise CommandFailed(f"{serial}: {error}", serial) from error

    def _tell(self, progress: PartProgress) -> None:
        self._on_part(progress.done)


def _require_sense(flags: DeviceFlags) -> None:
    """Raise :class:`UsageError` for what a search on a device cannot do, and for flags without effect on one."""
    if flags.program != "evaltools":
        raise UsageError(
            f"--device_program={flags.program} gives no tensors, by which operators are compared. A search needs "
            "evaltools itself on the device, and so Python with numpy and ai-edge-litert there; leave the flag out, or "
            "compare the model's outputs: evaltools device run diff"
        )
    without_effect = {"--split=each": flags.split == "each", "--parts": flags.parts > 0}
    for flag, is_given in without_effect.items():
        if is_given:
            raise UsageError(f"{flag} has no effect on a search, which looks into one device as a whole; leave it out")


@contextmanager
def _kept_there(asked: Request, flags: DeviceFlags, sent: DeviceRequest) -> Iterator[dict[str, str]]:
    """The option with the run folder on the device, none where there is none here; the one here is held meanwhile."""
    run_dir = asked.options.path("run_dir")
    if run_dir is None:
        yield {}
        return
    with run_journal(run_dir.resolve()) as journal:
        name = journal.fact(_PLACE)
        if name is None and journal.fact(REQUEST) is not None:
            raise UsageError(f"--run_dir={run_dir} holds another run, no search on a device; give a new folder")
        identity = identity_of(flags, sent)
        require_same_run(journal, identity, has_begun=name is not None)
        if name is None:
            name = secrets.token_hex(8)
            journal.state({_PLACE: name, **request_facts(to_plain(asked), identity)})
        elif re.fullmatch("[0-9a-f]{16}", name) is None:
            raise UsageError(
                f"--run_dir={run_dir}: its journal says {name!r} where a folder on the device is named by 16 of the "
                "digits 0-9 and a-f; it was changed, so give a new folder"
            )
        elif not has_own_request(journal):
            journal.state(request_facts(to_plain(asked), identity))
        try:
            yield {"run_dir": posixpath.join(flags.root, SEARCHES, name)}
        except DeviceError as error:
            step = f"evaltools resume {shlex.quote(str(run_dir))} goes on with what the device has measured"
            raise DeviceError(f"{error}\n  {step}") from error


def with_host_names(result: LocateResult, names: HostNames) -> LocateResult:
    """A result from a device, with the names that files have here in all of its texts."""
    plain = _renamed(msgspec.to_builtins(result), names.text)
    return msgspec.convert(plain, LocateResult)


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return rename(value)
    if isinstance(value, dict):
        return {key: _renamed(item, rename) for key, item in value.items()}
    return [_renamed(item, rename) for item in value] if isinstance(value, list | tuple) else value


def _keep_bundle(fetched: Path, bundle: Path, result: LocateResult) -> None:
    """Put the files of a bundle where they were asked for; raises :class:`OutputError`."""
    try:
        shutil.copytree(fetched, bundle, dirs_exist_ok=True)
        (bundle / RESULT).write_bytes(encode_json(result))
    except OSError as error:
        raise OutputError(f"--bundle={bundle}: {error.filename or 'a file'} cannot be written: {error}") from error
