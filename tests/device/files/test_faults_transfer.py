"""Files over links that break: the real client and daemon, with a proxy between them."""

from __future__ import annotations

import random
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.adb import detached
from evaltools.adb.client import (
    MAY_PASS,
    Adb,
    Answer,
    CommandFailed,
    DeviceError,
    DeviceStopped,
    DeviceTimeout,
    Link,
)
from evaltools.adb.transfer import pull, push
from evaltools.errors import DataError, OutputError
from tests.device.fault_proxy import Direction, FaultProxy
from tests.device.faults import FAULTS, Fault, cut, stalled
from tests.device.fixtures import PATIENCE_S
from tests.device.real_device import Network, wait_until

SIZE = 20 * 1024 * 1024
BEGUN = SIZE // 4
SMALL = 300_000
PLACES = [0, 2000, SMALL]
"""Bytes before a break: from the first message of a transfer to the last."""
FOLDER = "/data/local/tmp/transfer"
REMOTE = f"{FOLDER}/model"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "model"
    path.write_bytes(random.Random(0).randbytes(SIZE))
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "here").mkdir()
    path = tmp_path / "here" / "small"
    path.write_bytes(random.Random(1).randbytes(SMALL))
    return path


@pytest.fixture
def there(proxy: FaultProxy) -> Path:
    """The folder of the device that files are sent to, empty, as the outside sees it."""
    folder = proxy.device.folder / "transfer"
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    return folder


@contextmanager
def in_the_middle(fault: Fault, proxy: FaultProxy, client: Adb, direction: Direction) -> Iterator[None]:
    """Let something happen when a part of the file has passed, once; the rest is held until it has begun."""
    before, at_fault, failed = proxy.passed(direction), [], []

    def watch() -> None:
        try:
            wait_until(lambda: proxy.passed(direction) >= before + BEGUN, "the file does not begin")
            at_fault.append(proxy.passed(direction) - before)
            fault(proxy, client)
        except Exception as error:
            failed.append(error)
        finally:
            proxy.release()

    proxy.hold_after(direction, BEGUN)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        watcher.join()
    assert failed == []
    assert at_fault[0] < SIZE
    passed = proxy.passed(direction) - before
    assert passed >= SIZE + (0 if fault is stalled else BEGUN)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_arrives_whole_whatever_happens_to_the_link(
    breaking: Link, proxy: FaultProxy, model: Path, there: Path, fault: Fault
) -> None:
    with in_the_middle(fault, proxy, breaking.adb, "up"):
        push(breaking, model, REMOTE)
    assert [path.name for path in there.iterdir()] == ["model"]
    assert (there / "model").read_bytes() == model.read_bytes()


@pytest.mark.parametrize("fault", [cut, stalled])
def test_a_file_comes_back_whole_whatever_happens_to_the_link(
    breaking: Link, proxy: FaultProxy, model: Path, there: Path, tmp_path: Path, fault: Fault
) -> None:
    (there / "model").write_bytes(model.read_bytes())
    with in_the_middle(fault, proxy, breaking.adb, "down"):
        pull(breaking, REMOTE, tmp_path / "back")
    assert [path.name for path in tmp_path.iterdir()] == ["back"]
    assert (tmp_path / "back").read_bytes() == model.read_bytes()


def test_a_server_that_is_started_again_says_nothing_in_the_answer(own_client: Adb, proxy: FaultProxy) -> None:
    for _ in range(2):
        own_client.connect(proxy.serial)
        answer = Link(own_client, proxy.serial).shell("echo out; echo err >&2")
        assert (answer.out, answer.err) == (b"out\n", b"err\n")
        assert own_client.run(["kill-server"], 10.0).code == 0
    assert own_client.devices() == {}


def gone(proxy: FaultProxy, client: Adb) -> None:
    """The cable is pulled for good."""
    proxy.go_away()


def test_of_a_device_that_stays_away_nothing_is_kept(
    breaking: Link, network: Network, proxy: FaultProxy, model: Path, there: Path, tmp_path: Path
) -> None:
    impatient = replace(breaking, patience_s=0.5)
    with pytest.raises(MAY_PASS, match=f"{proxy.serial}: "), in_the_middle(gone, proxy, breaking.adb, "up"):
        push(impatient, model, REMOTE)
    wait_until(lambda: not list(there.iterdir()), "the daemon keeps what came of the file")
    proxy.go_on()
    network.connect(proxy)
    (there / "model").write_bytes(model.read_bytes())
    with pytest.raises(MAY_PASS, match=f"{proxy.serial}: "), in_the_middle(gone, proxy, breaking.adb, "down"):
        pull(impatient, REMOTE, tmp_path / "back")
    assert list(tmp_path.iterdir()) == []


