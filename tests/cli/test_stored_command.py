"""The command of a run as its journal tells it, and what may be changed in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evaltools.cli import device_run, imagenet
from evaltools.cli.finished_shards import FinishedShards
from evaltools.cli.flags import parse_flags
from evaltools.cli.stored_command import StoredCommand
from evaltools.engine.journal import Journal, open_journal
from evaltools.engine.run_folder import COMMAND, encode
from evaltools.errors import UsageError

FOLDER = Path("/somewhere")


def command(*words: str) -> StoredCommand:
    return StoredCommand(FOLDER, "imagenet", words)


def stored(run_dir: Path, *words: str, folder: Path | None = None) -> Path:
    """A run folder whose command was given in a folder."""
    journal: Journal[Any] = open_journal(run_dir)
    journal.state({COMMAND: encode([str(folder or run_dir.parent), "evaltools", "imagenet", *words])})
    journal.close()
    return run_dir


def kept(words: Sequence[str], *names: str) -> list[str]:
    return list(command(*words).without(*names).arguments)


@pytest.mark.parametrize(
    "words",
    [
        ["--workers=2"],
        ["--workers", "2"],
        ["--workers", "auto"],
        ["--latency_examples", "-1"],
        ["--latency-examples=-1"],
        ["--latency-examples", "-1"],
        ["--record_examples"],
        ["--record_examples", "true"],
        ["--record-examples=false"],
        ["--norecord_examples"],
        ["--norecord-examples"],
        ["--workers=2", "--workers", "3"],
    ],
    ids=" ".join,
)
def test_a_flag_is_left_out_with_its_value_however_it_was_given(words: list[str]) -> None:
    names = ("workers", "latency_examples", "record_examples")
    assert kept(["--model_file=m", *words, "--config", "a: b"], *names) == ["--model_file=m", "--config", "a: b"]
    assert kept(words, *names) == []


@pytest.mark.parametrize(
    "words",
    [
        ["--model_file", "workers"],
        ["--model_file", "workers=2"],
        ["--config", "trace: use_gpu=true", "--model_file=--workers"],
        ["--config=--workers=2"],
        ["--worker=2"],
        ["--noworkers=2"],
    ],
    ids=" ".join,
)
def test_what_only_looks_like_the_flag_stays(words: list[str]) -> None:
    assert kept(words, "workers", "trace") == words
    assert kept([*words, "--workers", "2"], "workers", "trace") == words


def test_without_leaves_the_folder_and_the_order_of_the_others() -> None:
    found = command("--config=a", "--workers", "2", "--model_file", "m", "--config=b").without("workers", "absent")
    assert found == command("--config=a", "--model_file", "m", "--config=b")


def test_flags_given_anew_take_the_place_of_the_old_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = command("--workers", "2", "--model_file=m", "--progress=none", "--output-file-path", "old.json")
    after = before.with_flags(["--workers=3", "--output_file_path=new.json", "--trace="])
    assert after.arguments == (
        "--model_file=m",
        "--progress=none",
        "--workers=3",
        f"--output_file_path={tmp_path / 'new.json'}",
        "--trace=",
    )
    assert before.with_flags([]) == before


@pytest.mark.parametrize("word", ["--run_dir=other", "--run-dir=run", "--shard_index=1", "--executor=ray"])
def test_the_run_that_goes_on_is_the_one_that_was_named(word: str) -> None:
    with pytest.raises(UsageError, match="a run goes on with the flags that it began with"):
        command().with_flags([word])


def test_the_changed_command_is_understood_as_one_that_was_typed() -> None:
    before = command("--norecord_examples", "--workers", "2", "--latency-examples", "-1", "--max_crashes", "2")
    after = before.with_flags(["--record-examples=true", "--workers=5", "--latency_examples=4"])
    flags = parse_flags("imagenet", "", "", imagenet.GROUPS, after.arguments)
    assert (flags.is_on("record_examples"), flags.text("workers")) == (True, "5")
    assert (flags.number("latency_examples"), flags.number("max_crashes")) == (4, 2)


@pytest.mark.parametrize(
    ("word", "stated"),
    [
        ("--record_examples", "--record_examples=true"),
        ("--record-examples", "--record_examples=true"),
        ("--norecord_examples", "--record_examples=false"),
        ("--record_examples=false", "--record_examples=false"),
    ],
)
def test_a_flag_that_is_true_or_false_needs_no_value_as_in_the_command_itself(word: str, stated: str) -> None:
    after = command("--record_examples", "--model_file=m").with_flags([word])
    assert after.arguments == ("--model_file=m", stated)


def test_a_flag_without_a_value_that_may_not_be_given_anew_is_refused_as_such() -> None:
    with pytest.raises(UsageError, match="^--use_gpu=true: a run goes on with the flags that it began with"):
        command().with_flags(["--use_gpu"])


@pytest.mark.parametrize("word", ["workers=2", "--workers", "-workers=2", "2", "--", ""])
def test_flags_are_given_anew_with_two_dashes_and_a_value(word: str) -> None:
    with pytest.raises(UsageError, match=f"^{word!r}: give flags as --name=value$"):
        command().with_flags([word])


def test_flags_that_change_figures_are_refused_with_those_that_may_be_given() -> None:
    with pytest.raises(UsageError) as caught:
        command().with_flags(["--workers=2", "--max-crashes=2"])
    assert str(caught.value).startswith("--max-crashes=2: a run goes on with the flags that it began with; ")
    assert str(caught.value).endswith(
        "only flags that change no figure may be given anew: example_timeout, latency_examples, margin, "
        "output_file_path, progress, ray_address, ray_tasks, record_examples, trace, workers."
    )


def test_a_command_is_read_with_the_folder_that_it_was_given_in(tmp_path: Path) -> None:
    words = ("--model_file", "m", "--run_dir=run")
    assert StoredCommand.of(stored(tmp_path / "run", *words)) == StoredCommand(tmp_path, "imagenet", words)


@pytest.mark.parametrize("words", [["--run_dir=run"], ["--run-dir=./run"], ["--run_dir={}/run"]], ids=" ".join)
def test_a_folder_that_lies_where_it_was_is_left_as_it_was_typed(words: list[str], tmp_path: Path) -> None:
    typed = tuple(word.format(tmp_path) for word in words)
    found = StoredCommand.of(stored(tmp_path / "run", *typed))
    assert found.arguments == typed


@pytest.mark.parametrize(
    "words", [["--run_dir=run"], ["--run_dir", "run"], ["--run-dir=/else/where"], []], ids=" ".join
)
def test_a_folder_that_was_moved_is_named_where_it_lies_now(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "new").mkdir()
    moved = stored(tmp_path / "run", "--model_file", "m", *words).rename(tmp_path / "new" / "moved")
    monkeypatch.chdir(tmp_path / "new")
    for given in (moved, Path("moved"), Path("..", "new", "moved")):
        found = StoredCommand.of(given)
        assert found == StoredCommand(tmp_path, "imagenet", ("--model_file", "m", f"--run_dir={moved}"))


def test_a_folder_that_is_reached_by_another_way_has_not_moved(tmp_path: Path) -> None:
    run_dir = stored(tmp_path / "run", "--run_dir=run")
    (tmp_path / "link").symlink_to(run_dir)
    assert StoredCommand.of(tmp_path / "link").arguments == ("--run_dir=run",)


def test_a_folder_that_cannot_be_entered_is_said(tmp_path: Path) -> None:
    here = Path.cwd()
    gone = StoredCommand.of(stored(tmp_path / "run", "--run_dir=run", folder=tmp_path / "gone"))
    with pytest.raises(UsageError, match=f"was started in {tmp_path / 'gone'}, which cannot be entered: No such"):
        gone.run()
    assert Path.cwd() == here


def test_it_runs_in_its_folder_with_its_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[str, list[str], FinishedShards | None]] = []

    def run(arguments: list[str], shards: FinishedShards | None = None) -> int:
        called.append((os.getcwd(), arguments, shards))
        return 4

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(imagenet, "run", run)
    (tmp_path / "there").mkdir()
    shards = FinishedShards.of_one_run([tmp_path])
    assert StoredCommand(tmp_path / "there", "imagenet", ("--a=b",)).run(shards) == 4
    assert called == [(str(tmp_path / "there"), ["--a=b"], shards)]


def on_devices(*words: str) -> StoredCommand:
    return StoredCommand(FOLDER, "device run imagenet", words)


def test_a_run_on_devices_goes_on_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(device_run, "run", called.append)
    monkeypatch.chdir(tmp_path)
    journal: Journal[Any] = open_journal(tmp_path / "run")
    journal.state({COMMAND: encode([str(tmp_path), "evaltools", "device run imagenet", "--a=b", "--run_dir=run"])})
    journal.close()
    StoredCommand.of(tmp_path / "run").run()
    assert called == [["imagenet", "--a=b", "--run_dir=run"]]


def test_on_devices_the_flags_about_them_that_change_no_figure_may_be_given_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    after = on_devices("--serials=a,b", "--taskset=1").with_flags(
        ["--serials=c", "--adb=adb", "--device_wheels=w", "--nokeep_on_device", "--progress=none"]
    )
    assert after.arguments == (
        "--taskset=1", "--serials=c", "--adb=adb", f"--device_wheels={tmp_path / 'w'}", "--keep_on_device=false",
        "--progress=none",
    )  # fmt: skip
    assert on_devices().with_flags(["--adb=bin/adb"]).arguments == (f"--adb={tmp_path / 'bin' / 'adb'}",)
    for word in ("--taskset=1", "--split=each", "--parts=3", "--native_binary=b", "--use_gpu=true", "--run_dir=r"):
        with pytest.raises(UsageError, match=f"^{word}: a run goes on with the flags that it began with"):
            on_devices().with_flags([word])
    with pytest.raises(UsageError, match="^--serials=c: a run goes on with the flags that it began with"):
        command().with_flags(["--serials=c"])


def test_a_run_on_devices_is_no_shard() -> None:
    with pytest.raises(UsageError, match="a run on devices makes one result of its parts itself"):
        on_devices().run(FinishedShards.of_one_run([FOLDER]))


def test_a_run_of_a_program_of_its_own_is_no_command(tmp_path: Path) -> None:
    journal: Journal[Any] = open_journal(tmp_path / "run")
    journal.state({COMMAND: encode([str(tmp_path)])})
    journal.close()
    with pytest.raises(UsageError, match="was started from a program of its own; start it from there"):
        StoredCommand.of(tmp_path / "run")
