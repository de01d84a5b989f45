"""What each configuration did in a part, from records written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from msgspec import Struct
from msgspec.structs import replace

from evaltools.device.parts import part_figures, part_messages
from evaltools.engine.execution import Shard
from evaltools.engine.journal import Finished, TaskJournal, open_journal
from evaltools.engine.run_folder import encode
from evaltools.engine.task import Example, Failure, Record
from evaltools.errors import DataError
from evaltools.result.device_run import PartFigures
from evaltools.result.evaluation import ConfigurationResult, RuntimeUsed
from evaltools.tasks.imagenet.task import TopKObservation
from evaltools.tasks.shared.merging import DESCRIBED as DESCRIBED_FACT
from evaltools.tasks.shared.merging import QUIET
from tests.results import configuration
from tests.tasks.part_runs import DESCRIBED, Part, quiet

RUNTIME = RuntimeUsed("litert", "ai-edge-litert", "2.3.0", "default")


class Answer(Struct, frozen=True):
    """What another task might observe."""

    boxes: npt.NDArray[np.float32]
    names: tuple[str, ...]


def ranked(rank: int | None) -> TopKObservation:
    return TopKObservation((3, 1), (0.5, 0.25), rank, 0)


def run_with(
    folder: Path, described: Sequence[ConfigurationResult], observations: type, *records: Record[object]
) -> Path:
    """A run folder with these records, one example each."""
    journal = open_journal(folder)
    rows: TaskJournal[object] = TaskJournal(journal, [record.example for record in records], observations)
    for record in records:
        rows.add(Finished(record.example, 5, [record]))
    rows.flush()
    journal.state({DESCRIBED_FACT: encode(described)})
    journal.close()
    return folder


def of_test(*records: tuple[tuple[int, ...], object] | Failure) -> list[Record[object]]:
    """Records of the configuration ``test``: the times and what was observed, or a failure."""
    return [
        Record(Example(index, ""), "test", (), None, entry)
        if isinstance(entry, Failure)
        else Record(Example(index, ""), "test", entry[0], entry[1], None, 1)
        for index, entry in enumerate(records)
    ]


def test_a_classification_has_right_answers_failures_and_times(tmp_path: Path) -> None:
    records = of_test(
        ((100, 101), ranked(0)),
        ((200,), ranked(1)),
        Failure("inference", "died", crashed=True),
        ((300,), ranked(None)),
        ((400,), ranked(0)),
        Failure("input", "is not a picture"),
    )
    folder = run_with(tmp_path, [configuration("test")], TopKObservation, *records)
    assert part_figures(folder) == (PartFigures("test", 6, 2, (100, 101, 200, 300, 400), 2),)


def test_other_tasks_have_no_right_answers(tmp_path: Path) -> None:
    """Whatever they observe is read without knowing the task."""
    observation = Answer(np.ones((2, 3), np.float32), ("a", "b"))
    folder = run_with(tmp_path, [configuration("test")], Answer, *of_test(((7,), observation)))
    assert part_figures(folder) == (PartFigures("test", 1, 0, (7,), None),)


def test_each_configuration_that_was_measured_has_its_figures_in_order(tmp_path: Path) -> None:
    lost = replace(configuration("lost"), status="not measured", reason="no GPU")
    part = Part(4, Shard(1, 2), first=50, died=[3], described=(DESCRIBED[0], lost, DESCRIBED[1]))
    assert part_figures(part.write(tmp_path / "run")) == (
        PartFigures("reference", 2, 0, (51, 53)),
        PartFigures("test", 2, 1, (51,)),
    )


def test_times_of_a_quiet_phase_take_the_place_of_those_of_the_pass(tmp_path: Path) -> None:
    part = Part(4, quiet=quiet(reference=[10, 20], test=[]))
    assert [figures.invokes_us for figures in part_figures(part.write(tmp_path / "run"))] == [(10, 20), ()]


def test_a_part_whose_records_are_damaged_is_a_data_error(tmp_path: Path) -> None:
    folder = Part(4).write(tmp_path / "run")
    journal = open_journal(folder)
    journal._connection.execute("UPDATE records SET content = x'94c1'")
    journal._connection.commit()
    journal.close()
    with pytest.raises(DataError, match="a record of the journal cannot be read"):
        part_figures(folder)
    journal = open_journal(folder)
    journal.state({QUIET: "{"})
    journal.close()
    with pytest.raises(DataError, match="cannot be read"):
        part_figures(folder)


def test_messages_are_those_of_all_that_was_opened(tmp_path: Path) -> None:
    """In the order of the configurations, one that was not measured as well; one without a runtime has none."""
    first, second = (
        replace(entry, runtime=replace(entry.runtime, messages=text))
        for entry, text in zip(DESCRIBED, ("INFO: one\nINFO: two", ""), strict=True)
        if entry.runtime is not None
    )
    lost = replace(first, name="lost", status="not measured", reason="no GPU", runtime=None)
    late = replace(first, name="late", runtime=replace(RUNTIME, messages="INFO: three"))
    folder = Part(2, described=(first, second, lost, late)).write(tmp_path / "run")
    assert [line for line in part_messages(folder).splitlines() if line] == ["INFO: one", "INFO: two", "INFO: three"]
