"""One run of the adb binary, whatever that prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evaltools.device.adb import process
from evaltools.device.adb.process import run_adb

MOST = 1 << 20


@pytest.mark.skipif(sys.platform == "win32", reason="a script stands in for adb")
def test_one_that_prints_without_end_is_ended_and_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "adb"
    script.write_text("#!/bin/sh\nexec yes")
    script.chmod(0o755)
    monkeypatch.setattr(process, "_MOST_PRINTED", MOST)
    done = run_adb([str(script), "devices"], 60.0)
    assert (done.code, len(done.out)) == (1, MOST)
    assert b"more than 64 MB were printed" in done.err
