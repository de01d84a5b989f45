"""The folder of --run_dir: what goes on in it, what is refused, and what a full disk leaves behind."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from evaltools import exit_codes
from evaltools.engine.journal import JOURNAL_NAME
from evaltools.errors import DataError, UsageError
from evaltools.result.metrics import of_task
from evaltools.runs.folders import concluded, result_content
from tests.cli.evaluate.sample_runs import (
    figures,
    figures_here,
    inference_diff,
    journal_rows,
)
from tests.command import Completed, evaltools_here
from tests.evaluation_set import EvaluationSet
from tests.journals import rewrite, without_examples

pytestmark = pytest.mark.once

XNNPACK_OFF = "--use_xnnpack=false"


def begin(evaluation: EvaluationSet, folder: Path, *flags: str) -> Completed:
    return evaltools_here(*evaluation.flags(f"--run_dir={folder}", XNNPACK_OFF, *flags))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the set of the finished run lies."""
    return tmp_path_factory.mktemp("set")


@pytest.fixture
def copied(evaluation: EvaluationSet, place: Path) -> EvaluationSet:
    """The set as it was when the run was made, to be changed by a test."""
    return copy_of(evaluation, place)


@pytest.fixture(scope="module")
def evaluated(evaluation: EvaluationSet, place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run over the set."""
    folder = tmp_path_factory.mktemp("evaluated") / "run"
    completed = begin(copy_of(evaluation, place), folder, "--workers=1")
    assert completed.code == 0, completed.err
    return folder


@pytest.fixture
def finished(evaluated: Path, copied: EvaluationSet, tmp_path: Path) -> Path:
    """A copy of it, to go on with."""
    return shutil.copytree(evaluated, tmp_path / "run")


def copy_of(evaluation: EvaluationSet, place: Path) -> EvaluationSet:
    """Files with the times of change that they had."""
    shutil.rmtree(place)
    shutil.copytree(evaluation.folder, place)
    model, images, labels, truths = (
        place / path.name for path in (evaluation.model, evaluation.images, evaluation.labels, evaluation.truths)
    )
    return EvaluationSet(place, model, images, labels, truths, evaluation.answers)


def test_the_same_command_again_runs_nothing_again(copied: EvaluationSet, finished: Path, tmp_path: Path) -> None:
    rows = journal_rows(finished)
    assert len(rows) == 2 * len(copied.answers)
    for number, again in enumerate(
        [
            [*copied.flags(f"--run_dir={finished}", XNNPACK_OFF, "--record_examples=true"), "--workers=1"],
            [*copied.flags(f"--run_dir={finished}", XNNPACK_OFF, "--record_examples=true"), "--workers=2"],
            ["resume", str(finished), "--record_examples=true", "--workers=auto", "--example_timeout=60"],
            ["resume", str(finished), "--record_examples=true", "--progress=none", "--latency_examples=3"],
        ]
    ):
        found = figures_here(again, tmp_path / f"{number}.json")
        assert found["examples_done"] == len(copied.answers)
        assert found == figures(tmp_path / "0.json")
        assert journal_rows(finished) == rows


def test_only_what_is_missing_is_run(finished: Path) -> None:
    rows = journal_rows(finished)
    rewrite(finished, records=without_examples(3, 17))
    completed = evaltools_here("resume", str(finished))
    assert completed.code == 0, completed.err
    again = journal_rows(finished)
    assert again.keys() == rows.keys()
    assert {example for example, name in rows if again[example, name] != rows[example, name]} <= {3, 17}


def test_a_result_without_the_records_of_some_examples_is_not_complete(finished: Path, tmp_path: Path) -> None:
    """An answer or a failure of every example is what makes it one; limits then judge nothing."""
    rewrite(finished, records=without_examples(*range(12, 30)))
    merged = evaltools_here("merge", str(finished), f"--output={tmp_path / 'r.json'}", "--quiet")
    assert merged.code == exit_codes.USAGE
    assert "18 of 30 examples are in none of the 1 folders" in merged.err


def test_a_run_folder_is_as_good_as_the_result_file(copied: EvaluationSet, finished: Path, tmp_path: Path) -> None:
    """Its records are concluded again, and nothing is run."""
    result, rows = tmp_path / "r.json", journal_rows(finished)
    merged = evaltools_here("resume", str(finished), f"--output_file_path={result}", "--quiet")
    assert merged.code == 0, merged.err
    for folder in (finished, finished.parent / "run"):
        assert result_content(folder) == result.read_bytes()
    limit = "--limit=top1 >= 1 %"
    pages = []
    for given in (result, finished):
        assert evaltools_here("gate", str(given), limit).code == 0
        assert evaltools_here("report", str(given), f"--output={tmp_path / 'page.md'}").code == 0
        pages.append((tmp_path / "page.md").read_text())
    assert pages[0] == pages[1]
    assert journal_rows(finished) == rows
    other_picture(copied)
    refused = evaltools_here("gate", str(finished), limit)
    assert (refused.code, "the pictures were 30 files" in refused.err) == (2, True)


def test_a_run_folder_without_all_records_is_not_complete(finished: Path, tmp_path: Path) -> None:
    rewrite(finished, records=without_examples(*range(12, 30)))
    judged = evaltools_here("gate", str(finished), "--limit=top1 >= 1 %")
    assert judged.code == exit_codes.NOT_MEASURED, judged.out
    page = tmp_path / "page.md"
    assert evaltools_here("report", str(finished), f"--output={page}").code == 0
    assert "Not complete: records are missing" in page.read_text()
    assert "there are records of 12 of 30 examples; evaltools resume does the others" in page.read_text()


def test_what_is_damaged_is_said_and_its_example_done_again(finished: Path, tmp_path: Path) -> None:
    """Whatever bits are others: no figure is another without a word."""
    sound, whole = (finished / JOURNAL_NAME).read_bytes(), concluded(finished)
    chance = random.Random(5)
    for number in range(40):
        damaged = bytearray(sound)
        for _ in range(chance.randint(1, 20)):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / JOURNAL_NAME).write_bytes(damaged)
        try:
            found = concluded(folder)
        except (DataError, UsageError):
            continue
        assert not found.complete or found.rows == whole.rows
        assert any("is damaged: bytes" in text for text in found.warnings)
    place = sound.rindex(b"test") + 20  # within the last record
    (finished / JOURNAL_NAME).write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
    result = tmp_path / "r.json"
    resumed = evaltools_here("resume", str(finished), f"--output_file_path={result}")
    assert resumed.code == 0, resumed.err
    assert "is damaged: bytes" in resumed.err
    assert [of_task(row) for row in concluded(finished).rows] == [of_task(row) for row in whole.rows]


def test_a_run_is_resumed_from_any_folder(copied: EvaluationSet, tmp_path: Path) -> None:
    """Paths of the command are relative to where it was given, those of new flags to where one is now."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    flags = ["imagenet", "--model_file=model.tflite", "--ground_truth_images_path=images"]
    flags += ["--ground_truth_labels=truths.txt", "--model_output_labels=labels.txt", "--run_dir=run"]
    completed = evaltools_here(*flags, cwd=copied.folder)
    assert completed.code == 0, completed.err
    moved = (copied.folder / "run").rename(elsewhere / "moved")
    rows = journal_rows(moved)
    again = evaltools_here("resume", "moved", "--output_file_path=result.json", cwd=elsewhere)
    assert again.code == 0, again.err
    assert journal_rows(moved) == rows
    assert (elsewhere / "result.json").exists()
    assert not (copied.folder / "run").exists()


def other_model(evaluation: EvaluationSet) -> None:
    content = bytearray(evaluation.model.read_bytes())
    place = content.find(b"TFL3") + 4
    evaluation.model.write_bytes(bytes(content[:place]) + bytes(content[place:]) + b"\0")


def other_picture(evaluation: EvaluationSet) -> None:
    Image.new("RGB", (42, 24), "red").save(evaluation.images / "004.png")


def touched_picture(evaluation: EvaluationSet) -> None:
    os.utime(evaluation.images / "004.png", (1, 1))


def other_truths(evaluation: EvaluationSet) -> None:
    lines = evaluation.truths.read_text().splitlines(keepends=True)
    evaluation.truths.write_text("".join([*lines[:-1], lines[0]]))


def nothing(evaluation: EvaluationSet) -> None:
    """It stays as it is."""


@pytest.mark.parametrize(
    ("change", "flags", "message"),
    [
        (other_model, (), "the model was "),
        (other_picture, (), "the pictures were 30 files, "),
        (touched_picture, (), "the pictures were written anew since"),
        (other_truths, ("--label_check=false",), "the ground truth was "),
        (
            nothing,
            ("--num_threads=2",),
            "configuration test, its setting was .*, now it is .*--num_interpreter_threads=2",
        ),
        (nothing, ("--channel_order=bgr",), "--channel_order was left out, now it is bgr"),
        (nothing, ("--num_images=20",), "--num_images was left out, now it is 20"),
        (nothing, ("--config=more: kernels=reference",), "configuration more, its status was not there"),
        (nothing, ("--shard_index=0", "--shard_count=2"), "the shard was not there, now it is 0/2"),
    ],
    ids=lambda value: getattr(value, "__name__", "") or (value[0] if value and value[0].startswith("-") else ""),
)
def test_another_run_is_refused_and_what_differs_is_said(
    copied: EvaluationSet,
    finished: Path,
    change: Callable[[EvaluationSet], None],
    flags: tuple[str, ...],
    message: str,
) -> None:
    rows = journal_rows(finished)
    change(copied)
    completed = evaltools_here(*copied.flags(f"--run_dir={finished}", XNNPACK_OFF, *flags))
    assert (completed.code, completed.out) == (2, "")
    assert f"evaltools: --run_dir={finished} holds another run: " in completed.err
    assert re.search(message, completed.err), completed.err
    assert "_path was" not in completed.err
    assert completed.err.endswith("Repeat the run as it was, or give another folder\n")
    assert journal_rows(finished) == rows


def test_a_run_that_was_killed_before_it_said_what_it_is_is_begun_anew(
    evaluation: EvaluationSet, tmp_path: Path
) -> None:
    (tmp_path / JOURNAL_NAME).touch()
    completed = evaltools_here("resume", str(tmp_path))
    assert completed.code == 2
    assert completed.err == (
        f"evaltools: the run in {tmp_path} ended before its first example; give its command again\n"
    )
    assert begin(evaluation, tmp_path).code == 0
    assert evaltools_here("resume", str(tmp_path)).code == 0


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A file system of its own, in memory."""
    folder.mkdir(exist_ok=True)
    mount = shutil.which("mount")
    command = [mount or "", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if mount is None or os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a file system cannot be mounted here: that needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_folder_that_cannot_be_written_is_refused(evaluation: EvaluationSet, tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "ro,size=1m") as disk:
        for folder in (disk, disk / "run"):
            completed = begin(evaluation, folder)
            assert completed.code == 2
            assert f"--run_dir={folder}" in completed.err
            assert "Traceback" not in completed.err


def test_a_full_disk_ends_the_run_and_what_was_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is room for more than the first batch of rows, and for less than all."""
    monkeypatch.setattr("evaltools.engine.journal._RECORDS_PER_BATCH", 40)
    runs = 120  # of two configurations: six batches
    command = inference_diff(f"--run_dir={tmp_path / 'undisturbed'}", runs=runs)
    undisturbed = figures_here(command, tmp_path / "undisturbed.json")
    needed = sum(file.stat().st_size for file in (tmp_path / "undisturbed").iterdir())
    with mounted(tmp_path / "disk", "size=32m") as disk:
        folder, filler, output = disk / "run", disk / "filler", tmp_path / "result.json"
        filler.write_bytes(bytes(shutil.disk_usage(disk).free - needed * 6 // 10))
        completed = evaltools_here(*inference_diff(f"--run_dir={folder}", runs=runs), f"--output_file_path={output}")
        assert completed.code == 5, completed.err
        assert "Traceback" not in completed.err
        journal = re.escape(str(folder / JOURNAL_NAME))
        assert re.search(
            f"evaltools: {journal} cannot be written: No space left on device. What was written "
            f"before is kept: mend it, then evaltools resume {re.escape(str(folder))}\n",
            completed.err,
        ), completed.err
        assert not output.exists()
        rows = journal_rows(folder)
        assert 0 < len(rows) < 2 * runs
        filler.unlink()
        assert figures_here(["resume", str(folder)], output) == undisturbed
        assert rows.items() <= journal_rows(folder).items()
