"""The parts of an evaluation on devices: which are done, which are kept, and what is said of those that are not.

The devices are stand-ins that leave the records of a part as a device does.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.cli.shared.terminal import make_console
from evaltools.device.errors import CommandFailed, ConnectionLost, DeviceError
from evaltools.device.evaluation import WITH_RECORDS, DeviceEvaluation
from evaltools.device.part import PartDone, PartWork
from evaltools.device.parts import KeptPart, PartsFolder
from evaltools.device.pool import Job, PoolOutcome
from evaltools.device.python_program import PythonProgram
from evaltools.engine.execution import Shard
from evaltools.engine.ledger import Tally
from evaltools.errors import DataError, OutputError
from evaltools.result.device import DeviceConditions, DeviceCpu, DeviceFacts
from evaltools.result.device_run import DevicePart, LostAttempt, PartFigures
from evaltools.result.evaluation import ConfigurationResult, RuntimeUsed
from evaltools.tasks.shared.declared import declared_task
from tests.tasks.part_runs import DESCRIBED, Part

OTHER_RUNTIME = (replace(DESCRIBED[0], runtime=RuntimeUsed("litert", "ai-edge-litert", "9.9", "default")), DESCRIBED[1])
EXAMPLES = 10
KIND = declared_task("imagenet")
PYTHON = PythonProgram("python3", "/packages")


def facts_of(serial: str) -> DeviceFacts:
    return DeviceFacts(serial, model=f"model of {serial}", cpus=8)


def part_of(job: Job, serial: str = "R58M", count: int = 2) -> DevicePart:
    nothing = DeviceConditions()
    return DevicePart(job.index, count, serial, 5, "2026-01-01T00:00:00+00:00", 0.0, 1.5, nothing, nothing)


def kept_part(
    folder: PartsFolder,
    job: Job,
    part: DevicePart | None = None,
    described: Sequence[ConfigurationResult] = DESCRIBED,
) -> Path:
    """A part that is done, with its records."""
    done = part or part_of(job)
    Part(EXAMPLES, Shard(job.index, done.count), described=described).write(folder.unfinished(job) / "run")
    folder.keep(job, KeptPart(done, facts_of(done.serial)))
    return folder.of(job)


# ----- the folder


def test_a_part_is_done_once_it_is_kept(tmp_path: Path) -> None:
    folder, job = PartsFolder(tmp_path, 2), Job(1)
    assert not folder.is_done(job)
    (folder.unfinished(job) / "of_a_lost_attempt").touch()
    unfinished = folder.unfinished(job)
    assert list(unfinished.iterdir()) == []
    (unfinished / "records").write_text("r")
    assert not folder.is_done(job)
    folder.keep(job, KeptPart(part_of(job), facts_of("R58M")))
    assert folder.is_done(job)
    assert (folder.of(job) / "records").read_text() == "r"
    assert not unfinished.exists()
    assert not folder.is_done(Job(0))
    assert PartsFolder(tmp_path, 2).is_done(job), "a later run finds it"
    assert not PartsFolder(tmp_path, 3).is_done(job), "that is another part"


def test_what_is_said_of_a_part_is_read_again_as_it_was(tmp_path: Path) -> None:
    folder, job = PartsFolder(tmp_path, 2), Job(0)
    warm = DeviceConditions(87, 283, 1, {"SKIN": 31.5}, (DeviceCpu(0, None, 1, 2, 3),))
    part = replace(
        part_of(job),
        before=warm,
        waited_s=12.5,
        delegate_lines=("Replacing 3 out of 4", "zwei\nZeilen 漢字"),
        lost=(LostAttempt("A", "no space", "full", 1.0),),
        figures=(PartFigures("test", 5, 1, (3, 4, 5, 6), 2), PartFigures("other", 5, 0)),
    )
    kept_part(folder, job, part)
    assert folder.read(job) == KeptPart(part, facts_of("R58M"))


def test_parts_of_devices_lie_apart(tmp_path: Path) -> None:
    folder = PartsFolder(tmp_path, 2)
    jobs = [Job(index, serial) for index in range(2) for serial in ("", "R58M", "10.0.0.2:5555")]
    assert len({folder.of(job) for job in jobs}) == 6
    for serial in ("10.0.0.2:5555", "adb-R5 (2)._adb-tls-connect._tcp", "a/b", "/etc", "漢字"):
        place = folder.of(Job(0, serial))
        assert place.parent.parent == tmp_path
        assert place.parent.name.isascii()
        assert ":" not in place.name


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"\xff", b'{"part": {"index": "one"}}', b'{"more": ' + b"[" * 200_000],
    ids=["nothing", "empty", "no text", "wrong", "deep"],
)
def test_a_file_that_is_damaged_is_a_data_error_with_what_to_do(content: bytes, tmp_path: Path) -> None:
    folder, job = PartsFolder(tmp_path, 2), Job(0)
    (kept_part(folder, job) / "part.json").write_bytes(content)
    with pytest.raises(DataError, match=r"part\.json cannot be read: .*; delete its folder, then go on"):
        folder.read(job)


def test_a_run_folder_where_no_part_can_be_put_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "pool").write_text("a file")
    with pytest.raises(OutputError, match=r"shard-0-of-2\.part cannot be written: .*; make room there"):
        PartsFolder(tmp_path, 2).unfinished(Job(0))


# ----- doing them


class Phone(Struct):
    """A device that leaves records; ``code`` and ``err`` are what its command ends with.

    It first raises what ``fails``, then, when it has printed, what ``fails_after``.
    """

    serial: str
    described: Sequence[ConfigurationResult] = DESCRIBED
    code: int = 0
    err: str = ""
    leaves_records: bool = True
    fails: list[DeviceError] = field(default_factory=list)
    fails_after: list[DeviceError] = field(default_factory=list)
    prints: Sequence[bytes] = ()
    done: list[int] = field(default_factory=list)
    python: PythonProgram | None = PYTHON

    @property
    def facts(self) -> DeviceFacts:
        """What it says of itself."""
        return facts_of(self.serial)

    def is_back(self) -> bool:
        """It always is."""
        return True

    def do(
        self, work: PartWork, program: PythonProgram, folder: Path, on_output: Callable[[bytes, bytes], None]
    ) -> PartDone:
        assert program == PYTHON
        if self.fails:
            raise self.fails.pop(0)
        for piece in self.prints:
            on_output(b"", piece)
        if self.fails_after:
            raise self.fails_after.pop(0)
        if self.leaves_records:
            Part(EXAMPLES, Shard(work.index, work.count), described=self.described).write(folder / "run")
        self.done.append(work.index)
        part = part_of(Job(work.index), self.serial, work.count)
        return PartDone(part, self.code, "", self.err, folder)


@pytest.fixture(autouse=True)
def has_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.device.evaluation.python_on", lambda _phone, _kind: PYTHON)


class Run(Struct):
    """Parts of one run on some phones."""

    folder: Path
    phones: Sequence[Phone]
    count: int = 2
    each: bool = False
    stop: threading.Event = field(default_factory=threading.Event)
    printed: io.StringIO = field(default_factory=io.StringIO)

    @property
    def jobs(self) -> list[Job]:
        serials = [phone.serial for phone in self.phones] if self.each else [""]
        return [Job(index, serial) for serial in serials for index in range(self.count)]

    @property
    def kept(self) -> PartsFolder:
        return PartsFolder(self.folder, self.count)

    def do(self, on_progress: Callable[[Tally], None] = lambda _tally: None) -> PoolOutcome[PartDone]:
        class Phones(dict[str, Phone]):
            serials = tuple(phone.serial for phone in self.phones)
            left_out = ()
            stop = self.stop

        class Evaluation(DeviceEvaluation):
            def work(self, job: Job) -> PartWork:
                return PartWork(job.index, count, self._size_of(job), {})

        count = self.count
        devices: Any = Phones({phone.serial: phone for phone in self.phones})
        nothing: Any = SimpleNamespace(pictures={}, example_count=EXAMPLES)
        observer: Any = SimpleNamespace(progress=lambda _phase, _total: nullcontext(on_progress))
        evaluation = Evaluation(KIND, nothing, nothing, nothing, self.kept)
        return evaluation.do(self.jobs, devices, make_console(self.printed), observer)


def test_parts_are_done_and_kept_with_their_figures(tmp_path: Path) -> None:
    run = Run(tmp_path, [Phone("A", err="INFO: Created TensorFlow Lite XNNPACK delegate for CPU.\nnothing else\n")])
    found = run.do()
    assert sorted(job.index for job in found.done) == [0, 1]
    kept = run.kept.read(Job(1))
    part = kept.part
    assert (part.serial, kept.device, part.lost) == ("A", facts_of("A"), ())
    assert part.figures == (
        PartFigures("reference", 5, 0, (1, 3, 5, 7, 9)),
        PartFigures("test", 5, 0, (1, 3, 5, 7, 9)),
    )
    assert [line for line in part.delegate_lines if "XNNPACK" in line]
    assert not [line for line in part.delegate_lines if "nothing else" in line]


def test_parts_that_an_earlier_run_did_are_not_done_again(tmp_path: Path) -> None:
    kept_part(PartsFolder(tmp_path, 2), Job(0))
    run = Run(tmp_path, [Phone("A")])
    assert list(run.do().done) == [Job(1)]
    assert run.phones[0].done == [1]
    again = Run(tmp_path, [Phone("A")])
    assert again.do().done == {}
    assert again.phones[0].done == []
    assert all(map(again.kept.is_done, again.jobs))


def test_every_device_does_everything_where_each_has_parts_of_its_own(tmp_path: Path) -> None:
    run = Run(tmp_path, [Phone("A"), Phone("B")], each=True)
    assert len(run.do().done) == 4
    assert [sorted(phone.done) for phone in run.phones] == [[0, 1], [0, 1]]
    assert [run.kept.read(Job(0, serial)).part.serial for serial in "AB"] == ["A", "B"]


def test_a_part_that_is_lost_is_told_of_and_done_again(tmp_path: Path) -> None:
    """In a line that cannot move the cursor."""
    run = Run(tmp_path, [Phone("A", fails=[ConnectionLost("A: the \x1b[2J[red]\nlink broke", "A")])])
    found = run.do()
    assert len(found.done) == 2
    assert "part 1 of 2: A: the \\x1b[2J[red]\\nlink broke [connection lost]\n" in run.printed.getvalue()
    first, second = (run.kept.read(job).part.lost for job in run.jobs)
    assert [(attempt.serial, attempt.kind, attempt.reason) for attempt in first] == [
        ("A", "connection lost", "A: the \x1b[2J[red]\nlink broke")
    ]
    assert second == ()


def test_a_device_that_runs_something_else_is_left_out(tmp_path: Path) -> None:
    kept_part(PartsFolder(tmp_path, 2), Job(0), part_of(Job(0), "A"))
    run = Run(tmp_path, [Phone("B", OTHER_RUNTIME)])
    found = run.do()
    assert found.done == {}
    (left_out,) = found.left_out
    assert left_out.serial == "B"
    for fact in ("B is not like A", "configuration reference", "2.3.0", "9.9", "--split=each"):
        assert fact in left_out.reason
    assert not run.kept.is_done(Job(1))


def test_a_device_that_lacks_a_delegate_is_not_like_one_that_has_it(tmp_path: Path) -> None:
    lacking = (DESCRIBED[0], replace(DESCRIBED[1], status="not measured", reason="no GPU"))
    alone = Run(tmp_path / "alone", [Phone("B", lacking)]).do()
    assert (len(alone.done), alone.left_out) == (2, [])
    kept_part(PartsFolder(tmp_path / "both", 6), Job(0), part_of(Job(0), "A", 6))
    both = Run(tmp_path / "both", [Phone("A"), Phone("B", lacking)], count=6)
    both.do()
    assert {both.kept.read(job).part.serial for job in both.jobs} == {"A"}


def test_devices_that_are_compared_need_not_be_alike(tmp_path: Path) -> None:
    run = Run(tmp_path, [Phone("A"), Phone("B", OTHER_RUNTIME)], each=True)
    assert len(run.do().done) == 4


def test_a_device_that_refuses_the_command_is_left_out(tmp_path: Path) -> None:
    lines = ['{"phase": "evaluation", "done": 1}', "one", "", "two", "three ", "evaltools: --x: no such flag"]
    run = Run(tmp_path, [Phone("A", code=2, err="\n".join(lines))])
    (left_out,) = run.do().left_out
    assert left_out.reason == "A: evaltools refused the command there: two | three | evaltools: --x: no such flag"


@pytest.mark.parametrize(
    ("code", "leaves_records", "is_done"),
    [(0, True, True), (1, True, False), (3, True, True), (4, True, True), (137, True, False), (0, False, False)],
)  # fmt: skip
def test_a_part_is_done_where_its_code_says_so_and_its_records_are_there(
    code: int, leaves_records: bool, is_done: bool, tmp_path: Path
) -> None:
    run = Run(tmp_path, [Phone("A", code=code, leaves_records=leaves_records, err="x\nKilled\n")], count=1)
    found = run.do()
    assert run.kept.is_done(Job(0)) is is_done
    assert bool(run.phones[0].python) is (code in WITH_RECORDS), "a package may be gone"
    if not is_done:
        assert {attempt.kind for attempt in found.lost[Job(0)]} == {CommandFailed.kind}
        assert found.left_out[0].reason == (
            f"A: evaltools ended there with exit code {code} and no records; it printed last: x | Killed"
        )


def test_progress_is_that_of_all_parts_together_and_falls_where_one_is_lost(tmp_path: Path) -> None:
    """A part is whole only once its records are here, whatever it printed before."""
    seen: list[Tally] = []
    kept_part(PartsFolder(tmp_path, 2), Job(0))
    line = b'{"phase": "evaluation", "done": %d, "failed_examples": %d, "failed": {"test": %d}}\n'
    lines = [line % (done, failed, failed) for done, failed in ((2, 0), (4, 1), (5, 1))]
    phone = Phone("A", prints=lines)
    phone.fails_after = [ConnectionLost("A: the link broke", "A")]
    Run(tmp_path, [phone]).do(seen.append)
    assert [tally.done for tally in seen] == [5 + 2, 5 + 4, 5 + 4, 5, 5 + 2, 5 + 4, 5 + 4, 10]
    assert [tally.failed.get("test", 0) for tally in seen] == [0, 1, 1, 0, 0, 1, 1, 0]
    assert [tally.failed_examples for tally in seen] == [0, 1, 1, 0, 0, 1, 1, 0]
