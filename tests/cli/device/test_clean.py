"""``evaltools device clean``: which folders it takes."""

from __future__ import annotations

import pytest

from evaltools.device.run.flags import DEFAULT_ROOT, read_root
from evaltools.errors import UsageError
from tests.cli.device import runs as device_runs


def test_a_folder_at_whose_colon_a_search_path_would_be_split_is_refused() -> None:
    with pytest.raises(UsageError, match=r"--device_folder=/data/local/tmp/e:v: the path has a colon") as caught:
        read_root("/data/local/tmp/e:v")
    assert f"without one, as {DEFAULT_ROOT}" in str(caught.value)
    done = device_runs.run(["device", "clean", "--device_folder=/data/local/tmp/e:v"])
    assert done.code == 2
    assert "the path has a colon" in done.err
