"""The request of a run as its folder keeps it, and what may be changed in it."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.cli.runs.folders import read_given, resume
from evaltools.engine.journal import open_journal
from evaltools.engine.run_folder import IDENTITY as IDENTITY_FACT
from evaltools.engine.run_folder import RunIdentity, request_facts
from evaltools.engine.steps import Record
from evaltools.errors import UsageError
from evaltools.request import Request
from evaltools.request.plain import to_plain
from evaltools.runs.stored import changed, stored_request
from tests.command import evaltools_here
from tests.journals import rewrite
from tests.requests import request_of

IDENTITY = RunIdentity({"the model": "m"})


def stored(request: Request, run_dir: Path, identity: RunIdentity = IDENTITY) -> Path:
    """A run folder that keeps a request."""
    journal = open_journal(run_dir)
    journal.state(request_facts(to_plain(request), identity))
    journal.close()
    return run_dir


def resumed(request: Request, *words: str) -> Request:
    return changed(request, read_given(request, words), lambda parameter: parameter.may_differ)


def test_flags_given_anew_take_the_place_of_the_old_ones() -> None:
    before = request_of("imagenet", "--workers=2", "--progress=none", "--output_file_path=old.json")
    after = resumed(before, "--workers=3", "--output-file-path=new.json", "--norecord_examples")
    assert after == before.stating(workers="3", output_file_path="new.json", record_examples=False)
    assert resumed(before) == before


@pytest.mark.parametrize(
    "word",
    [
        "--run_dir=other",
        "--shard_index=1",
        "--executor=ray",
        "--max_crashes=2",
        "--num_images=3",
        "--seed=3",
    ],
)
def test_flags_that_change_figures_are_refused_with_those_that_may_be_given(word: str) -> None:
    with pytest.raises(UsageError) as caught:
        resumed(request_of("imagenet"), word)
    start, _, may_be_given = str(caught.value).partition("may be given anew: ")
    assert start.startswith(f"{word}: a run goes on with the flags that it began with")
    assert {"workers", "output_file_path", "margin", "trace"} < set(may_be_given.rstrip("?.").split(", "))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "workers=2"], "'workers=2': give one folder, and flags as --name=value"),
        (["run", "--workers", "2"], "'2': give one folder, and flags as --name=value"),
        (["run", "-workers=2"], "-workers=2: no such flag. See --help for the flags"),
        (["--workers=2"], "missing: the run folder. Give evaltools resume RUN_DIR; see evaltools resume --help"),
    ],
)
def test_a_folder_is_given_and_flags_anew_with_two_dashes(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(message)}$"):
        resume(words)


def test_a_flag_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"^--worker=2: no such flag\. Did you mean --workers\?"):
        resumed(request_of("imagenet"), "--worker=2")


def test_from_the_folder_of_its_command_a_request_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request = request_of("imagenet", "--run_dir=run", "--config=x: use_xnnpack=true")
    assert stored_request(stored(request, tmp_path / "run"), {}) == request
    assert stored_request(Path("run"), {}) == request


def test_from_another_folder_its_paths_lead_to_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--run_dir=run", "--denylist_file_path=/d.txt", "--config=x: external_delegate_path=a.so", "--trace=t")
    (tmp_path / "a.so").touch()
    request = replace(request_of("imagenet", *words), folder=tmp_path)
    run_dir = stored(request, tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    found = stored_request(run_dir, {}).options
    assert found.text("model_file") == f"{tmp_path}/m.tflite"
    assert found.text("ground_truth_images_path") == f"{tmp_path}/images"
    assert (found.text("run_dir"), found.text("trace")) == (str(run_dir), f"{tmp_path}/t")
    assert found.text("denylist_file_path") == "/d.txt"
    (configuration,) = stored_request(run_dir, {}).tests
    assert configuration.libraries == [tmp_path / "a.so"]


def test_named_files_keep_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a=b.npy").touch()
    request = replace(request_of("inference_diff", "--input_files=in=a=b.npy"), folder=tmp_path)
    run_dir = stored(request, tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    texts = stored_request(run_dir, {}).options.texts("input_files")
    assert texts[0] == f"in={tmp_path}/a=b.npy"


def test_a_folder_that_was_moved_is_named_where_it_lies_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    moved = stored(request_of("imagenet", "--run_dir=run"), tmp_path / "run").rename(tmp_path / "moved")
    for given in (moved, Path("moved")):
        assert stored_request(given, {}).options.text("run_dir") == str(moved)


def test_a_run_of_another_version_is_refused(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "run")
    journal.state(request_facts({"version": 3}, IDENTITY))
    journal.close()
    with pytest.raises(UsageError, match="cannot go on: a request of version 3; this evaltools reads version 2"):
        stored_request(tmp_path / "run", {})


def test_a_run_that_never_began_is_told_so(tmp_path: Path) -> None:
    open_journal(tmp_path / "run").close()
    with pytest.raises(UsageError, match="ended before its first example; give its command again"):
        stored_request(tmp_path / "run", {})


def test_a_run_of_a_program_of_its_own_has_no_request(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "run")
    journal.add([Record(0, "test", (1,), 0.5)])
    journal.flush()
    journal.close()
    with pytest.raises(UsageError, match="was started from a program of its own; start it from there"):
        stored_request(tmp_path / "run", {})


def test_why_a_run_cannot_go_on_is_one_line(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "run")
    journal.state(request_facts({**to_plain(request_of("imagenet")), "version": "3\n  more"}, IDENTITY))
    journal.close()
    with pytest.raises(UsageError, match=r"a request of version 3\\n  more; this evaltools"):
        stored_request(tmp_path / "run", {})


def test_a_run_that_says_nothing_of_what_it_is_of_does_not_go_on(tmp_path: Path) -> None:
    run_dir = stored(request_of("imagenet"), tmp_path / "run")
    rewrite(run_dir, facts=lambda facts: {name: fact for name, fact in facts.items() if name != IDENTITY_FACT.name})
    with pytest.raises(UsageError, match="cannot go on: it does not say what it is of"):
        stored_request(run_dir, {})


def test_another_library_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    library = tmp_path / "a.so"
    library.write_bytes(b"built once")
    request = replace(request_of("imagenet", "--config=x: external_delegate_path=a.so"), folder=tmp_path)
    run_dir = stored(
        request, tmp_path / "run", replace(IDENTITY, libraries={"a.so": sha256(b"built once").hexdigest()})
    )
    assert stored_request(run_dir, {}).tests[0].libraries == [library]
    library.write_bytes(b"built twice")
    with pytest.raises(UsageError, match=r"cannot go on: the library a\.so was [0-9a-f]{64}, now it is [0-9a-f]{64}; "):
        stored_request(run_dir, {})


@pytest.mark.parametrize("command", ["resume", "merge"])
def test_the_flag_that_is_gone_is_refused_with_what_to_do(command: str, tmp_path: Path) -> None:
    run_dir = stored(request_of("imagenet"), tmp_path / "run")
    done = evaltools_here(command, str(run_dir), "--trust")
    assert (done.code, done.out) == (2, "")
    assert "take only those of people you know" in done.err
