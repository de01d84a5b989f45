from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.errors import UsageError
from evaltools.result.new_folder import require_new_folder


def test_only_a_new_or_empty_folder_is_written_to(tmp_path: Path) -> None:
    require_new_folder(tmp_path / "a" / "b", "bundle")
    require_new_folder(tmp_path / "a" / "b", "bundle")
    with pytest.raises(UsageError, match="^--bundle=.* is not empty; give a new folder"):
        require_new_folder(tmp_path / "a", "bundle")
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be made: File exists"):
        require_new_folder(tmp_path / "file", "bundle")
