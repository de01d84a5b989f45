"""From a run of ``gates.toml`` to its result: the command in a process of its own, or the file that exists."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from evaltools import exit_codes
from evaltools.errors import EvaltoolsError, OutputError, UsageError
from evaltools.gates.gate_file import RunSource
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.json_file import read_result

WITH_RESULT: Final = (
    exit_codes.OK,
    exit_codes.LIMIT_BROKEN,
    exit_codes.NOT_MEASURED,
    exit_codes.EXAMPLES_FAILED,
)
"""Exit codes of an evaluation that measured what it could."""
_OUTPUT_FLAG: Final = "output_file_path"
_MOST_LINES: Final = 20


def run_source(source: RunSource, folder: Path, output: Path) -> EvaluationResult:
    """The result of a run: ``output`` is where its command, carried out in ``folder``, writes it.

    Raises an :class:`EvaltoolsError` with the end of what the command said where it gives no result, and what
    :func:`read_result` raises where a file is none.
    """
    if source.result is not None:
        return read_result(source.result)
    if any(_is_output_flag(word) for word in source.command):
        raise UsageError(f"run {source.name}: leave --{_OUTPUT_FLAG} out of its command; the gates say where it goes")
    try:
        output.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"run {source.name}: {output} cannot be written: {error.strerror}") from error
    completed = subprocess.run(
        [sys.executable, "-m", "evaltools.cli.main", *source.command, f"--{_OUTPUT_FLAG}={output.absolute()}"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
    )
    if completed.returncode in WITH_RESULT and output.exists():
        return read_result(output)
    raise _no_result(source, completed.returncode, completed.stderr)


def _is_output_flag(word: str) -> bool:
    return word.startswith("--") and word[2:].partition("=")[0].replace("-", "_") == _OUTPUT_FLAG


def _no_result(source: RunSource, code: int, said: str) -> EvaltoolsError:
    end = "\n".join(line.rstrip() for line in said.splitlines()[-_MOST_LINES:]) or "nothing on stderr"
    command = shlex.join(("evaltools", *source.command))
    message = f"run {source.name}: no result from {command!r} ({_ended(code)}); it said:\n{end}"
    return OutputError(message) if code == exit_codes.NOT_WRITTEN else UsageError(message)


def _ended(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
