"""Starts of the program: the script that does a batch of them, and what each left.

Each start runs the model once before the runs that are timed: the first run includes what the delegate sets up.
"""

from __future__ import annotations

import shlex
import signal
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.errors import DataError, InferenceError, ProgramEnded
from evaltools.native.flags import configuration_flags
from evaltools.native.logs.benchmark import parse_benchmark_log, unknown_flags
from evaltools.native.logs.delegates import delegate_lines, read_delegate_log
from evaltools.native.logs.delegation import LoggedDelegation, delegation_of
from evaltools.result.rounds import StatFigures
from evaltools.runtime.session import Array, Inference, TensorSpec
from evaltools.text import last_lines

RESULTS: Final = "r"
"""The folder of what starts leave: by number a log, an exit code, a file of outputs, and a mark of one that hung."""
_LOG, _CODE, _OUTPUT, _HUNG = (f"{RESULTS}/{kind}-" for kind in "lcoh")
_SIGNALLED: Final = 128
_INPUTS_AND_OUTPUTS: Final = ("input_layer_value_files", "output_filepath")


class ProgramHung(ProgramEnded):
    """A start did not end in time, and was ended."""


class Program(Struct, frozen=True):
    """A program at its place: its ``command`` with all flags but those of a start, and what it takes and gives.

    ``environment`` stands before it in a shell.
    """

    configuration: Configuration
    node_count: int
    command: tuple[str, ...]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    environment: str = ""

    @property
    def bytes_of_run(self) -> int:
        """The bytes of all inputs and outputs of a run."""
        return sum(_bytes_of(spec) for spec in (*self.inputs, *self.outputs))


class Start(Struct, frozen=True):
    """What a start gave: the times and outputs of its runs, what its delegates took, and how long it was in ms."""

    inference: Inference
    delegation: LoggedDelegation
    load_ms: float


def flags_there(configuration: Configuration, files: Mapping[str, str]) -> list[str]:
    """The configuration's flags as the program reads them; ``files`` are paths here by their paths there.

    Raises :class:`UsageError` for a configuration that it cannot have.
    """
    threads, *others = configuration_flags(configuration, files, with_npu=True)
    return [threads.replace("--num_interpreter_threads", "--num_threads"), *others]


def batch_files(block: Sequence[Sequence[Array]]) -> dict[str, bytes]:
    """The files of inputs by their names."""
    return {
        _input(number, place): np.ascontiguousarray(array).tobytes()
        for number, inputs in enumerate(block)
        for place, array in enumerate(inputs)
    }


def batch_script(program: Program, count: int, invocations: int, limit_s: float) -> str:
    """A script for any sh that starts the program so many times, one after the other, in a folder with their files.

    A start that takes more than ``limit_s`` seconds is ended, and none is begun after it. A line is printed after each.
    """
    given = start_flags(program.inputs, invocations)
    lines = [
        f"mkdir -p {RESULTS} || exit 1",
        program.environment,
        f"""\
one() {{
( exec {shlex.join([*program.command, *given])} "$2" --output_filepath={_OUTPUT}$1 ) >{_LOG}$1 2>&1 </dev/null & p=$!
( trap 'kill $s; exit' TERM
sleep {max(1, round(limit_s))} & s=$!
wait $s
echo >{_HUNG}$1
kill -9 $p ) >/dev/null 2>&1 & w=$!
wait $p 2>/dev/null
c=$?
kill $w 2>/dev/null
wait $w 2>/dev/null
echo $c >{_CODE}$1
echo $1
[ ! -e {_HUNG}$1 ] || exit 0
}}""",
    ]
    for number in range(count):
        files = [_input(number, place) for place in range(len(program.inputs))]
        lines.append(f"one {number} {files_flag(files)}")
    return "\n".join([*lines, "exit 0", ""])


def start_flags(inputs: Sequence[TensorSpec], invocations: int) -> list[str]:
    """The flags of each start, but the files of its inputs and outputs."""
    names = ",".join(_name(place) for place in range(len(inputs)))
    shapes = ":".join(",".join(map(str, spec.shape)) for spec in inputs)
    runs = ["--warmup_runs=1", "--warmup_min_secs=0", f"--num_runs={invocations}", "--min_secs=0"]
    return [*runs, f"--input_layer={names}", f"--input_layer_shape={shapes}"]


