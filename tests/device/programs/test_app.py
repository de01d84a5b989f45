"""The benchmark app on a device that is the real daemon, with Android's programs beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from evaltools.adb.client import Adb, Answer, ConnectionLost, DeviceError, DeviceStopped, Link
from evaltools.device.app import install_app, run_app, start_command
from evaltools.device.native_program import KILLED, ProgramRun
from evaltools.errors import UsageError
from evaltools.native.logs.benchmark import parse_benchmark_log
from evaltools.native.logs.delegates import delegate_lines
from evaltools.result.device import LostAttempt
from tests import tiny_models
from tests.device.android_programs import OTHER_APP, add_android, kept
from tests.device.fault_proxy import FaultProxy
from tests.device.fixtures import Devices, device_at
from tests.device.real_device import Network, RealDevice, wait_until

PACKAGE = "org.tensorflow.lite.benchmark"
APP = f"{PACKAGE}/.BenchmarkModelActivity"
STORE = "/data/local/tmp/app-test"
LONG_S = 120.0
FLAGS = (
    "--graph=/data/local/tmp/m.tflite",
    "--num_runs=3",
    "--min_secs=0",
    "--warmup_min_secs=0",
    "--use_xnnpack=true",
)


@pytest.fixture
def phone(devices: Devices) -> RealDevice:
    """The first device with Android's programs, the benchmark app and a model."""
    device = devices[0]
    add_android(device, APP)
    (device.folder / "m.tflite").write_bytes(tiny_models.add_chain())
    return device


def starts(
    client: Adb,
    phone: RealDevice | FaultProxy,
    steps: Sequence[Sequence[str]] = (FLAGS,),
    app: str = APP,
    timeout_s: float = LONG_S,
    stop: threading.Event | None = None,
    sent: Path = Path(__file__),
) -> list[ProgramRun]:
    """Run the app with each of these flags; what could not be cleaned up is printed."""
    device = device_at(client, phone.serial, root=STORE, stop=stop, report=print)
    device.lost = [LostAttempt("command", "it was killed there (SIGKILL)", 1.0)]
    files = {sent: f"{STORE}/store/{'0' * 64}/{sent.name}"}
    with device.folder:
        return list(run_app(device, files, app, steps, timeout_s)[1])


def run(client: Adb, phone: RealDevice | FaultProxy, app: str = APP) -> ProgramRun:
    (found,) = starts(client, phone, app=app)
    return found


def texts(log: str) -> list[str]:
    return [line.partition(": ")[2] for line in log.splitlines()]


@contextmanager
def stop_when(waited_for: Callable[[], None]) -> Iterator[threading.Event]:
    """A stop that is set, from another thread, when this returns."""
    stop = threading.Event()

    def act() -> None:
        try:
            waited_for()
        finally:
            stop.set()

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(act)
        yield stop
        waiting.result()


def wait_until_it_hangs(phone: RealDevice) -> None:
    """Its last line is there: the second of this text, as the other app has logged the first."""
    wait_until(lambda: kept(phone, "log").read_text().count("STARTING!") == 2, "the app did not start")


def test_the_log_of_a_run_is_that_of_its_process_alone(client: Adb, phone: RealDevice) -> None:
    found = run(client, phone)
    assert found.failure == ""
    assert texts(found.out)[0] == f"Running TensorFlow Lite benchmark with args: {' '.join(FLAGS)}"
    assert len({line.split()[2] for line in found.out.splitlines()}) == 1
    assert str(OTHER_APP) in kept(phone, "log").read_text()
    log = parse_benchmark_log(found.out)
    assert (log.parameters["Graph"], log.parameters["Min num runs"]) == ("/data/local/tmp/m.tflite", "3")
    assert log.round is not None
    assert log.round.regular.count >= 3
    assert log.round.memory is not None
    assert delegate_lines(found.out)[0] == "XNNPACK delegate created."


def test_each_start_of_an_app_of_any_name_has_its_own_log_and_gets_its_flags_as_they_are(
    client: Adb, phone: RealDevice, tmp_path: Path
) -> None:
    """And may read what was sent: a device's shell may have a umask of 077."""
    add_android(phone, "org.fork/.Other")
    kept(phone, "mode").write_text("gives up")
    (tmp_path / "m").write_text("a model")
    above = [STORE, f"{STORE}/store", f"{STORE}/store/{'0' * 64}"]
    link = Link(client, phone.serial)
    assert link.shell(f"mkdir -p {above[-1]} && chmod 700 {' '.join(above)}").code == 0
    graphs = ("/data/one", "/data/a'b\"c$HOME`x`;&|<>(){}*?~#!é.tflite")
    steps = [[f"--graph={graph}", "--use_gpu=true"] for graph in graphs]
    for graph, own in zip(graphs, starts(client, phone, steps, "org.fork/.Other", sent=tmp_path / "m"), strict=True):
        assert texts(own.out) == [
            f"Running TensorFlow Lite benchmark with args: --graph={graph} --use_gpu=true",
            "STARTING!",
            "Failed to load model /no/such/file",
        ]
    modes = link.shell(f"stat -c %a {' '.join(above)} {above[-1]}/m").text.split()
    assert modes[:3] == ["711"] * 3
    assert modes[3][-1] in "4567"