def test_a_transfer_that_takes_too_long_says_how_far_it_came(
    breaking: Link, proxy: FaultProxy, model: Path, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaltools.adb.transfer._timeout", lambda _size: 1.5)
    breaking = replace(breaking, patience_s=0.0)
    (there / "other").write_bytes(model.read_bytes())
    proxy.slow_down(SIZE // 10)
    too_late = rf"of {{}} had brought \d+ of {SIZE} bytes after 1.5 s; .*cable"
    with pytest.raises(DeviceTimeout, match=f"adb push {too_late.format(REMOTE)}"):
        push(breaking, model, REMOTE)
    with pytest.raises(DeviceTimeout, match=f"adb pull {too_late.format(f'{FOLDER}/other')}"):
        pull(breaking, f"{FOLDER}/other", tmp_path / "back")
    assert list(tmp_path.iterdir()) == []
    assert [path.name for path in there.iterdir()] == ["other"]


@pytest.fixture
def full(breaking: Link) -> Iterator[str]:
    """A folder of the device with a disk of 1 MiB."""
    folder = "/data/local/tmp/small"
    made = breaking.shell(f"mkdir -p {folder} && mount -t tmpfs -o size=1m tmpfs {folder}")
    assert made.code == 0, made
    yield folder
    assert breaking.shell(f"umount {folder}").code == 0


def test_a_full_device_is_said_at_once(breaking: Link, model: Path, full: str) -> None:
    with pytest.raises(DeviceError, match=f"{SIZE} bytes do not fit into {full}, which has 1048576 free"):
        push(replace(breaking, patience_s=3600.0), model, f"{full}/model")
    assert breaking.shell(f"ls -A {full}").out == b""


def test_a_command_that_needs_more_space_than_there_is_says_so(breaking: Link, full: str) -> None:
    detached.start(breaking, "echo begun; cat /dev/zero > zeros", f"{full}/run")
    with pytest.raises(CommandFailed, match="it printed last: begun; memory or space ran out"):
        detached.wait(breaking, f"{full}/run", 30.0)
    with pytest.raises(CommandFailed, match=f"nothing can be started in {full}/"):
        detached.start(breaking, "true", f"{full}/another")
    assert breaking.shell(f"ls -A {full}").text.split() == ["run"]


def test_what_is_left_of_a_file_is_replaced_by_the_next_that_is_sent(
    breaking: Link, there: Path, tmp_path: Path
) -> None:
    (there / "a[1].part").write_text("some of it")
    local = tmp_path / "a"
    local.write_text("all of it")
    push(breaking, local, f"{FOLDER}/a[1]")
    assert [path.name for path in there.iterdir()] == ["a[1]"]


def test_a_file_arrives_whole_wherever_the_link_breaks(
    breaking: Link, proxy: FaultProxy, small: Path, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaltools.adb.client._BETWEEN_TRIES_S", 0.1)
    back = tmp_path / "back"
    for place in PLACES:
        proxy.cut_after("up", place)
        push(breaking, small, REMOTE)
        assert (there / "model").read_bytes() == small.read_bytes(), place
        assert [path.name for path in there.iterdir()] == ["model"], place
        proxy.cut_after("down", place)
        pull(breaking, REMOTE, back)
        assert back.read_bytes() == small.read_bytes(), place
        assert not back.with_name("back.part").exists(), place
        (there / "model").unlink()


class Eventful(Adb):
    """Something happens after each transfer, before anybody has looked at what arrived."""

    def __init__(self, adb: Adb, after_transfer: Callable[[], object]) -> None:
        super().__init__(adb.path)
        self._after_transfer = after_transfer

    def run(self, arguments: Sequence[str], timeout_s: float, stop: threading.Event | None = None) -> Answer:
        done = super().run(arguments, timeout_s)
        if {"push", "pull"} & set(arguments):
            self._after_transfer()
        return done


def test_a_file_that_is_whole_and_has_no_name_yet_goes_when_the_transfer_is_stopped(
    client: Adb, proxy: FaultProxy, small: Path, there: Path
) -> None:
    stop, arrived = threading.Event(), list[str]()

    def cut_and_stop() -> None:
        arrived.extend(path.name for path in there.iterdir())
        proxy.cut()
        stop.set()

    with pytest.raises(DeviceStopped):
        push(Link(Eventful(client, cut_and_stop), proxy.serial, PATIENCE_S, stop), small, REMOTE)
    assert arrived == ["model.part"]
    assert list(there.iterdir()) == []


def test_a_full_disk_here_is_said_at_once(
    client: Adb, proxy: FaultProxy, small: Path, there: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (there / "model").write_bytes(small.read_bytes())

    def fill() -> None:
        part.write_bytes(part.read_bytes()[: SMALL // 2])
        monkeypatch.setattr(shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(9, 9, 0))

    part = tmp_path / "back.part"
    message = rf"{REMOTE} of {proxy.serial} \({SMALL} bytes\) cannot be written into {tmp_path}, which has 0 free"
    with pytest.raises(OutputError, match=message):
        pull(Link(Eventful(client, fill), proxy.serial, 3600.0), REMOTE, tmp_path / "back")
    assert not part.exists()


def test_why_a_file_cannot_be_written_is_asked_of_the_device(breaking: Link, there: Path, small: Path) -> None:
    for remote in ("/proc/none/model", FOLDER):
        with pytest.raises(DeviceError, match=f"{re.escape(remote)} cannot be written"):
            push(breaking, small, remote)
    with pytest.raises(DataError, match="absent cannot be read"):
        push(breaking, small.with_name("absent"), REMOTE)
