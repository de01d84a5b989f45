"""A format of result files is one module and one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.report.files.formats import FORMATS
from tests.command import evaltools_here
from tests.evaluation_set import make_evaluation_set

MODULE = '''
"""Failed and finished examples of each configuration, a line each."""

PER_CONFIGURATION = False


def render(result, configuration):
    lines = [f"{entry.name},{entry.finished_examples},{entry.failed_examples}" for entry in result.configurations]
    return "\\n".join(["name,finished,failed", *lines, ""]).encode()
'''


def test_a_format_from_another_folder_is_written_by_every_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "format_of_mine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(FORMATS, ".csv", "format_of_mine")
    flags = make_evaluation_set(tmp_path / "set", count=4, wrong=1).flags()
    assert evaltools_here(*flags, f"--output_file_path={tmp_path}/r.csv").code == 0
    assert (tmp_path / "r.csv").read_text() == "name,finished,failed\nreference,4,0\ntest,4,0\n"
    diff = evaltools_here("diff", flags[1], "--num_runs=3", f"--output_file_path={tmp_path}/d.csv")
    assert diff.code == 0
    assert (tmp_path / "d.csv").read_text() == "name,finished,failed\nreference,3,0\ntest,3,0\n"
