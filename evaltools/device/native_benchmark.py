"""A benchmark on devices by TensorFlow's binary or app: their logs made rows of ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.request import BenchmarkRequest
from evaltools.device.app import install_app, run_app
from evaltools.device.device import Device
from evaltools.device.flags import DeviceFlags
from evaltools.device.native_outcome import native_runtime
from evaltools.device.native_program import ProgramRun, configuration_flags, require_not_killed, run_binary, signal_of
from evaltools.device.request import SentFiles
from evaltools.device.store import stored_folder
from evaltools.native.logs.benchmark import measured_of_logs
from evaltools.native.logs.log_lines import plain_lines
from evaltools.request import Options
from evaltools.result.device import DeviceWork
from evaltools.result.facts import RuntimeUsed
from evaltools.result.rounds import Measured, Records
from evaltools.text import printable


class BenchmarkPlace(Struct, frozen=True):
    """What a benchmark gave at one place, a device or the host.

    ``printed`` is what its program printed.
    """

    records: Records
    printed: str


class NativeBenchmark:
    """A benchmark by a binary or by the app, as the flags say.

    Every device starts the program for each candidate in turns: all in order, then in reverse order, as often as there
    are rounds.
    """

    def __init__(self, options: Options, request: BenchmarkRequest, flags: DeviceFlags, console: Console) -> None:
        self._request = request
        self._flags = flags
        self._console = console
        self._binary = flags.native_binary if flags.program == "native" else None
        app = RuntimeUsed("app", flags.app_package, "", "default")
        self._runtime = app if self._binary is None else native_runtime(self._binary)
        self._sent = SentFiles(flags.root)
        count = len(request.candidates)
        self._order = [which for number in range(request.options.rounds) for which in interleaved(count, number)]
        arguments = _arguments(options, request, self._sent, _library_folders(flags))
        self._steps = tuple(arguments[which] for which in self._order)

    def run(self, device: Device) -> tuple[DeviceWork, BenchmarkPlace]:
        """All starts on a device."""

        def prepare() -> str:
            device.put_all(self._sent.files)
            return ""

        if self._binary is None:
            done, runs = self._run_app(device)
        else:
            done, runs = run_binary(device, self._binary, self._steps, prepare)
        lines = tuple(dict.fromkeys(line for run in runs for line in run.delegate_lines))
        measured = [self._measured(which, runs) for which in range(len(self._request.candidates))]
        records = Records(measured, list(self._request.warnings))
        # Older releases print everything to stderr.
        printed = "\n".join(run.out if run.out.strip() or run.failure else run.err for run in runs)
        return replace(done, delegate_lines=lines), BenchmarkPlace(records, printed)

    def _run_app(self, device: Device) -> tuple[DeviceWork, list[ProgramRun]]:
        flags = self._flags
        if flags.app_apk is not None:
            install_app(device, flags.app_apk)
        done, runs = run_app(
            device,
            self._sent.files,
            f"{flags.app_package}/{flags.app_activity}",
            self._steps,
            flags.silence_s / (len(self._steps) + 1),
            lambda left: self._console.print(f"evaltools: {printable(left)}"),
        )
        require_not_killed(device, runs)
        return done, runs

    def _measured(self, number: int, runs: Sequence[ProgramRun]) -> Measured:
        """What was measured of a candidate, from all starts."""
        own = [run for which, run in zip(self._order, runs, strict=True) if which == number]
        candidate = self._request.candidates[number]
        return measured_of_logs(
            candidate.model_number,
            candidate.configuration,
            candidate.model.node_count,
            self._runtime,
            [f"{run.printed}\n{beside(run.printed, run.logcat)}" for run in own],
            [run.failure or _death(run) for run in own],
            self._request.options.allow_fallback,
        )


def _death(run: ProgramRun) -> str:
    """By which signal a program died; empty where it did not."""
    signal = signal_of(run.code)
    return f"the native tool failed with the signal {signal}{f': {run.crash}' if run.crash else ''}" if signal else ""


def interleaved(count: int, number: int) -> Sequence[int]:
    """The order of candidates in a round: forwards and backwards in turns, so that warming up and drift cancel out.

    >>> interleaved(3, 0), interleaved(3, 1)
    (range(0, 3), range(2, -1, -1))
    """
    return range(count) if number % 2 == 0 else range(count - 1, -1, -1)


def _arguments(
    options: Options, request: BenchmarkRequest, named: SentFiles, libraries: Mapping[str, str]
) -> list[tuple[str, ...]]:
    """The program's arguments for each candidate, with the paths that files have on devices.

    ``libraries`` maps the folder of ``--device_libraries``, in which an NPU's dispatch library is looked for.
    """
    native = [each for each in benchmark_flags.PARAMETERS if each.log and each.is_sent and not each.repeatable]
    stated = [
        each.format(each.rewrite(options.stated[each.name], partial(named.take, each)))  # type: ignore[arg-type]
        for each in native
        if each.name in options
    ]
    arguments = []
    for candidate in request.candidates:
        configuration = candidate.configuration
        device_paths = {str(path): named.take_file(path) for path in configuration.files if path.is_file()}
        threads, *delegates = configuration_flags(configuration, {**device_paths, **libraries}, with_npu=True)
        if configuration.delegates.value("use_npu") and not configuration.delegates.value("dispatch_library_path"):
            delegates += [f"--dispatch_library_path={folder}" for folder in libraries.values()]
        threads = threads.replace("--num_interpreter_threads", "--num_threads")
        graph = f"--graph={named.take_file(candidate.model.path)}"
        arguments.append((graph, threads, *stated, *delegates))
    return arguments


def _library_folders(flags: DeviceFlags) -> dict[str, str]:
    """The folder of ``--device_libraries`` with its path on devices; empty without one."""
    folder = flags.libraries
    return {} if folder is None else {str(folder): stored_folder(flags.root, folder)[0]}


def beside(printed: str, logcat: str) -> str:
    r"""The lines of Android's log that the program did not print too. Native tools write most lines to both.

    >>> start = "11-22 13:10:02.123  1234  1250 "
    >>> beside("INFO: count=50 curr=3\n", f"{start}I tflite  : count=50 curr=3\n{start}E cl      : no such kernel")
    '11-22 13:10:02.123  1234  1250 E cl      : no such kernel'
    """
    known = {line.text for line in plain_lines(printed)}
    return "\n".join(line for line in logcat.splitlines() if not {each.text for each in plain_lines(line)} <= known)