def test_an_app_that_ends_early_has_failed_and_keeps_its_log(client: Adb, phone: RealDevice) -> None:
    """Other ends: test_app_log.py."""
    kept(phone, "mode").write_text("signal")
    found = run(client, phone)
    assert found.failure.startswith("it crashed: Fatal signal 6 (SIGABRT), code -1 (SI_QUEUE) in tid ")
    assert 'after "Failed to read the input_layer_value_file:/x"' in found.failure
    assert found.code != KILLED
    assert found.out


def test_an_app_that_does_not_end_is_ended(client: Adb, phone: RealDevice) -> None:
    kept(phone, "mode").write_text("hang")
    (found,) = starts(client, phone, timeout_s=1)
    assert found.failure.startswith("it did not end within 1 s and was ended; it ")
    assert found.code != KILLED
    assert kept(phone, "app.pid").read_text() == ""


def test_a_stop_ends_the_app(client: Adb, phone: RealDevice) -> None:
    kept(phone, "mode").write_text("hang")
    with stop_when(lambda: wait_until_it_hangs(phone)) as stop, pytest.raises(DeviceStopped):
        starts(client, phone, stop=stop)
    assert kept(phone, "app.pid").read_text() == ""


def test_an_app_that_is_not_installed(client: Adb, phone: RealDevice) -> None:
    with pytest.raises(DeviceError, match=r"the app org\.other is not installed: give --app_apk"):
        run(client, phone, "org.other/.Main")


def test_an_activity_that_the_app_does_not_have(client: Adb, phone: RealDevice) -> None:
    expected = (
        r"org\.tensorflow\.lite\.benchmark is there, but org\.tensorflow\.lite\.benchmark/\.Other cannot be started: "
        r"Error: Activity class \{.*\} does not exist\.; look at the name of its activity"
    )
    with pytest.raises(DeviceError, match=expected):
        run(client, phone, f"{PACKAGE}/.Other")


def test_a_link_that_breaks_meanwhile_does_not_matter(client: Adb, phone: RealDevice, proxy: FaultProxy) -> None:
    kept(phone, "mode").write_text("hang")
    found: list[ProgramRun] = []
    thread = threading.Thread(target=lambda: found.append(run(client, proxy)))
    thread.start()
    wait_until_it_hangs(phone)
    proxy.cut()
    process = kept(phone, "app.pid").read_text()
    Link(client, phone.serial).shell(f"LOG_PID={process} log -p E -t tflite Benchmarking failed.")
    thread.join()
    assert texts(found[0].out)[-1] == "Benchmarking failed."


def test_a_device_without_a_log_has_no_apps(client: Adb, phone: RealDevice) -> None:
    phone.add_program("log", "#!/bin/sh\nexit 127\n")
    with pytest.raises(DeviceError, match="the benchmark app runs on Android only"):
        run(client, phone)


@pytest.mark.parametrize("argument", ["--graph=a b.tflite", "--graph=a\tb", "--graph=a\nb", ""])
def test_flags_with_blanks_are_refused(argument: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be given to the benchmark app, which splits its flags at blanks"):
        start_command(APP, [argument])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("Success", ""),
        (
            "Failure [INSTALL_FAILED_UPDATE_INCOMPATIBLE: signatures do not match]",
            r"benchmark\.apk cannot be installed; .*UPDATE_INCOMPATIBLE: signatures do not match.*\(adb uninstall\)",
        ),
        ("no such service", r"benchmark\.apk cannot be installed; it printed last: no such service; it must be"),
    ],
)
def test_an_apk_is_installed_or_it_is_said_why_not(
    client: Adb, phone: RealDevice, tmp_path: Path, answer: str, message: str
) -> None:
    file = tmp_path / "benchmark.apk"
    file.write_text(f"{answer}\n{'x' * 10_000}")
    device = device_at(client, phone.serial, root=STORE)
    with device.folder, pytest.raises(DeviceError, match=message) if message else nullcontext():
        install_app(device, file)


class Leaving(Adb):
    """A device that is lost when it is to be put in order."""

    def run(self, arguments: Sequence[str], timeout_s: float, stop: threading.Event | None = None) -> Answer:
        if arguments[-1].startswith("( eval 'am force-stop"):
            raise ConnectionLost(f"{arguments[1]}: it left")
        return super().run(arguments, timeout_s, stop)


@pytest.fixture
def leaving(network: Network, client: Adb, phone: RealDevice) -> Iterator[Adb]:
    """What the test could not end is ended after it, so that it logs nothing in the next one."""
    yield Leaving(str(network.adb))
    Link(client, phone.serial).shell(f"am force-stop {PACKAGE}")


def test_a_run_that_was_done_before_the_device_left_counts(
    leaving: Adb, phone: RealDevice, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaltools.device.app._PATIENCE_AT_END_S", 0.5)
    kept(phone, "mode").write_text("gives up")
    (found,) = starts(leaving, phone)
    assert (texts(found.out)[-1], found.failure) == ("Failed to load model /no/such/file", "")
    assert capsys.readouterr().out == (
        f"evaltools: afterwards the app org.tensorflow.lite.benchmark could not be ended: {phone.serial}: it left\n"
    )
