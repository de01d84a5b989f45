"""A part of a run leaves records, from which the figures are made elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.runs.stored import stored_request, to_bytes
from tests.cli.evaluate.sample_runs import XNNPACK, coco, figures, imagenet, journal_rows
from tests.command import evaltools_here

pytestmark = pytest.mark.once

_WITHOUT_SCIPY = """
import sys
from pathlib import Path
sys.modules["scipy"] = None
from evaltools.device.programs.on_device import main
sys.exit(main(["--part", "--", sys.argv[1]]))
"""


@pytest.mark.parametrize("command", [imagenet(XNNPACK, pictures=10), coco(XNNPACK)], ids=["imagenet", "coco"])
def test_a_part_has_the_records_of_the_whole_command_without_scipy(tmp_path: Path, command: list[str]) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    done = evaltools_here(*command, f"--run_dir={whole}", f"--output={tmp_path / 'whole.json'}")
    assert done.code == 0, done.err
    request = replace(stored_request(whole, {}).without("output_file_path"), folder=Path.cwd())
    (tmp_path / "request.json").write_bytes(to_bytes(request.stating(run_dir=part)))
    words = [sys.executable, "-c", _WITHOUT_SCIPY, str(tmp_path / "request.json")]
    recorded = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert (recorded.returncode, recorded.stdout) == (0, ""), recorded.stderr
    assert "xnnpack" in recorded.stderr.lower()
    assert journal_rows(part).keys() == journal_rows(whole).keys()
    again = evaltools_here("resume", str(part), f"--output={tmp_path / 'part.json'}")
    assert again.code == 0, again.err
    assert figures(tmp_path / "part.json") == figures(tmp_path / "whole.json")
