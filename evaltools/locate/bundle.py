"""Writes a bundle: the smallest model that shows a fault, its inputs, a script that needs only the runtime, a README.

The script is tried before anything is called a reproduction.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import Any, Final

import numpy as np
from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.delegates import COMPILED, LITERT, TFLITE_RUNTIME
from evaltools.delegates.external import EXTERNAL
from evaltools.delegates.gpu import GPU
from evaltools.delegates.npu import NPU
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.errors import ConfigurationUnavailable, EvaltoolsError, InferenceError, OutputError
from evaltools.extensions import package_version
from evaltools.locate.native_bundle import commands, outputs_of, script_fields, write_inputs
from evaltools.locate.rows import Bundle
from evaltools.locate.words import answer_lines, of_suspect, operators_of, parts_of
from evaltools.model import read_model
from evaltools.operators.part import Case
from evaltools.report.files.output_file import require_new_folder
from evaltools.result.result import Result, Row
from evaltools.runtime.compiled.xnnpack import xnnpack_flags
from evaltools.runtime.registry import find_runtime

MODEL, INPUTS, SCRIPT, README = "model.tflite", "inputs.npz", "reproduce.py", "README.md"
_ON_INTERPRETER: Final = (
    f"`python {SCRIPT}` runs `{MODEL}`, the smallest model that shows it, on `{INPUTS}`. It printed:",
)
_KEPT: Final = ("expected", "given")
_RUNS: Final = 3
_RUNS_FOR_INTERMITTENT: Final = 50
_TIMEOUT_S: Final = 600.0
_LONGEST: Final = 4000
_WRONG, _RIGHT = 1, 0
_PACKAGES: Final = {LITERT: "ai-edge-litert", TFLITE_RUNTIME: "tflite-runtime", COMPILED: "ai-edge-litert"}
_MODULES: Final = {LITERT: "ai_edge_litert.interpreter", TFLITE_RUNTIME: "tflite_runtime.interpreter"}
_RESOLVERS: Final = {
    "default": "AUTO",
    "builtin": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "reference": "BUILTIN_REF",
}
_KERNEL_MODES: Final = {"default": "DELEGATE", "builtin": "BUILTIN"}
_GPU_SWITCHES: Final = ("gpu_infinite_float_capping", "gpu_allow_src_quantized_fc_conv_ops")


class NoScript(EvaltoolsError):
    """There is no script for the runtime of a configuration; the text says why."""


class Trial(Struct, frozen=True):
    """``reproduced``: the script found the fault. ``printed`` is what it printed."""

    reproduced: bool
    printed: str


def write_bundle(folder: Path, result: Result, case: Case | None, timeout_s: float = _TIMEOUT_S) -> Bundle:
    """Write a bundle into a new folder, and run its script, which has ``timeout_s`` seconds.

    Without a ``case`` there is nothing to reproduce, and only the README. Raises
    :class:`~evaltools.errors.UsageError` for a folder that is not empty, and :class:`~evaltools.errors.OutputError`.
    """
    require_new_folder(folder, "bundle")
    try:
        return _written(folder, result, case, timeout_s)
    except OSError as error:
        raise OutputError(f"--bundle={folder}: {error.filename or 'a file'} cannot be written: {error}") from error


def _written(folder: Path, result: Result, case: Case | None, timeout_s: float) -> Bundle:
    if case is None:
        trial = Trial(False, "")
        text = "\n".join(["# No operator to reproduce", "", "```text", *answer_lines(result), "```", ""])
    else:
        (folder / MODEL).write_bytes(case.model.read_bytes())
        arrays: dict[str, Any] = {f"input_{place}": values for place, values in enumerate(case.inputs)}
        np.savez(folder / INPUTS, **arrays, **{name: case.loaded[name] for name in _KEPT if name in case.loaded})
        suspects = [row for row in operators_of(result) if row.verdicts]
        suspect = next(row for row in suspects if row.counts["first"] <= case.index <= row.counts["last"])
        title = headline(case, suspect)
        if case.configuration.native_binary:
            trial, how = _with_program(folder, case, title, timeout_s)
        else:
            trial, how = _with_script(folder, case, suspect, title, timeout_s), [*_ON_INTERPRETER]
        text = _readme(title, result, suspect, trial, how)
    (folder / README).write_text(text, encoding="utf-8")
    files = tuple(sorted(path.name for path in folder.iterdir()))
    return Bundle(str(folder), files, trial.reproduced, trial.printed)


def _with_script(folder: Path, case: Case, suspect: Row, title: str, timeout_s: float) -> Trial:
    try:
        text = script(case, title, runs_of(suspect, case))
    except (NoScript, ConfigurationUnavailable) as error:
        return Trial(False, f"no script: {error}")
    (folder / SCRIPT).write_text(text, encoding="utf-8")
    return try_script(folder / SCRIPT, timeout_s, case.crashes)


def _with_program(folder: Path, case: Case, title: str, timeout_s: float) -> tuple[Trial, list[str]]:
    """Raw inputs, a script that compares what a native program writes, and the commands that run it."""
    write_inputs(case, folder)
    fields = {"headline": _plain(title), "limit": repr(float(case.tolerance)), **script_fields(case)}
    verdict = _template("verdict").template.strip()
    text = _template("native").substitute(verdict=verdict, **fields)
    (folder / SCRIPT).write_text(text, encoding="utf-8")
    how = ["In this folder:", "", "```sh", *commands(case, MODEL, SCRIPT), "```", "", "That printed:"]
    try:
        return try_script(folder / SCRIPT, timeout_s, given=outputs_of(case)), how
    except InferenceError as error:
        return Trial(case.crashes, str(error)[-_LONGEST:]), how


def runs_of(suspect: Row, case: Case) -> int:
    """How often the script runs the model: once where that keeps a state, often where not each run was wrong."""
    if read_model(case.model).stateful:
        return 1
    shown = [each.counts for each in parts_of(suspect, "evidence") if each.texts["agrees"] == "yes"]
    always = all(each["beyond"] == each["runs"] for each in shown if each["beyond"])
    return _RUNS if always else _RUNS_FOR_INTERMITTENT


def headline(case: Case, suspect: Row) -> str:
    """What is wrong, in a few words."""
    is_long = suspect.counts["last"] > suspect.counts["first"]
    operator = suspect.texts["operator"] if is_long else case.operator
    wrong = "crashes" if case.crashes else "gives wrong values"
    return f"{operator} {wrong} with {_delegates(case.configuration)}"


def _delegates(configuration: Configuration) -> str:
    """The delegates of a configuration in words: kinds, and the libraries of external ones."""
    libraries = [path.name for path in configuration.libraries]
    names = [each.name for each in configuration.delegates.requested if each.enabled_by != EXTERNAL.enabled_by]
    if not libraries and not names:
        return "XNNPACK" if configuration.kernel_set == "default" else f"the {configuration.kernel_set} kernels"
    half = " in fp16" if configuration.delegates.value("xnnpack_force_fp16") else ""
    words = [f"XNNPACK{half}" if name == XNNPACK.name else f"the {name} delegate" for name in names]
    return " and ".join([*libraries, *words])


def _readme(title: str, result: Result, suspect: Row, trial: Trial, how: Sequence[str]) -> str:
    """What can be pasted into an issue: what is wrong, where it was seen, how to see it."""
    used, environment = result.rows[0].runtime, result.environment
    seen = f"{used.package} {used.version}, " if used is not None else ""
    device = used.machine if used is not None else ""
    where = f"on {device}" if device else f"Python {environment.python}, {environment.machine}"
    lines = [
        f"# {title}",
        "",
        "```text",
        *of_suspect(suspect),
        "```",
        "",
        f"Seen with {seen}{where}.",
        "",
        *how,
        "",
        "```text",
        trial.printed,
        "```",
        "",
    ]
    return "\n".join(lines)


# ---- The script -----------------------------------------------------------------------------


def script(case: Case, title: str, runs: int) -> str:
    """The text of ``reproduce.py``; raises :class:`NoScript`.

    Each run follows one with zeros, so that what a run leaves behind shows in the next one.
    """
    configuration = case.configuration
    runtime = find_runtime(configuration).name
    if runtime not in _PACKAGES:
        raise NoScript(f"the runtime {runtime} is another package's")
    is_compiled = runtime == COMPILED
    given = "(False, True)" if is_compiled else "(zeros, inputs)"
    once = "(True,)" if is_compiled else "(inputs,)"
    own = _compiled(configuration) if is_compiled else _interpreter(configuration, runtime)
    return _template("compiled" if is_compiled else "interpreter").substitute(
        headline=_plain(title),
        requirements=" ".join(requirements(runtime)),
        output=case.output,
        limit=repr(float(case.tolerance)),
        runs=runs,
        given=given if runs > 1 else once,
        verdict=_template("verdict").template.strip(),
        **own,
    )


def requirements(runtime: str) -> list[str]:
    """What to install: the runtime's package in the version that is installed here, and NumPy."""
    package = _PACKAGES[runtime]
    return [f"{package}=={package_version(package)}", "'numpy<2'" if runtime == TFLITE_RUNTIME else "numpy"]


