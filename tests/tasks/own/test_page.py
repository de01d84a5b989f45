"""A page about a task of one's own tells which examples lost most."""

from __future__ import annotations

from pathlib import Path

from evaltools.datasets import sample
from evaltools.report.page.content.sources import Sources
from evaltools.result.section import Number, Table
from evaltools.result_file import read_result
from evaltools.task_kind import kind_of
from tests.command import evaltools_here
from tests.report.page.reading import at
from tests.report.page.samples import read
from tests.tasks.own.task_files import write_task, write_values


def test_the_examples_that_lose_most_come_first(tmp_path: Path) -> None:
    task, values = write_task(tmp_path), write_values(tmp_path)
    model, saved = str(sample.model_file("float32")), tmp_path / "r.json"
    flags = (f"--values={values}", "--config=plain: kernels=reference", "--record_examples=true", f"--output={saved}")
    assert evaltools_here("run", f"{task}:brightness", model, *flags).code == 0
    result = read_result(saved)
    scores = {example.example: example.scores for example in result.part.scores}
    sections = kind_of(result.task).report.sections(result)
    tables = [block for section in sections if section.place == "changes" for block in section.blocks]
    assert tables
    for table in tables:
        assert isinstance(table, Table)
        losses = []
        for name, before, after in table.rows:
            assert isinstance(before, Number)
            assert isinstance(after, Number)
            assert [before.value, after.value] == [scores[str(name)][each][0] for each in ("reference", "plain")]
            losses.append((after.value or 0.0) - (before.value or 0.0))
        assert losses == sorted(losses, reverse=True)
    page = read(Sources({"r": result}, saved={"r": saved.read_bytes()}))
    (offered,) = page.results
    assert page.figures == {path: at(offered, path) for path in page.figures}
    assert "Paired scores" in page.headings
