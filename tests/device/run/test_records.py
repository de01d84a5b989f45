"""An evaluation on devices: what is done, what is kept, and what is said of what is not.

The devices are stand-ins that leave the records that a device leaves.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.adb.client import Answer, ConnectionLost, DeviceError
from evaltools.cli.shared.terminal import make_console
from evaltools.device.device import DevicesUsed
from evaltools.device.evaluation import (
    DONE,
    RECORDS,
    KeptWork,
    OnDevices,
    folder_of,
    missing_in,
    work_kept_in,
)
from evaltools.device.python_program import SentFiles
from evaltools.engine.journal import open_journal
from evaltools.engine.ledger import Tally
from evaltools.known_tasks import task_command
from evaltools.result.device import DeviceConditions, DeviceCpu, DeviceFacts, DeviceLeftOut, DeviceWork, LostAttempt
from evaltools.result.facts import RuntimeUsed
from evaltools.result.result import Row
from tests.requests import request_of
from tests.tasks.part_runs import DESCRIBED, Part

EXAMPLES = 10
PYTHON = "env python3"
TOOK = "Replacing 3 out of 9 node(s) with delegate (TfLiteGpuDelegateV2) node, yielding 2 partitions for subgraph 0."
Line = Callable[[bytes], None]


def facts_of(serial: str) -> DeviceFacts:
    return DeviceFacts(serial, model=f"model of {serial}", cpus=8)


def work_of(serial: str) -> DeviceWork:
    nothing = DeviceConditions()
    return DeviceWork(serial, "2026-01-01T00:00:00+00:00", 0.0, 1.5, nothing, nothing)


def kept_work(run_dir: Path, work: DeviceWork) -> Path:
    """Work that is done, with its records."""
    folder = folder_of(run_dir, work.serial)
    Part(EXAMPLES, described=DESCRIBED).write(folder / "run")
    with closing(open_journal(folder / "run")) as journal:
        DONE.write(journal, KeptWork(work, facts_of(work.serial)))
    return folder


def kept(run_dir: Path, serial: str) -> KeptWork:
    found = work_kept_in(folder_of(run_dir, serial))
    assert found is not None
    return found


# ----- the folder


def test_what_is_said_of_a_device_is_read_again_as_it_was(tmp_path: Path) -> None:
    warm = DeviceConditions(87, 283, 1, {"SKIN": 31.5}, (DeviceCpu(0, None, 1, 2, 3),))
    work = replace(
        work_of("R58M"),
        before=warm,
        waited_s=12.5,
        delegate_lines=("Replacing 3 out of 4", "zwei\nZeilen 漢字"),
        lost=(LostAttempt("no space", "full", 1.0),),
    )
    assert work_kept_in(kept_work(tmp_path, work)) == KeptWork(work, facts_of("R58M"))


def test_records_of_work_that_was_not_finished_are_not_all(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "A")
    assert work_kept_in(folder) is None
    Part(EXAMPLES, described=DESCRIBED).write(folder / "run")
    assert work_kept_in(folder) is None


def test_devices_have_folders_of_their_own(tmp_path: Path) -> None:
    serials = ("10.0.0.2:5555", "10.0.0.2_5555", "adb-R5 (2)._adb-tls-connect._tcp", "a/b", "/etc", "漢字")
    assert len({folder_of(tmp_path, serial) for serial in serials}) == len(serials)
    for serial in serials:
        place = folder_of(tmp_path, serial)
        assert place.parent == tmp_path
        assert place.name.isascii()
        assert ":" not in place.name


# ----- doing it


class Phone(Struct):
    """A device that leaves records; ``code`` and ``err`` are what its command ends with.

    It first raises what ``fails``, then prints.
    """

    serial: str
    code: int = 0
    err: str = ""
    leaves_records: bool = True
    fails: list[DeviceError] = field(default_factory=list)
    prints: Sequence[bytes] = ()
    described: Sequence[Row] = DESCRIBED
    done: int = 0
    python: str = PYTHON
    lost: list[LostAttempt] = field(default_factory=list)

    @property
    def link(self) -> Any:
        """The way to it."""

        def shell(command: str) -> None:
            """What is run there is the deletion of what was kept."""
            assert command == "rm -rf /there"

        return SimpleNamespace(patiently=lambda act: act(), shell=shell)

    @property
    def facts(self) -> DeviceFacts:
        """What it says of itself."""
        return facts_of(self.serial)

    def is_back(self) -> bool:
        """It always is."""
        return True

    def do(
        self, _prepare: Callable[[], str], results: Sequence[str], folder: Path, on_line: Line
    ) -> tuple[DeviceWork, Answer]:
        assert results == (RECORDS,)
        if self.fails:
            raise self.fails.pop(0)
        for line in self.prints:
            on_line(line)
        folder.mkdir(exist_ok=True)
        if self.leaves_records:
            Part(EXAMPLES, described=self.described).write(folder / "run")
        self.done += 1
        answer = Answer(self.code, b"", self.err.encode())
        return replace(work_of(self.serial), lost=tuple(self.lost)), answer


@pytest.fixture(autouse=True)
def has_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Devices have Python, and the files of a request are there."""
    monkeypatch.setattr("evaltools.device.python_program.python_on", lambda _phone, _kind: PYTHON)
    monkeypatch.chdir(tmp_path)
    for name in ("m.tflite", "truth.txt", "labels.txt"):
        (tmp_path / name).touch()


