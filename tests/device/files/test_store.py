"""Where files lie on devices: by their content, so that each is sent once, under the name that they have here."""

from __future__ import annotations

import hashlib
import os
import posixpath
import shlex
import subprocess
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from evaltools.device.adb.adb import Adb
from evaltools.device.adb.answer import Answer
from evaltools.device.adb.errors import CommandFailed, ConnectionLost, DeviceStopped
from evaltools.device.adb.process import AdbRun
from evaltools.device.files.store import DeviceStore, clear, clear_unused, remote_path, sha256_of
from evaltools.device.programs import detached
from evaltools.errors import DataError
from tests.device.fault_proxy import FaultProxy
from tests.device.fixtures import Devices
from tests.device.real_device import Network
from tests.device.shared_folder import SHARED, SHARED_ROOT, inside

ROOT = "/data/local/tmp/evaltools"
PLACE = "/data/local/tmp/store-test"
"""The folder on devices that are really there."""


def written(folder: Path, name: str, content: bytes = b"model") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def test_a_file_lies_in_a_folder_named_after_its_content(tmp_path: Path) -> None:
    path = written(tmp_path, "mobilenet.tflite")
    digest = hashlib.sha256(b"model").hexdigest()
    assert remote_path(ROOT, path) == f"{ROOT}/store/{digest}/mobilenet.tflite"
    assert sha256_of(path) == digest


def test_another_content_of_the_same_name_and_size_lies_elsewhere(tmp_path: Path) -> None:
    """A model that was trained anew often has the size of the old one."""
    one, other = written(tmp_path / "a", "m.tflite", b"12345"), written(tmp_path / "b", "m.tflite", b"12346")
    assert remote_path(ROOT, one) != remote_path(ROOT, other)
    assert posixpath.basename(remote_path(ROOT, one)) == posixpath.basename(remote_path(ROOT, other))


def test_copies_lie_in_one_folder_and_the_same_path_is_given_again(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a", "one.txt"), written(tmp_path / "b", "other.txt")
    assert posixpath.dirname(remote_path(ROOT, one)) == posixpath.dirname(remote_path(ROOT, other))
    assert remote_path(ROOT, one) == remote_path(ROOT, written(tmp_path / "c", "one.txt"))
    assert remote_path(ROOT, one) != remote_path(ROOT, other)


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("my model.tflite", "my model.tflite"),
        ("it's $HOME;`id`.tflite", "it's $HOME;`id`.tflite"),
        ("模型.tflite", "模型.tflite"),
        ("-rf", "-rf"),
        ("two\nlines.tflite", "file.tflite"),
        ("tab\t.tflite", "file.tflite"),
        ("a.two\nlines", "file"),
        ("lines\n", "file"),
        (os.fsdecode(b"latin-\xe9.tflite"), "file.tflite"),
        (os.fsdecode(b"a.\xe9"), "file"),
        ("\x1b[31m.npy", "file.npy"),
    ],
)
def test_a_name_that_is_no_text_of_one_line_leaves_its_ending(name: str, there: str, tmp_path: Path) -> None:
    """Loaders go by the ending; names with control characters or broken bytes pass through no shell unharmed."""
    found = remote_path(ROOT, written(tmp_path, name))
    assert posixpath.basename(found) == there
    assert found.isprintable()


def test_a_large_file_is_summed_up_whole(tmp_path: Path) -> None:
    content = bytes(range(256)) * 20_000
    path = written(tmp_path, "large", content)
    assert sha256_of(path) == hashlib.sha256(content).hexdigest()
    assert sha256_of(written(tmp_path, "empty", b"")) == hashlib.sha256().hexdigest()


def test_a_file_that_cannot_be_read_is_a_data_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.tflite cannot be read: No such file or directory"):
        remote_path(ROOT, tmp_path / "none.tflite")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        remote_path(ROOT, tmp_path)


