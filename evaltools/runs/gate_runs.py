"""From a run of ``gates.toml`` to its result: its request in a process of its own, or the file that exists."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools import exit_codes
from evaltools.errors import EvaltoolsError, OutputError, UsageError
from evaltools.gates.gate_file import RunSource
from evaltools.request import Request
from evaltools.result.evaluation import EvaluationResult
from evaltools.result_file import read_result
from evaltools.runs.handing_over import ending_in_words
from evaltools.runs.stored import HANDED_OVER, command_of, to_bytes

OUTPUT_FLAG: Final = "output_file_path"
_MOST_LINES: Final = 20


class Run(Struct, frozen=True):
    """A run of a file of gates whose relative paths are meant from ``folder``.

    ``request`` is what its command asks for; None for a result that exists, and for commands that only put results
    together.
    """

    source: RunSource
    folder: Path
    request: Request | None

    @property
    def files_read(self) -> list[Path]:
        """The result, or what its command names, as far as that is known: what is no file among it does no harm."""
        if self.source.result is not None:
            return [self.source.result]
        if self.request is None:
            return [self.folder / word for word in self.source.command]
        return [self.folder / path for path in self.request.files_read]


def result_of(run: Run, output: Path) -> EvaluationResult:
    """The result of a run; ``output`` is where its command writes it.

    Raises an :class:`EvaltoolsError` with the end of what the command said where it gives no result, and what
    :func:`read_result` raises where a file is none.
    """
    source = run.source
    if source.result is not None:
        return read_result(source.result)
    try:
        output.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"run {source.name}: {output} cannot be written: {error.strerror}") from error
    with tempfile.TemporaryDirectory(prefix="evaltools-gate-") as scratch:
        arguments = ["evaltools.cli.main", *source.command, f"--{OUTPUT_FLAG}={output.absolute()}"]
        if run.request is not None:
            file = Path(scratch, "request.json")
            file.write_bytes(to_bytes(run.request.stating(**{OUTPUT_FLAG: output.absolute()})))
            arguments = [HANDED_OVER, str(file)]
        completed = subprocess.run(
            command_of(*arguments),
            cwd=run.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
    if completed.returncode in exit_codes.MEASURED and output.exists():
        return read_result(output)
    raise _no_result(source, completed.returncode, completed.stderr)


def _no_result(source: RunSource, code: int, said: str) -> EvaltoolsError:
    end = "\n".join(line.rstrip() for line in said.splitlines()[-_MOST_LINES:]) or "nothing on stderr"
    command = shlex.join(("evaltools", *source.command))
    message = f"run {source.name}: no result from {command!r} ({ending_in_words(code)}); it said:\n{end}"
    return OutputError(message) if code == exit_codes.NOT_WRITTEN else UsageError(message)
