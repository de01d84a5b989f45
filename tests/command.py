"""Runs the command line as a user does: in a process of its own, or without the time that its start takes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from msgspec import Struct

from evaltools.cli.main import main


class Completed(Struct, frozen=True):
    """Exit code and what was printed."""

    code: int
    out: str
    err: str


SAYING_WHAT = (
    "--config",
    "--sweep",
    "--use_",
    "--kernels",
    "--runtime",
    "--num_threads",
    "--external",
    "--compat=native",
)


def one_test(*words: str) -> tuple[str, ...]:
    """The words with the configuration ``test`` where they do not say what to test.

    What evaltools tries of itself is not the same on every machine.
    """
    return words if any(word.startswith(SAYING_WHAT) for word in words) else (*words, "--kernels=default")


def evaltools(*arguments: str, cwd: Path | None = None, environment: dict[str, str] | None = None) -> Completed:
    """Run ``evaltools`` with the arguments given."""
    completed = subprocess.run(
        [sys.executable, "-m", "evaltools.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
    )
    return Completed(completed.returncode, completed.stdout, completed.stderr)


def evaltools_here(*arguments: str, cwd: Path | None = None) -> Completed:
    """Run the same in this process, where all is imported and the server of children is there: up to ten times as fast.

    For what a command says, writes and returns; native code that prints is heard, too. What is about the process
    itself takes :func:`evaltools`: its start, environment, memory, signals, and streams that are closed or full.
    An error that should have been a message is raised.
    """
    with contextlib.ExitStack() as stack:
        if cwd is not None:
            stack.enter_context(pytest.MonkeyPatch.context()).chdir(cwd)
        out = stack.enter_context(_caught(1, "stdout"))
        err = stack.enter_context(_caught(2, "stderr"))
        try:
            code = main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        return Completed(code, _text(out), _text(err))


@contextlib.contextmanager
def _caught(descriptor: int, stream: str) -> Iterator[IO[bytes]]:
    """The file that takes what is printed to a descriptor meanwhile, also through the stream of ``sys``."""
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        kept = os.dup(descriptor)
        os.dup2(file.fileno(), descriptor)
        try:
            with open(descriptor, "w", encoding="utf-8", errors="backslashreplace", closefd=False) as own:
                patch.setattr(sys, stream, own)
                yield file
        finally:
            os.dup2(kept, descriptor)
            os.close(kept)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()