def _interpreter(configuration: Configuration, runtime: str) -> dict[str, str]:
    settings = configuration.delegates
    libraries = [
        each.library(settings.effective_options(each)) for each in settings.requested if each.library is not None
    ]
    delegates = [(str(Path(library.path).resolve()), dict(library.options)) for library in libraries]
    return {
        "module": _MODULES[runtime],
        "resolver": _RESOLVERS[configuration.kernel_set],
        "threads": "None" if configuration.num_threads == -1 else str(configuration.num_threads),
        "delegates": repr(delegates),
    }


def _compiled(configuration: Configuration) -> dict[str, str]:
    requested = {delegate.name for delegate in configuration.delegates.requested}
    if NPU.name in requested:
        raise NoScript("an NPU needs its vendor's libraries, and options of its own")
    flags = xnnpack_flags(configuration)
    cpu_options = [
        f"num_threads={max(0, configuration.num_threads)}",
        f"kernel_mode=litert.CpuKernelMode.{_KERNEL_MODES[configuration.kernel_set]}",
        *([] if flags is None else [f"xnnpack_flags={flags}"]),
    ]
    settings = _gpu_settings(configuration) if GPU.name in requested else []
    accelerators = ["HardwareAccelerator.GPU"] if GPU.name in requested else []
    return {
        "accelerators": " | ".join([*accelerators, "HardwareAccelerator.CPU"]),
        "cpu_options": ", ".join(cpu_options),
        "settings": "".join(f"options.gpu_options.{line}\n" for line in settings),
    }