def do(
    folder: Path,
    *phones: Phone,
    serials: Sequence[str] = (),
    on_progress: Callable[[Tally], None] = lambda _tally: None,
) -> list[DeviceLeftOut]:
    """An evaluation that began with some devices, on those that are there now; who is left out."""
    by_serial: dict[str, Any] = {phone.serial: phone for phone in phones}
    task, request = task_command("imagenet"), request_of("imagenet")
    on_devices = OnDevices(task, request, SentFiles("/data"), "/there")
    missing = missing_in(folder, serials or [*by_serial])
    return on_devices.do(missing, folder, DevicesUsed(by_serial), make_console(io.StringIO()), on_progress)


def test_what_every_device_did_is_kept_with_what_its_delegates_said(tmp_path: Path) -> None:
    """While a model was loaded, and afterwards."""
    loaded = replace(DESCRIBED[0], runtime=RuntimeUsed("litert", "ai-edge-litert", "2.3.0", "default", messages=TOOK))
    lost = replace(DESCRIBED[1], status="not measured", reason="no GPU", runtime=None)
    said = "INFO: Created TensorFlow Lite XNNPACK delegate for CPU."
    phones = [Phone("A", err=f"{said}\nnothing else\n", described=(loaded, lost)), Phone("B")]
    assert do(tmp_path, *phones) == []
    first, second = kept(tmp_path, "A"), kept(tmp_path, "B")
    assert (first.work.serial, first.device, second.device) == ("A", facts_of("A"), facts_of("B"))
    assert first.work.delegate_lines == (TOOK, said.removeprefix("INFO: "))


def test_what_an_earlier_run_did_is_not_done_again_and_who_is_away_is_named(tmp_path: Path) -> None:
    kept_work(tmp_path, work_of("A"))
    first, second = Phone("A"), Phone("B")
    (left_out,) = do(tmp_path, first, second, serials=["A", "B", "C"])
    assert (first.done, second.done) == (0, 1)
    assert left_out.serial == "C"
    assert "C began this run and is not among the devices now" in left_out.reason


def test_what_was_lost_is_kept_with_the_work(tmp_path: Path) -> None:
    do(tmp_path, Phone("A", fails=[ConnectionLost("A: the link broke")]))
    (lost,) = kept(tmp_path, "A").work.lost
    assert (lost.kind, lost.reason) == ("connection lost", "A: the link broke")


def test_a_device_that_refuses_the_command_is_left_out(tmp_path: Path) -> None:
    lines = ['{"phase": "evaluation", "done": 1}', "one", "", "two", "three ", "evaltools: --x: no such flag"]
    (left_out,) = do(tmp_path, Phone("A", code=2, err="\n".join(lines)))
    assert left_out.reason == "A: evaltools refused the command there: two | three | evaltools: --x: no such flag"


@pytest.mark.parametrize(
    ("code", "leaves_records", "is_done"),
    [(0, True, True), (1, True, False), (3, True, True), (4, True, True), (137, True, False), (0, False, False)],
)  # fmt: skip
def test_work_is_done_where_its_code_says_so_and_its_records_are_there(
    code: int, leaves_records: bool, is_done: bool, tmp_path: Path
) -> None:
    phone = Phone("A", code=code, leaves_records=leaves_records, err="x\nKilled\n")
    left_out = do(tmp_path, phone)
    assert (work_kept_in(folder_of(tmp_path, "A")) is not None) is is_done
    assert bool(phone.python) is is_done, "a package may be gone"
    if not is_done:
        assert left_out[0].reason == (
            f"A: evaltools ended there with exit code {code} and no records; it printed last: x | Killed"
        )


def test_progress_is_that_of_all_devices_together(tmp_path: Path) -> None:
    seen: list[Tally] = []
    line = b'{"phase": "evaluation", "done": %d, "failed_examples": %d, "failed": {"test": %d}}'
    lines = [line % (done, failed, failed) for done, failed in ((2, 0), (4, 1), (10, 1))]
    do(tmp_path, Phone("A", prints=lines), Phone("B", prints=lines), on_progress=seen.append)
    last = seen[-1]
    assert (last.done, last.failed_examples, last.failed) == (20, 2, {"test": 2})
    assert len(seen) == 6
