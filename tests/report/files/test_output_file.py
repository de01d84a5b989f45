"""Pipes as result files: they are written while somebody reads them, and nothing waits without end."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaltools.errors import OutputError
from evaltools.report.files import output_file
from evaltools.report.files.output_file import write_file

CONTENT = bytes(range(256)) * 4000
"""More than a pipe holds."""


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_who_reads_a_pipe_gets_all_of_it(pipe: Path) -> None:
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(pipe.read_bytes)
        write_file(pipe, CONTENT)
        assert reading.result() == CONTENT
    assert pipe.is_fifo()


def test_a_pipe_without_a_reader_is_an_error(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_file, "_SECONDS_WITHOUT_READER", 0.2)
    with pytest.raises(OutputError, match=r"pipe is a pipe that nobody has read from for 0\.2 seconds; start"):
        write_file(pipe, b"x")


def test_a_reader_that_reads_nothing_is_an_error(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_file, "_SECONDS_WITHOUT_READER", 0.2)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(OutputError, match="is a pipe that nobody has read from"):
            write_file(pipe, CONTENT)
    finally:
        os.close(reader)


def test_a_reader_that_goes_away_is_an_error(pipe: Path) -> None:
    def read_a_little() -> None:
        with pipe.open("rb", buffering=0) as file:
            file.read(10)

    with ThreadPoolExecutor() as pool:
        reading = pool.submit(read_a_little)
        with pytest.raises(OutputError, match="pipe cannot be written: Broken pipe"):
            write_file(pipe, CONTENT)
        reading.result()
