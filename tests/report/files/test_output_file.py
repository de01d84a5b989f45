"""Names that no result file can have are refused before the work."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaltools.errors import UsageError
from evaltools.report.files.output_file import require_writable


def test_a_pipe_is_refused_and_an_open_file_is_not(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="--x=.*pipe is not a regular file"):
        require_writable(tmp_path / "pipe", "--x")
    require_writable(Path("/dev/null"), "--x")