class Away(Adb):
    """A device that is away, of which each try is counted; the ``stop`` is set in the middle of the first."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__("/bin/true")
        self.stop = stop
        self.tries = 0

    def shell(self, serial: str, command: str, timeout_s: float = 20.0, stop: threading.Event | None = None) -> Answer:
        self.tries += 1
        assert stop is self.stop, "a long command is ended, too"
        self.stop.set()
        raise ConnectionLost("away", serial)


def test_a_stop_ends_the_patience_before_the_first_file_is_sent(tmp_path: Path) -> None:
    adb = Away(threading.Event())
    store = DeviceStore(adb, "R58M", ROOT, patience_s=5.0, stop=adb.stop)
    with pytest.raises(DeviceStopped):
        store.put(written(tmp_path, "m.tflite"))
    assert adb.tries == 1


def test_a_file_that_is_gone_when_it_is_sent_is_a_data_error(client: Adb, devices: Devices, tmp_path: Path) -> None:
    path = written(tmp_path, "m.tflite")
    remote = remote_path(PLACE, path)
    path.unlink()
    store = DeviceStore(client, devices[0].serial, PLACE, on_sending=lambda _file, _arrived, _size: None)
    with pytest.raises(DataError, match=r"m\.tflite cannot be read: No such file or directory"):
        store.put(path, remote)


def test_apps_can_go_through_every_folder_above_a_file(client: Adb, devices: Devices, tmp_path: Path) -> None:
    """A device's shell may have a umask of 077."""
    store = DeviceStore(client, devices[0].serial, PLACE)
    remote = store.put(written(tmp_path, "m.tflite"))
    closed = [PLACE, f"{PLACE}/store", posixpath.dirname(remote)]
    assert client.shell(devices[0].serial, f"chmod 700 {' '.join(closed)} && chmod 600 {remote}").code == 0
    store.let_all_read([remote])
    modes = client.shell(devices[0].serial, f"stat -c %a {' '.join(closed)} {remote}").text.split()
    assert modes == ["711", "711", "711", "644"]


def test_files_are_made_readable_once_a_device_is_back(
    client: Adb, devices: Devices, proxy: FaultProxy, tmp_path: Path
) -> None:
    store = DeviceStore(client, proxy.serial, PLACE, patience_s=30.0)
    remote = store.put(written(tmp_path, "m.tflite"))
    proxy.cut()
    store.let_all_read([remote])


def test_what_another_desk_has_deleted_is_sent_again(
    client: Adb, devices: Devices, shared: Path, tmp_path: Path
) -> None:
    serial = devices[0].serial
    store, model, labels = DeviceStore(client, serial, SHARED_ROOT), written(tmp_path, "m"), written(tmp_path, "l")
    store.put(model)
    assert clear(client, serial, SHARED_ROOT) > 0
    assert not shared.exists()
    for path in (labels, model):
        assert inside(shared, store.put(path)).read_bytes() == path.read_bytes()
    DeviceStore(client, serial, SHARED_ROOT).claim()
    assert clear(client, serial, SHARED_ROOT) > 0
    assert clear(client, serial, SHARED_ROOT) == 0


class CleanedMeanwhile(Adb):
    """adb of one desk while another deletes everything, before or after the first file is sent."""

    def __init__(self, network: Network, before: bool) -> None:
        super().__init__(str(network.adb))
        self.before = before
        self.is_clean = False

    def run(self, arguments: Sequence[str], timeout_s: float, stop: threading.Event | None = None) -> AdbRun:
        if "push" not in arguments or self.is_clean:
            return super().run(arguments, timeout_s, stop)
        self.is_clean = True
        if self.before:
            clear(self, arguments[1], SHARED_ROOT)
            return super().run(arguments, timeout_s, stop)
        done = super().run(arguments, timeout_s, stop)
        clear(self, arguments[1], SHARED_ROOT)
        return done


@pytest.mark.parametrize("before", [True, False])
def test_a_clean_while_a_file_is_sent_leaves_a_folder_that_can_be_used(
    network: Network, devices: Devices, shared: Path, tmp_path: Path, before: bool
) -> None:
    """Deleted between the claim and the sending, and between the sending and the comparing."""
    adb, serial = CleanedMeanwhile(network, before), devices[0].serial
    store = DeviceStore(adb, serial, SHARED_ROOT)
    for name in ("m", "l"):
        assert inside(shared, store.put(written(tmp_path, name, name.encode()))).read_text() == name
    assert adb.is_clean
    DeviceStore(adb, serial, SHARED_ROOT).claim()
    assert clear(adb, serial, SHARED_ROOT) > 0
    assert not shared.exists()


