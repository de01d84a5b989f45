"""An evaluation on devices: what is done, what is kept, and what is said of what is not.

The devices are stand-ins that leave the records that a device leaves.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.cli.shared.terminal import make_console
from evaltools.device.devices import Outcome
from evaltools.device.errors import ConnectionLost, DeviceError
from evaltools.device.evaluation import WITH_RECORDS, DeviceEvaluation
from evaltools.device.python_program import PythonProgram
from evaltools.device.records import KeptRecords, KeptWork, messages_in
from evaltools.device.work import Work, WorkDone
from evaltools.engine.ledger import Tally
from evaltools.errors import DataError, OutputError
from evaltools.known_tasks import task_command
from evaltools.result.device import DeviceConditions, DeviceCpu, DeviceFacts, DeviceWork, LostAttempt
from evaltools.result.evaluation import RuntimeUsed
from tests.requests import request_of
from tests.tasks.part_runs import DESCRIBED, Part

EXAMPLES = 10
COMMAND = task_command("imagenet")
PYTHON = PythonProgram("python3", "/packages")


def facts_of(serial: str) -> DeviceFacts:
    return DeviceFacts(serial, model=f"model of {serial}", cpus=8)


def work_of(serial: str) -> DeviceWork:
    nothing = DeviceConditions()
    return DeviceWork(serial, "2026-01-01T00:00:00+00:00", 0.0, 1.5, nothing, nothing)


def kept_work(folder: KeptRecords, work: DeviceWork) -> Path:
    """Work that is done, with its records."""
    Part(EXAMPLES, described=DESCRIBED).write(folder.unfinished(work.serial) / "run")
    folder.keep(KeptWork(work, facts_of(work.serial)))
    return folder.of(work.serial)


# ----- the folder


def test_work_is_done_once_it_is_kept(tmp_path: Path) -> None:
    folder = KeptRecords(tmp_path)
    assert not folder.is_done("A")
    (folder.unfinished("A") / "of_a_lost_attempt").touch()
    unfinished = folder.unfinished("A")
    assert list(unfinished.iterdir()) == []
    (unfinished / "records").write_text("r")
    assert not folder.is_done("A")
    folder.keep(KeptWork(work_of("A"), facts_of("A")))
    assert folder.is_done("A")
    assert (folder.of("A") / "records").read_text() == "r"
    assert not unfinished.exists()
    assert not folder.is_done("B")
    assert KeptRecords(tmp_path).is_done("A"), "a later run finds it"


def test_what_is_said_of_a_device_is_read_again_as_it_was(tmp_path: Path) -> None:
    folder = KeptRecords(tmp_path)
    warm = DeviceConditions(87, 283, 1, {"SKIN": 31.5}, (DeviceCpu(0, None, 1, 2, 3),))
    work = replace(
        work_of("R58M"),
        before=warm,
        waited_s=12.5,
        delegate_lines=("Replacing 3 out of 4", "zwei\nZeilen 漢字"),
        lost=(LostAttempt("no space", "full", 1.0),),
    )
    kept_work(folder, work)
    assert folder.read("R58M") == KeptWork(work, facts_of("R58M"))


def test_devices_have_folders_of_their_own(tmp_path: Path) -> None:
    folder = KeptRecords(tmp_path)
    serials = ("10.0.0.2:5555", "10.0.0.2_5555", "adb-R5 (2)._adb-tls-connect._tcp", "a/b", "/etc", "漢字")
    assert len({folder.of(serial) for serial in serials}) == len(serials)
    for serial in serials:
        place = folder.of(serial)
        assert place.parent == tmp_path
        assert place.name.isascii()
        assert ":" not in place.name


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"\xff", b'{"work": {"serial": 1}}', b'{"more": ' + b"[" * 200_000],
    ids=["nothing", "empty", "no text", "wrong", "deep"],
)
def test_a_file_that_is_damaged_is_a_data_error_with_what_to_do(content: bytes, tmp_path: Path) -> None:
    folder = KeptRecords(tmp_path)
    (kept_work(folder, work_of("A")) / "device.json").write_bytes(content)
    with pytest.raises(DataError, match=r"device\.json cannot be read: .*; delete its folder, then go on"):
        folder.read("A")


def test_a_run_folder_that_cannot_be_written_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file")
    with pytest.raises(OutputError, match=r"A-\w+\.part cannot be written: .*; make room there"):
        KeptRecords(tmp_path / "run").unfinished("A")


def test_messages_are_those_of_all_that_was_opened(tmp_path: Path) -> None:
    """In the order of the configurations, one that was not measured as well; one without a runtime has none."""
    first, second = (
        replace(entry, runtime=replace(entry.runtime, messages=text))
        for entry, text in zip(DESCRIBED, ("INFO: one\nINFO: two", ""), strict=True)
        if entry.runtime is not None
    )
    lost = replace(first, name="lost", status="not measured", reason="no GPU", runtime=None)
    runtime = RuntimeUsed("litert", "ai-edge-litert", "2.3.0", "default", messages="INFO: three")
    late = replace(first, name="late", runtime=runtime)
    folder = Part(2, described=(first, second, lost, late)).write(tmp_path / "run")
    assert [line for line in messages_in(folder).splitlines() if line] == ["INFO: one", "INFO: two", "INFO: three"]


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
    done: int = 0
    python: PythonProgram | None = PYTHON

    @property
    def link(self) -> Any:
        """The way to it."""
        return SimpleNamespace(patiently=lambda act: act())

    def shell(self, command: str) -> None:
        """What is run there is the deletion of what was kept."""
        assert command == "rm -rf /there"

    @property
    def facts(self) -> DeviceFacts:
        """What it says of itself."""
        return facts_of(self.serial)

    def is_back(self) -> bool:
        """It always is."""
        return True

    def do(
        self, work: Work, program: PythonProgram, folder: Path, on_output: Callable[[bytes, bytes], None]
    ) -> WorkDone:
        assert program == PYTHON
        if self.fails:
            raise self.fails.pop(0)
        for piece in self.prints:
            on_output(b"", piece)
        if self.leaves_records:
            Part(EXAMPLES).write(folder / "run")
        self.done += 1
        return WorkDone(work_of(self.serial), self.code, "", self.err, folder)


@pytest.fixture(autouse=True)
def has_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.device.evaluation.python_on", lambda _phone, _kind: PYTHON)


def do(
    folder: Path,
    *phones: Phone,
    serials: Sequence[str] = (),
    on_progress: Callable[[Tally], None] = lambda _tally: None,
) -> Outcome[None]:
    """An evaluation that began with some devices, on those that are there now."""

    class Phones(dict[str, Phone]):
        serials = tuple(phone.serial for phone in phones)
        left_out = ()
        stop = Event()

    class Doing(DeviceEvaluation):
        work = Work({}, kept="/there")
        on_devices = request_of("imagenet")

    devices: Any = Phones({phone.serial: phone for phone in phones})
    nothing: Any = SimpleNamespace(pictures={}, example_count=EXAMPLES)
    observer: Any = SimpleNamespace(progress=lambda _phase, _total: nullcontext(on_progress))
    evaluation = Doing(COMMAND, nothing, nothing, nothing, KeptRecords(folder), "/there")
    return evaluation.do(serials or devices.serials, devices, make_console(io.StringIO()), observer)


def test_what_every_device_did_is_kept_with_what_its_delegates_said(tmp_path: Path) -> None:
    phones = [Phone("A", err="INFO: Created TensorFlow Lite XNNPACK delegate for CPU.\nnothing else\n"), Phone("B")]
    assert sorted(do(tmp_path, *phones).done) == ["A", "B"]
    kept = KeptRecords(tmp_path).read("A")
    assert (kept.work.serial, kept.device) == ("A", facts_of("A"))
    assert [line for line in kept.work.delegate_lines if "XNNPACK" in line]
    assert not [line for line in kept.work.delegate_lines if "nothing else" in line]
    assert KeptRecords(tmp_path).read("B").device == facts_of("B")


def test_what_an_earlier_run_did_is_not_done_again_and_who_is_away_is_named(tmp_path: Path) -> None:
    kept_work(KeptRecords(tmp_path), work_of("A"))
    first, second = Phone("A"), Phone("B")
    found = do(tmp_path, first, second, serials=["A", "B", "C"])
    assert (list(found.done), first.done, second.done) == (["B"], 0, 1)
    (left_out,) = found.left_out
    assert left_out.serial == "C"
    assert "C began this run and is not among the devices now" in left_out.reason


def test_what_was_lost_is_kept_with_the_work(tmp_path: Path) -> None:
    do(tmp_path, Phone("A", fails=[ConnectionLost("A: the link broke", "A")]))
    (lost,) = KeptRecords(tmp_path).read("A").work.lost
    assert (lost.kind, lost.reason) == ("connection lost", "A: the link broke")


def test_a_device_that_refuses_the_command_is_left_out(tmp_path: Path) -> None:
    lines = ['{"phase": "evaluation", "done": 1}', "one", "", "two", "three ", "evaltools: --x: no such flag"]
    (left_out,) = do(tmp_path, Phone("A", code=2, err="\n".join(lines))).left_out
    assert left_out.reason == "A: evaltools refused the command there: two | three | evaltools: --x: no such flag"


@pytest.mark.parametrize(
    ("code", "leaves_records", "is_done"),
    [(0, True, True), (1, True, False), (3, True, True), (4, True, False), (137, True, False), (0, False, False)],
)  # fmt: skip
def test_work_is_done_where_its_code_says_so_and_its_records_are_there(
    code: int, leaves_records: bool, is_done: bool, tmp_path: Path
) -> None:
    phone = Phone("A", code=code, leaves_records=leaves_records, err="x\nKilled\n")
    found = do(tmp_path, phone)
    assert KeptRecords(tmp_path).is_done("A") is is_done
    assert bool(phone.python) is (code in WITH_RECORDS), "a package may be gone"
    if not is_done:
        assert found.left_out[0].reason == (
            f"A: evaltools ended there with exit code {code} and no records; it printed last: x | Killed"
        )


def test_progress_is_that_of_all_devices_together(tmp_path: Path) -> None:
    seen: list[Tally] = []
    line = b'{"phase": "evaluation", "done": %d, "failed_examples": %d, "failed": {"test": %d}}\n'
    lines = [line % (done, failed, failed) for done, failed in ((2, 0), (4, 1), (10, 1))]
    do(tmp_path, Phone("A", prints=lines), Phone("B", prints=lines), on_progress=seen.append)
    last = seen[-1]
    assert (last.done, last.failed_examples, last.failed) == (20, 2, {"test": 2})
    assert len(seen) == 6
