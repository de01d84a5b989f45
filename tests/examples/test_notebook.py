"""The notebooks, from top to bottom in Jupyter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]


def executed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The cells with code of a notebook that was run."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    folder = tmp_path / "examples"
    folder.mkdir()
    notebook = nbformat.read(ROOT / "examples" / name, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell.outputs for cell in cells)
    return cells


@pytest.mark.once
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = executed("notebook.ipynb", tmp_path, monkeypatch)
    assert "<table>" in cells[0].outputs[-1].data["text/html"]


@pytest.mark.once
def test_the_notebook_of_a_study_gives_its_table_and_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = executed("research.ipynb", tmp_path, monkeypatch)
    (drawn,) = (cell.outputs[-1].data for cell in cells if cell.source == "confusion.plot()")
    assert "<svg" in drawn["image/svg+xml"]
    table = cells[-2].outputs[-1].text
    assert table.startswith("\\begin{tabular}{l")
    assert table.count("float32 & ") == 2
    assert cells[-1].outputs[-1].data["text/plain"] == "['confusion.svg', 'tradeoff.svg']"