def files_flag(files: Sequence[str]) -> str:
    """The flag that names the files of a start's inputs."""
    return "--input_layer_value_files=" + ",".join(f"{_name(place)}:{file}" for place, file in enumerate(files))


def _name(place: int) -> str:
    return f"i{place}"


def _input(number: int, place: int) -> str:
    return f"i-{number}-{place}"


def read_start(program: Program, left: Mapping[str, bytes], number: int, invocations: int) -> Start | None:
    """What a start gave, by the files that a batch left; None where it was not begun.

    Raises :class:`InferenceError` for one without outputs or proof, :class:`ProgramEnded` for one that died or hung.
    """
    code = left.get(f"{_CODE}{number}")
    if code is None:
        return None
    log = left.get(f"{_LOG}{number}", b"").decode("utf-8", "replace")
    _require_end(int(code or b"1"), f"{_HUNG}{number}" in left, log)
    if unknown := unknown_flags(log):
        raise InferenceError(_does_not_know(unknown))
    try:
        found = parse_benchmark_log(log).round
    except DataError as error:
        raise InferenceError(str(error)) from error
    output = left.get(f"{_OUTPUT}{number}")
    if found is None and output is None:
        raise InferenceError(
            f"the program logged no times and wrote no outputs, as benchmark_model does; is it one?{_said(log)}"
        )
    wanted = sum(_bytes_of(spec) for spec in program.outputs)
    if output is None or len(output) != wanted:
        got = "no file of outputs" if output is None else f"{len(output)} bytes of outputs"
        raise InferenceError(
            f"the program wrote {got}, and the model's outputs have {wanted} bytes; space may have run out, or their "
            f"sizes depend on values{_said(log)}"
        )
    if found is None or found.regular.count != invocations:
        raise InferenceError(f"the program logged no times of {invocations} runs{_said(log)}")
    taken = delegation_of(program.configuration, read_delegate_log(delegate_lines(log)), program.node_count)
    if taken.why_not:
        raise InferenceError(taken.why_not)
    outputs = _split(output, program.outputs)
    return Start(Inference(outputs, _times_of(found.regular)), taken, (found.init_us or 0) / 1000)


def _require_end(code: int, hung: bool, log: str) -> None:
    if hung:
        raise ProgramHung(f"the program did not end in time and was ended{_said(log)}")
    if code > _SIGNALLED:
        name = next((each.name for each in signal.Signals if each.value == code - _SIGNALLED), f"signal {code}")
        raise ProgramEnded(f"the program died ({name}){_said(log)}")
    if code:
        raise InferenceError(f"the program ended with exit code {code}{_said(log)}")


def _said(log: str) -> str:
    said = last_lines(log)
    return f"; it printed last: {said}" if said else ""


def _does_not_know(unknown: str) -> str:
    if any(name in unknown for name in _INPUTS_AND_OUTPUTS):
        return (
            "the program reads no files of inputs, as LiteRT's own benchmark_model: only TensorFlow's gives back what "
            "it computes; take Google's prebuilt one"
        )
    return f"the program does not know {unknown}; leave it out, or take another release"


def _bytes_of(spec: TensorSpec) -> int:
    return spec.dtype.itemsize * int(np.prod(spec.shape, dtype=np.int64))


def _split(content: bytes, specs: Sequence[TensorSpec]) -> tuple[Array, ...]:
    found: list[Array] = []
    start = 0
    for spec in specs:
        size = _bytes_of(spec)
        found.append(np.frombuffer(content[start : start + size], spec.dtype).reshape(spec.shape))
        start += size
    return tuple(found)


def _times_of(stat: StatFigures) -> tuple[float, ...]:
    """The times of the runs: first and last as logged, those between them by the average.

    >>> _times_of(StatFigures(3, 10, 30, 10, 30, 20.0, 8, None, None, None))
    (10.0, 20.0, 30.0)
    """
    first, last, count = float(stat.first_us), float(stat.last_us), stat.count
    if count == 1:
        return (first,)
    between = (count * stat.avg_us - first - last) / max(1, count - 2)
    return (first, *[between] * (count - 2), last)
