"""Names that no result file can have are refused before the work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaltools.errors import UsageError
from evaltools.report.files.output_file import require_new_folder, require_writable


def test_a_pipe_is_refused_and_an_open_file_is_not(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="--x=.*pipe is not a regular file"):
        require_writable(tmp_path / "pipe", "--x")
    require_writable(Path("/dev/null"), "--x")


def test_only_a_new_or_empty_folder_is_written_to(tmp_path: Path) -> None:
    require_new_folder(tmp_path / "a" / "b", "bundle")
    require_new_folder(tmp_path / "a" / "b", "bundle")
    with pytest.raises(UsageError, match="^--bundle=.* is not empty; give a new folder"):
        require_new_folder(tmp_path / "a", "bundle")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be made: File exists"):
        require_new_folder(tmp_path / "file", "bundle")
