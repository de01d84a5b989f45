"""What a benchmark prints and writes as the native tool does, and the progress that a person sees instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from rich.console import Console
from rich.live import Live
from rich.text import Text

from evaltools.benchmark import flags as benchmark_flags
from evaltools.benchmark.fresh_process import Watcher
from evaltools.benchmark.request import BenchmarkOptions, BenchmarkRequest, Candidate
from evaltools.benchmark.run import Benchmarked
from evaltools.cli.shared.streams import say, stdout_is_terminal
from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration
from evaltools.errors import OutputError, UsageError
from evaltools.metrics.op_profile import Opening, OpProfile
from evaltools.native.lines.benchmark import (
    delegation_lines,
    initialized_line,
    loaded_line,
    memory_lines,
    model_size_line,
    native_benchmark_proto,
    performance_options_line,
    running_line,
    saved_lines,
    signature_line,
    starting_lines,
    stat_lines,
    summary_lines,
    timings_line,
)
from evaltools.native.lines.profile import CSV, opening_steps, profile_file, profile_report
from evaltools.native.lines.stat_line import stat_figures
from evaltools.parameter import Parameter, Value, split_flag
from evaltools.report.files.evaluation import file_per_configuration
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.words.facts import describe_configuration
from evaltools.request import Options, Request, require_apart
from evaltools.result.facts import Model
from evaltools.result.result import Row, model_names
from evaltools.result.rounds import Measured, Phase, Round
from evaltools.runtime.session import Array
from evaltools.signals import ignore_interrupts
from evaltools.text import printable

_PROTOS: Final = "result_file_path"
_OUTPUTS: Final = "output_filepath"
_PROFILES: Final = "op_profiling_output_file"
_CSV_PROFILES: Final = "profiling_output_csv_file"


class NativeLines(Watcher):
    """Prints the lines of a benchmark while it goes on.

    It prints the native lines of a single configuration; those of several are printed with ``--compat=native`` only.
    All lines are kept for :attr:`content`. ``is_written`` becomes false when stdout cannot be written.
    """

    def __init__(self, flags: Options, request: BenchmarkRequest, console: Console) -> None:
        self.is_written = True
        self._flags = flags
        self._request = request
        self._options: Final[BenchmarkOptions] = request.options
        self._console = console
        self._candidate: Candidate = request.candidates[0]
        self._several: Final = len(request.candidates) > 1
        self._done = self._round = 0
        self._is_open = False
        self._is_quiet: Final = flags.is_on("quiet")
        self._to_stdout: Final = self._wants_stdout()
        self._kept: list[str] = []
        self._live: Live | None = None

    def _wants_stdout(self) -> bool:
        if "native_lines" in self._flags:
            return False
        if self._flags.text("compat") == "native":
            return True
        return not self._several and not (self._is_quiet and stdout_is_terminal())

    @property
    def content(self) -> bytes:
        """All lines until now, as a file."""
        return "".join(f"{text}\n" for text in self._kept).encode("utf-8", "backslashreplace")

    def start(self) -> None:
        """Print what comes before the first measurement."""
        if self._request.uses_list:
            self.print([performance_options_line(self._flags.text("perf_options_list"))])
        self.print([f"WARN: {text}" for text in self._request.warnings])

    def begins(self, candidate: Candidate, round_number: int) -> None:
        """Print the flags of a round, as the native tool reads them."""
        self._candidate = candidate
        self._is_open = False
        self._round = round_number
        self._done += 1
        if self._several or self._options.rounds > 1:
            total = len(self._request.candidates) * self._options.rounds
            name = f"{candidate.model.path.name}, {candidate.configuration.name}"
            self._show_step(f"{self._done} of up to {total}: {name}, round {round_number + 1}")
        given = _logged(self._flags, candidate)
        self.print(starting_lines(benchmark_flags.LOGGED, given, self._flags.is_on("verbose")))

    def opened(self, row: Row, opening: Opening) -> None:
        """Print the model and its delegates."""
        self._is_open = True
        if self._round == 0 and not self._is_quiet:
            self._console.print(f"{row.name}  {describe_configuration(row)}")
        model = self._candidate.model
        self.print(
            [
                loaded_line(model.path),
                *([signature_line(model.signature)] if model.signature else []),
                *(f"WARN: {text}" for text in self._request.notes[self._candidate.model_number]),
                *delegation_lines(row.delegates, row.delegation),
                model_size_line(model.size_bytes),
                initialized_line(opening.total_us),
                self._running(0),
            ]
        )

    def warmed_up(self, phase: Phase) -> None:
        """Print the warm-up; if it succeeded, regular runs follow."""
        following = [self._running(1)] if phase.failure is None else []
        self.print([*stat_lines(stat_figures(phase.invokes_us)), *following])

    def measured(self, found: Round) -> None:
        """Print the regular runs, all times in one line, and the memory."""
        warm_up, regular = stat_figures(found.warm_up.invokes_us), stat_figures(found.regular.invokes_us)
        timings = timings_line(found.opening.total_us, warm_up, regular)
        self.print([*stat_lines(regular), timings, *memory_lines(found.memory)])

    def failed(self, candidate: Candidate, reason: str) -> None:  # noqa: ARG002
        """Clear the progress; the reason is printed below the table."""
        if not self._is_open:
            self.print([loaded_line(candidate.model.path)])

    def profiled(self, profile: OpProfile, opening: Opening) -> None:
        """Print the operators, unless they are to be written to a file."""
        if _PROFILES in self._flags or _CSV_PROFILES in self._flags:
            return
        report = profile_report(profile, opening_steps(opening), self._flags.text("op_profiling_output_mode"))
        self._say(f"INFO: {report}")

    def finished(self) -> None:
        """Ignore Ctrl-C, which would lose what is not written yet."""
        ignore_interrupts()
        self.close()

    def close(self) -> None:
        """Remove the progress line from the terminal."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _show_step(self, step: str) -> None:
        """Show the present step in one line of a terminal, which the next step replaces.

        Other lines are not disturbed: it does so only where none are printed.
        """
        if self._is_quiet:
            return
        if self._to_stdout or not self._console.is_terminal:
            self._console.print(step, style="dim")
            return
        if self._live is None:
            self._live = Live(
                console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()
        self._live.update(Text(step, style="dim", no_wrap=True, overflow="ellipsis"), refresh=True)

    def summary(self, measured: Sequence[Measured]) -> None:
        """All configurations, fastest first."""
        if not self._several:
            return
        names = model_names([model.path for model in self._request.models])
        prefix = [f"{name}, " if len(names) > 1 else "" for name in names]
        listed = [
            (
                prefix[each.row.model] + each.row.name,
                stat_figures([time for entry in each.rounds for time in entry.regular.invokes_us])
                if each.is_measured
                else None,
            )
            for each in measured
        ]
        self.print(summary_lines(listed))

    def _running(self, phase: int) -> str:
        limits = self._options.phases[phase]
        return running_line(limits.min_runs, limits.min_secs, limits.max_secs)

    def print(self, lines: Sequence[str]) -> None:
        """Keep lines, and print them on stdout where they belong there."""
        if lines:
            self._say("\n".join(printable(line) for line in lines))

    def _say(self, text: str) -> None:
        self._kept.append(text)
        if self._to_stdout:
            self.is_written = say(text) and self.is_written


def _logged(flags: Options, candidate: Candidate) -> list[tuple[Parameter, Value]]:
    """The flags as native logs list them: the benchmark's, with the model's path, then the configuration's."""
    known = {parameter.name: parameter for parameter in benchmark_flags.PARAMETERS}
    given = [
        (known[name], value) for name, value in flags.stated.items() if name in known and not isinstance(value, tuple)
    ]
    return [*given, (known["graph"], str(candidate.model.path)), *_configuration_flags(candidate.configuration)]


def _configuration_flags(configuration: Configuration) -> list[tuple[Parameter, Value]]:
    """The configuration's flags under the native tool's names; the number of threads is ``num_threads`` there."""
    found = []
    for word in configuration.to_flags():
        name, text = split_flag(word, CONFIGURATION_PARAMETERS)
        name = "num_threads" if name == "num_interpreter_threads" else name
        parameter = CONFIGURATION_PARAMETERS[name]
        found.append((parameter, parameter.parse(text)))
    return found


class NativeFiles(Struct, frozen=True):
    """The files of the native tool's flags: one for each row, by flag.

    ``input_bytes`` is the size of each model's inputs.
    """

    paths: Mapping[str, Sequence[Path]]
    input_bytes: Sequence[int]
    profile_mode: str

    @classmethod
    def planned(cls, asked: Request, request: BenchmarkRequest, others: Mapping[str, Path]) -> NativeFiles:
        """Check every file, also that none is one of the ``others``; raises :class:`UsageError`."""
        flags = asked.options
        if _PROFILES in flags and _CSV_PROFILES in flags:
            raise UsageError(f"--{_PROFILES} and --{_CSV_PROFILES} both name a file for the operators' times; keep one")
        labels = _labels(request)
        paths = {
            each.name: list(file_per_configuration(path, labels).values())
            for each in benchmark_flags.PARAMETERS
            if each.role == "output_file" and (path := flags.path(each.name)) is not None
        }
        written = [(name, path) for name, several in paths.items() for path in several]
        require_apart((f"--{name}", path) for name, path in [*others.items(), *written])
        for name, path in written:
            require_output_file(path, f"--{name}", asked.files_read)
        input_bytes = [sum(array.nbytes for array in values) for values in request.inputs]
        mode = CSV if _CSV_PROFILES in flags else flags.text("op_profiling_output_mode")
        return cls(paths, input_bytes, mode)

    def write(self, found: Benchmarked, models: Sequence[Model], lines: NativeLines) -> list[OutputError]:
        """Write what was measured; returns what could not be written."""
        not_written = []
        for flag, paths in self.paths.items():
            for path, measured, values in zip(paths, found.records.measured, found.outputs, strict=True):
                content = self._content(flag, measured, models, values)
                if content is None:
                    continue
                try:
                    write_file(path, content)
                except OutputError as error:
                    not_written.append(error)
                    continue
                if flag == _PROTOS:
                    lines.print(saved_lines(path))
        return not_written

    def _content(
        self, flag: str, measured: Measured, models: Sequence[Model], values: tuple[Array, ...] | None
    ) -> bytes | None:
        """The content of a row's file; None where there is nothing to write."""
        if flag == _OUTPUTS:
            return None if values is None else b"".join(array.tobytes() for array in values)
        if not measured.is_measured:
            return None
        if flag == _PROTOS:
            number = measured.row.model
            return native_benchmark_proto(measured.rounds, models[number].size_bytes, self.input_bytes[number])
        if measured.profile is None:
            return None
        return profile_file(measured.profile, opening_steps(measured.rounds[-1].opening), self.profile_mode)


def _labels(request: BenchmarkRequest) -> list[str]:
    """A label for each row, to be put into a file's name; no two are alike."""
    several = len(request.models) > 1
    return [
        f"{candidate.model_number} {candidate.model.path.stem} {candidate.configuration.name}"
        if several
        else candidate.configuration.name
        for candidate in request.candidates
    ]