def test_desks_that_send_and_delete_at_once_do_not_lock_each_other_out(
    network: Network, devices: Devices, shared: Path, tmp_path: Path
) -> None:
    serial, raised = devices[0].serial, list[BaseException]()
    over = threading.Event()

    def clean() -> None:
        try:
            while not over.is_set():
                clear(Adb(str(network.adb)), serial, SHARED_ROOT)
        except BaseException as error:
            raised.append(error)

    desks = [threading.Thread(target=clean) for _ in range(2)]
    for desk in desks:
        desk.start()
    try:
        for _ in range(20):
            DeviceStore(Adb(str(network.adb)), serial, SHARED_ROOT).claim()
    finally:
        over.set()
        for desk in desks:
            desk.join()
    assert raised == []


class Disturbed(Adb):
    """A device with the shell of this machine, in which another desk does something before some calls of a command."""

    def __init__(self, folder: Path, command: str, calls: Sequence[int], meanwhile: str) -> None:
        super().__init__("/bin/true")
        self.root = str(folder / SHARED)
        self._log = folder / "calls"
        self._before = f"""\
root={shlex.quote(self.root)}
{command}() {{
echo >> {shlex.quote(str(self._log))}
case $(grep -c ^ {shlex.quote(str(self._log))}) in {"|".join(map(str, calls))}) {meanwhile} ;; esac
command {command} "$@"
}}
"""

    @property
    def count(self) -> int:
        """How often the command was called."""
        return len(self._log.read_text())

    def shell(self, serial: str, command: str, timeout_s: float = 20.0, stop: threading.Event | None = None) -> Answer:
        done = subprocess.run(["sh", "-c", self._before + command], stdin=subprocess.DEVNULL, capture_output=True)
        return Answer(done.returncode, done.stdout, done.stderr)


MADE_ANEW = "rm -rf $root; command mkdir $root; : > $root/.evaltools"
"""By a second and a third desk."""


@pytest.mark.parametrize(
    ("command", "calls", "meanwhile"),
    [
        ("cd", [1], f"{MADE_ANEW}; return 1"),
        ("cd", [2], f"{MADE_ANEW}; return 1"),
        ("mkdir", [1], MADE_ANEW),
        ("mv", [1, 2, 3], "rm -rf *.cleared; return 1"),
        ("find", [1], "return 1"),
    ],
)
def test_what_another_desk_does_between_two_steps_keeps_nobody_from_deleting(
    tmp_path: Path, command: str, calls: Sequence[int], meanwhile: str
) -> None:
    """A tool fails where the folder, or a name in it, is gone in that moment."""
    adb = Disturbed(tmp_path, command, calls, meanwhile)
    Path(adb.root, "store").mkdir(parents=True)
    clear(adb, "R58M", adb.root)
    assert adb.count > calls[-1]
    assert not Path(adb.root).exists()


def test_a_name_that_is_gone_when_the_folder_is_looked_through_is_no_file_of_others(tmp_path: Path) -> None:
    adb = Disturbed(tmp_path, "find", [1], "return 1")
    Path(adb.root, "store").mkdir(parents=True)
    DeviceStore(adb, "R58M", adb.root).claim()
    assert adb.count == 2
    assert Path(adb.root, ".evaltools").exists()