def _gpu_settings(configuration: Configuration) -> list[str]:
    settings = configuration.delegates
    switches = [flag.removeprefix("gpu_") for flag in _GPU_SWITCHES if settings.value(flag)]
    return [
        f"enforce_f32 = {not settings.value('gpu_precision_loss_allowed')}",
        "benchmark_mode = True  # a run ends when its work is done",
        *(f"{name} = True" for name in switches),
    ]


def _plain(text: str) -> str:
    r"""A text that can stand in a docstring, whatever the names in it are.

    >>> _plain('a"b' + chr(92) + chr(10) + 'c')
    'a?b? c'
    """
    line = " ".join(text.split())
    return "".join(
        letter if letter.isascii() and letter.isprintable() and letter not in '"\\' else "?" for letter in line
    )


def _template(name: str) -> Template:
    return Template(Path(__file__).with_name(f"reproduce_{name}.txt").read_text(encoding="utf-8"))


# ---- Trying it ------------------------------------------------------------------------------


def try_script(path: Path, timeout_s: float, crashes: bool = False, given: bytes = b"") -> Trial:
    """Run a script in its folder with this Python, as anybody would; ``crashes``: that it fails is the fault.

    ``given`` is its standard input.
    """
    command = [sys.executable, path.name]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
    try:
        done = subprocess.run(
            command, cwd=path.parent, env=environment, input=given, capture_output=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired as error:
        return Trial(crashes, _shown(path, error.stdout, error.stderr, f"(ended after {timeout_s:g} seconds)"))
    printed = (done.stdout or b"").decode("utf-8", "replace")
    if done.returncode == _RIGHT or (done.returncode == _WRONG and "wrong in " in printed):
        return Trial(done.returncode == _WRONG, printed.strip())
    end = f"(its process was ended by {_signal(-done.returncode)})" if done.returncode < 0 else ""
    return Trial(crashes, _shown(path, done.stdout, done.stderr, end))


def _shown(path: Path, stdout: bytes | None, stderr: bytes | None, end: str) -> str:
    """The end of what was printed, without where on this machine the bundle lies."""
    parts = [(part or b"").decode("utf-8", "replace").strip() for part in (stdout, stderr)]
    text = "\n".join(filter(None, [*parts, end])).replace(str(path.resolve().parent), ".")
    return text[-_LONGEST:]


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
