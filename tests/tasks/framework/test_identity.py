"""What a run is made of: what changes it, and what does not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.engine.facts import CONFIGURATIONS, PASS
from evaltools.engine.journal import Journal, open_journal, read_journal
from evaltools.engine.run_folder import IDENTITY as IDENTITY_FACT
from evaltools.engine.run_folder import REQUEST, RunIdentity, with_files
from evaltools.engine.steps import Record
from evaltools.errors import DataError, UsageError
from evaltools.request.plain import to_plain
from evaltools.result.facts import DelegateUsed, RuntimeUsed
from evaltools.result.result import Row
from evaltools.runs.identity import (
    begin_run,
    files_below,
)
from tests.requests import request_of
from tests.results import configuration

DESCRIBED = [configuration("reference", "reference"), configuration("test")]
IDENTITY = RunIdentity({"model": "m"}, {"images": "x"})
REQUEST_MADE = request_of("imagenet")


def begun(journal: Journal, described: Sequence[Row] = DESCRIBED) -> None:
    begin_run(journal, described, IDENTITY, REQUEST_MADE)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """The folder of a run that has begun."""
    journal = begun_with_one_example(tmp_path / "run", DESCRIBED)
    journal.close()
    return tmp_path / "run"


def begun_with_one_example(folder: Path, described: Sequence[Row]) -> Journal:
    journal = open_journal(folder)
    begun(journal, described)
    journal.add([Record(0, "test", (1,), 0.5)])
    journal.flush()
    return journal


def test_what_a_run_is_made_of_is_written_down(run_dir: Path) -> None:
    journal = read_journal(run_dir)
    assert REQUEST.read(journal) == to_plain(REQUEST_MADE)
    assert CONFIGURATIONS.read(journal) == DESCRIBED
    identity = IDENTITY_FACT.read(journal)
    things = ["its status", "its setting", "its runtime", "what its delegates took"]
    assert identity is not None
    assert {name: list(facts) for name, facts in identity.configurations.items()} == {
        "reference": things,
        "test": things,
    }
    assert replace(identity, configurations={}) == IDENTITY


def on_device(device: str) -> Row:
    """The tested configuration, on a GPU that took all nodes."""
    gpu = DelegateUsed("GPU", True, {"use_gpu": True}, 10, 1, device=device)
    return replace(DESCRIBED[1], delegates=[gpu])


RUNTIME = RuntimeUsed("litert", "ai-edge-litert", "2.3.0", "default")


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (DESCRIBED, None),
        ([replace(DESCRIBED[0], runtime=replace(RUNTIME, messages="loaded")), DESCRIBED[1]], None),
        ([replace(DESCRIBED[0], runtime=replace(RUNTIME, version="9")), DESCRIBED[1]], "reference, its runtime was "),
        ([DESCRIBED[0], replace(DESCRIBED[1], flags=["--use_gpu=false"])], None),
        (DESCRIBED[:1], "configuration test, its status was measured, now it is not there"),
        ([DESCRIBED[0], on_device("SwiftShader")], "test, its device was not there, now it is GPU on SwiftShader"),
    ],
)
def test_a_run_goes_on_only_with_what_it_ran_on(described: Sequence[Row], message: str | None, run_dir: Path) -> None:
    with closing(open_journal(run_dir)) as journal:
        if message is None:
            begun(journal, described)
            return
        with pytest.raises(UsageError, match="holds another run: ") as caught:
            begun(journal, described)
        assert message in str(caught.value)
        assert CONFIGURATIONS.read(journal) == DESCRIBED, "what was refused is not written down"


def test_what_a_run_did_not_come_to_is_said_with_the_next_step(run_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="ended before its first example; finish it with evaltools resume"):
        PASS.required(read_journal(run_dir))
    with pytest.raises(UsageError, match="is not a run folder"):
        read_journal(tmp_path)


def test_a_damaged_fact_is_a_data_error(run_dir: Path) -> None:
    journal = open_journal(run_dir)
    journal.state({PASS.name: '["a", 5]'})
    journal.close()
    with pytest.raises(DataError, match="cannot be read"):
        PASS.read(read_journal(run_dir))


def test_a_fingerprint_changes_with_names_sizes_and_apart_from_them_with_times(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a", "b")]
    for path in paths:
        path.write_text("1")
        os.utime(path, (1, 1))

    def changed(*files: Path) -> tuple[bool, bool]:
        found = with_files(IDENTITY, "images", files or paths)
        return found.inputs != before.inputs, found.written != before.written

    before = with_files(IDENTITY, "images", paths)
    assert before.inputs["images"].startswith("2 files, ")
    assert changed() == (False, False)
    os.utime(paths[0], (2, 2))
    assert changed() == (False, True)
    paths[0].write_text("22")
    os.utime(paths[0], (1, 1))
    assert changed() == (True, False)
    paths[0].write_text("3")
    os.utime(paths[0], (1, 1))
    assert changed() == (False, False)
    assert changed(paths[0], paths[0].rename(tmp_path / "c"))[0]
    assert changed(*reversed(paths))[0]
    assert changed(tmp_path / "a", tmp_path / "\udcff")[0], "a missing file counts as empty"


def test_files_below_are_those_of_folders_in_order(tmp_path: Path) -> None:
    for name in ("d/b", "d/e/c", "d/a", "z"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = files_below([tmp_path / "z", tmp_path / "d", tmp_path / "none"])
    assert [str(path.relative_to(tmp_path)) for path in found] == ["z", "d/a", "d/b", "d/e/c", "none"]
