"""The benchmark app on a device that is the real daemon, with Android's programs beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from evaltools.device.adb.adb import Adb
from evaltools.device.adb.errors import CommandFailed, ConnectionLost, DeviceStopped, NoSpace, ProgramMissing
from evaltools.device.adb.process import ShellAnswer
from evaltools.device.files.store import DeviceStore
from evaltools.device.programs.app import AppRun, BenchmarkApp, install_app, run_app, start_command
from evaltools.errors import UsageError
from evaltools.native.logs.benchmark import parse_benchmark_log
from evaltools.native.logs.delegates import delegate_lines
from tests import tiny_models
from tests.device.android_programs import OTHER_APP, add_android, kept
from tests.device.fault_proxy import FaultProxy
from tests.device.fixtures import Devices
from tests.device.real_device import Network, RealDevice, wait_until

APP = BenchmarkApp()
STORE = "/data/local/tmp/evaltools"
LONG_S = 120.0
POLL_S = 0.1
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
    add_android(device, APP.component)
    (device.folder / "m.tflite").write_bytes(tiny_models.add_chain())
    return device


def run(
    client: Adb,
    phone: RealDevice | FaultProxy,
    app: BenchmarkApp = APP,
    timeout_s: float = LONG_S,
    traces: bool = False,
) -> AppRun:
    return run_app(client, phone.serial, FLAGS, timeout_s, app, traces, POLL_S)


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
    assert texts(found.log)[0] == f"Running TensorFlow Lite benchmark with args: {' '.join(FLAGS)}"
    assert len({line.split()[2] for line in found.log.splitlines()}) == 1
    assert str(OTHER_APP) in kept(phone, "log").read_text()
    log = parse_benchmark_log(found.log)
    assert log.is_complete
    assert (log.graph, log.parameters["Min num runs"]) == ("/data/local/tmp/m.tflite", "3")
    assert log.regular is not None
    assert log.regular.count >= 3
    assert log.memory is not None
    assert delegate_lines(found.log)[0] == "XNNPACK delegate created."


def test_the_log_of_an_earlier_run_is_not_read(client: Adb, phone: RealDevice) -> None:
    kept(phone, "mode").write_text("exception")
    assert run(client, phone).failure.startswith("it crashed")
    kept(phone, "mode").write_text("gives up")
    assert texts(run(client, phone).log)[1:] == ["STARTING!", "Failed to load model /no/such/file"]


@pytest.mark.parametrize(
    ("mode", "failure"),
    [
        ("exception", "it crashed: java.lang.UnsatisfiedLinkError: no tensorflowlite_benchmark"),
        ("signal", "it crashed: Fatal signal 6 (SIGABRT), code -1 (SI_QUEUE) in tid "),
        ("killed", "it ended before its time: Process org.tensorflow.lite.benchmark (pid "),
    ],
)
def test_an_app_that_ends_early_has_failed_and_keeps_its_log(
    client: Adb, phone: RealDevice, mode: str, failure: str
) -> None:
    kept(phone, "mode").write_text(mode)
    found = run(client, phone)
    assert found.failure.startswith(failure)
    assert found.was_killed == (mode == "killed")
    assert ('after "Failed to read the input_layer_value_file:/x"' in found.failure) == (mode == "signal")
    assert found.log


def test_an_app_that_does_not_end_is_ended(client: Adb, phone: RealDevice) -> None:
    kept(phone, "mode").write_text("hang")
    found = run(client, phone, timeout_s=0.5)
    assert found.failure.startswith("it did not end within 0.5 s and was ended; it ")
    assert kept(phone, "app.pid").read_text() == ""


def test_a_stop_ends_the_app(client: Adb, phone: RealDevice) -> None:
    kept(phone, "mode").write_text("hang")
    with stop_when(lambda: wait_until_it_hangs(phone)) as stop, pytest.raises(DeviceStopped):
        run_app(client, phone.serial, FLAGS, LONG_S, poll_s=POLL_S, stop=stop)
    assert kept(phone, "app.pid").read_text() == ""


def test_an_app_that_is_not_installed(client: Adb, phone: RealDevice) -> None:
    with pytest.raises(ProgramMissing, match=r"the app org\.other is not installed; install it with adb install"):
        run(client, phone, BenchmarkApp("org.other"))


def test_an_activity_that_the_app_does_not_have(client: Adb, phone: RealDevice) -> None:
    expected = (
        r"org\.tensorflow\.lite\.benchmark is there, but org\.tensorflow\.lite\.benchmark/\.Other cannot be started: "
        r"Error: Activity class \{.*\} does not exist\.; look at the name of its activity"
    )
    with pytest.raises(ProgramMissing, match=expected):
        run(client, phone, BenchmarkApp(activity=".Other"))


def test_a_renamed_app_is_run(client: Adb, phone: RealDevice) -> None:
    add_android(phone, "org.fork/.Other")
    kept(phone, "mode").write_text("gives up")
    assert texts(run(client, phone, BenchmarkApp("org.fork", ".Other")).log)[1] == "STARTING!"
    assert "Unsatisfied" in run(client, phone, BenchmarkApp("org.fork", ".Other", extra="flags")).failure


def test_a_log_that_forgot_the_run_is_no_result(client: Adb, phone: RealDevice) -> None:
    kept(phone, "mode").write_text("hang")
    kept(phone, "tail").write_text("1")
    with pytest.raises(CommandFailed, match=r"its log has forgotten lines of this run.*adb logcat -G 16M"):
        run(client, phone)
    assert kept(phone, "app.pid").read_text() == ""


@pytest.mark.parametrize(("mode", "before"), [("gives up", ""), ("exception", "2")])
def test_tracing_is_on_while_it_runs_and_as_before_afterwards(
    client: Adb, phone: RealDevice, mode: str, before: str
) -> None:
    kept(phone, "mode").write_text(mode)
    kept(phone, "property.debug.tflite.trace").write_text(f"{before}\n")
    kept(phone, "properties_set").unlink(missing_ok=True)
    run(client, phone, traces=True)
    said = kept(phone, "properties_set").read_text().splitlines()
    assert said == ["debug.tflite.trace=1", f"debug.tflite.trace={before}"]
    assert kept(phone, "property.debug.tflite.trace").read_text() == f"{before}\n"


def test_a_link_that_breaks_meanwhile_does_not_matter(client: Adb, phone: RealDevice, proxy: FaultProxy) -> None:
    kept(phone, "mode").write_text("hang")
    found: list[AppRun] = []
    thread = threading.Thread(target=lambda: found.append(run(client, proxy)))
    thread.start()
    wait_until_it_hangs(phone)
    wait_until(lambda: "-1.\n" in kept(phone, "log").read_text(), "the log was not looked at: the start is not over")
    proxy.cut()
    process = kept(phone, "app.pid").read_text()
    client.shell(phone.serial, f"LOG_PID={process} log -p E -t tflite Benchmarking failed.")
    thread.join()
    assert texts(found[0].log)[-1] == "Benchmarking failed."


def test_a_device_without_a_log_has_no_apps(client: Adb, phone: RealDevice) -> None:
    phone.add_program("log", "#!/bin/sh\nexit 127\n")
    with pytest.raises(CommandFailed, match=r"the benchmark app runs on Android alone"):
        run(client, phone)


@pytest.mark.parametrize("argument", ["--graph=a b.tflite", "--graph=a\tb", "--graph=a\nb", ""])
def test_flags_with_blanks_are_refused(argument: str) -> None:
    with pytest.raises(UsageError, match=r"cannot be given to the benchmark app, which splits its flags at blanks"):
        start_command(APP, [argument])


def test_the_app_gets_flags_as_they_are(client: Adb, phone: RealDevice) -> None:
    graph = "a'b\"c$HOME`x`;&|<>(){}*?~#!é.tflite"
    kept(phone, "mode").write_text("gives up")
    flags = [f"--graph=/data/{graph}", "--use_gpu=true"]
    found = run_app(client, phone.serial, flags, LONG_S, poll_s=POLL_S)
    assert texts(found.log)[0] == f"Running TensorFlow Lite benchmark with args: --graph=/data/{graph} --use_gpu=true"


def apk(folder: Path, answer: str) -> Path:
    file = folder / "benchmark.apk"
    file.write_text(f"{answer}\n{'x' * 10_000}")
    return file


def test_an_apk_is_installed(client: Adb, phone: RealDevice, tmp_path: Path) -> None:
    install_app(DeviceStore(client, phone.serial, STORE), apk(tmp_path, "Success"))


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (
            "Failure [INSTALL_FAILED_UPDATE_INCOMPATIBLE: signatures do not match]",
            ProgramMissing,
            r"benchmark\.apk cannot be installed: INSTALL_FAILED_UPDATE_INCOMPATIBLE; uninstall the app that is there",
        ),
        ("Failure [INSTALL_FAILED_INSUFFICIENT_STORAGE]", NoSpace, r"free space on the device"),
        ("Failure [INSTALL_FAILED_SOMETHING_NEW]", ProgramMissing, r"INSTALL_FAILED_SOMETHING_NEW; look for this word"),
        ("no such service", ProgramMissing, r"benchmark\.apk cannot be installed.*no such service; try adb install"),
    ],
)
def test_an_apk_that_is_refused(
    client: Adb, phone: RealDevice, tmp_path: Path, answer: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        install_app(DeviceStore(client, phone.serial, STORE), apk(tmp_path, answer))


class Leaving(Adb):
    """A device that is lost when it is to be put in order."""

    def shell(
        self, serial: str, command: str, timeout_s: float = 20.0, stop: threading.Event | None = None
    ) -> ShellAnswer:
        if command.startswith("am force-stop"):
            raise ConnectionLost(f"{serial}: it left", serial)
        return super().shell(serial, command, timeout_s, stop)


@pytest.fixture
def leaving(network: Network, client: Adb, phone: RealDevice) -> Iterator[Adb]:
    """What the test could not end is ended after it, so that it logs nothing in the next one."""
    yield Leaving(str(network.adb))
    client.shell(phone.serial, f"am force-stop {APP.package}")


def test_a_run_that_was_done_before_the_device_left_counts(leaving: Adb, phone: RealDevice) -> None:
    kept(phone, "mode").write_text("gives up")
    kept(phone, "property.debug.tflite.trace").write_text("\n")
    found = run_app(leaving, phone.serial, FLAGS, LONG_S, traces=True, poll_s=POLL_S, patience_s=0.0)
    assert (texts(found.log)[-1], found.failure) == ("Failed to load model /no/such/file", "")
    assert found.left == (
        "Afterwards the app org.tensorflow.lite.benchmark could not be ended, and the property debug.tflite.trace "
        f"could not be set back to nothing: {phone.serial}: it left"
    )