def test_a_folder_with_nothing_but_evaltools_own_files_is_its_own_without_the_marker(
    client: Adb, devices: Devices, shared: Path, tmp_path: Path
) -> None:
    serial, model = devices[0].serial, written(tmp_path, "m")
    trash = shared / "evaltools-0123456789ab.cleared"

    def lose_the_marker() -> None:
        DeviceStore(client, serial, SHARED_ROOT).put(model)
        for folder in ("runs/0-of-20-0123abcd0123abcd", "programs/0123456789abcdef", f"{trash.name}/store/x"):
            (shared / folder).mkdir(parents=True)
        (shared / ".evaltools").unlink()
        assert list(shared.glob("evaltools-*.lease"))

    lose_the_marker()
    DeviceStore(client, serial, SHARED_ROOT).put(model)
    assert (shared / ".evaltools").exists()
    assert clear(client, serial, SHARED_ROOT) > 0
    lose_the_marker()
    assert clear(client, serial, SHARED_ROOT) > 0
    assert not shared.exists()


@pytest.mark.parametrize("other", ["mine.txt", "store/mine", "runs/a/b", "programs/.hidden", "two\nlines", "-n"])
def test_a_folder_with_a_file_of_others_is_refused_without_the_marker(
    client: Adb, devices: Devices, shared: Path, other: str
) -> None:
    path = shared / other
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(CommandFailed, match="holds files that are not evaltools'"):
        DeviceStore(client, devices[0].serial, SHARED_ROOT).claim()
    for deleting in (clear, partial(clear_unused, lease="evaltools-0123abcd.lease")):
        with pytest.raises(CommandFailed, match="no folder that evaltools has made"):
            deleting(client, devices[0].serial, SHARED_ROOT)
    assert path.read_text() == "mine"


def test_files_of_others_stay_and_the_folder_can_be_used_again(
    client: Adb, devices: Devices, shared: Path, tmp_path: Path
) -> None:
    serial, store = devices[0].serial, DeviceStore(client, devices[0].serial, SHARED_ROOT)
    store.put(written(tmp_path, "m"))
    (shared / "mine.txt").write_text("mine")
    assert clear(client, serial, SHARED_ROOT) > 0
    assert sorted(path.name for path in shared.iterdir()) == [".evaltools", "mine.txt"]
    store.put(written(tmp_path, "m"))


def test_what_others_keep_in_evaltools_own_folders_stays(
    client: Adb, devices: Devices, shared: Path, tmp_path: Path
) -> None:
    """However old it is; what has evaltools' own names goes from beside it."""
    serial, store = devices[0].serial, DeviceStore(client, devices[0].serial, SHARED_ROOT)
    store.put(written(tmp_path, "m"))
    own = [shared / "runs" / "0-of-20-0123abcd0123abcd", shared / "programs" / "0123456789abcdef"]
    names = ["runs/my_experiment/weights", "runs/two\nlines", "runs/-n", "store/my notes", "programs/tool-of-mine"]
    others = sorted(shared / name for name in names)
    for path in (*others, *(folder / "file" for folder in own)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    for old in (*(shared / "runs").iterdir(), own[0]):
        os.utime(old, (0, 0))
    store.claim()
    assert [folder.exists() for folder in own] == [False, True]
    assert clear(client, serial, SHARED_ROOT) > 0
    assert sorted(path for path in shared.rglob("*") if path.is_file()) == [shared / ".evaltools", *others]
    assert sorted(path.name for path in shared.rglob("*") if path.is_dir()) == [
        "my_experiment",
        "programs",
        "runs",
        "store",
    ]


def test_an_empty_folder_that_somebody_else_made_stays(client: Adb, devices: Devices, shared: Path) -> None:
    shared.mkdir()
    assert clear(client, devices[0].serial, SHARED_ROOT) == 0
    assert shared.exists()


def test_a_run_that_goes_on_is_ended_before_everything_is_deleted(client: Adb, devices: Devices, shared: Path) -> None:
    serial = devices[0].serial
    DeviceStore(client, serial, SHARED_ROOT).claim()
    detached.start(client, serial, "sleep 300", f"{SHARED_ROOT}/runs", "0-of-1-0123abcd0123abcd")
    leader = (shared / "runs" / "0-of-1-0123abcd0123abcd" / "pid").read_text().split()[0]
    assert client.shell(serial, f"kill -0 {leader}").code == 0
    assert clear(client, serial, SHARED_ROOT) > 0
    assert client.shell(serial, f"kill -0 {leader}").code != 0
    assert not shared.exists()
