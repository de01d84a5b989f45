"""What a suite expands to, and what is refused before anything runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evaltools.errors import DataError, UsageError
from evaltools.request.flags import parse_flags
from evaltools.suite.command import COMMAND, request_of_flags
from evaltools.suite.entries import Entry, entries_of
from tests.tasks.framework.task_files import write_task

SUITE = """
models = ["models", "more/*.tflite"]

[configurations]
fast = "use_xnnpack=true"
own = "external_delegate_path=lib/own.so"

[jobs.numbers]
command = "diff --num_runs=20 --input_images=photos"

[jobs.time]
command = "benchmark --num_runs=7"
models = ["a*"]
configurations = ["fast"]
"""


def entries(*words: str) -> list[Entry]:
    return entries_of(request_of_flags(parse_flags("suite", "", "", COMMAND.groups, words)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("models/a.tflite", "models/deep/b.tflite", "more/c.tflite", "models/readme.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "suite.toml").write_text(SUITE)
    return tmp_path


def told(found: list[Entry]) -> list[tuple[str, str, list[str]]]:
    return [(entry.model, entry.job, [each.name for each in entry.request.tests]) for entry in found]


def test_a_folder_is_a_diff_of_every_model_below_it_in_all_configurations(folder: Path) -> None:
    found = entries(str(folder / "models"), "--config=one: num_threads=1", "--config=two: num_threads=2")
    assert told(found) == [("a", "diff", ["one", "two"]), ("b", "diff", ["one", "two"])]
    assert {entry.request.task for entry in found} == {"inference_diff"}
    assert found[1].request.options.text("model_file") == str(folder / "models/deep/b.tflite")


def test_a_file_says_which_jobs_are_about_which_models(folder: Path) -> None:
    found = entries(str(folder / "suite.toml"), "--config=more: num_threads=2")
    everywhere = ["fast", "own", "more"]
    assert told(found) == [
        ("a", "numbers", everywhere),
        ("a", "time", ["fast"]),
        ("b", "numbers", everywhere),
        ("c", "numbers", everywhere),
    ]
    numbers, time = found[0].request, found[1].request
    assert (time.task, time.options.number("num_runs"), time.options.texts("graph")) == (
        "benchmark", 7, [str(folder / "models/a.tflite")]
    )  # fmt: skip
    assert numbers.options.text("input_images") == str(folder / "photos")


def test_paths_of_a_file_start_at_its_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    own = entries(str(folder / "suite.toml"))[0].request.tests[1]
    assert own.libraries == [folder / "lib/own.so"]


def test_paths_of_jobs_start_where_they_were_typed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    typed = request_of_flags(
        parse_flags("suite", "", "", COMMAND.groups, ["models", "--job=mine: diff --input_images=photos"])
    )
    from evaltools.runs.stored import seen_from

    monkeypatch.chdir("/")
    assert entries_of(seen_from(typed, Path("/")))[0].request.options.text("input_images") == str(folder / "photos")


def test_a_task_of_ones_own_is_a_job_and_its_file_is_meant_from_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task(folder)
    command = "run own.py:brightness --values=x"
    (folder / "suite.toml").write_text(f'models = ["models"]\n[jobs.own]\ncommand = "{command}"\n')
    monkeypatch.chdir("/")
    found = entries(str(folder / "suite.toml"))
    assert [(entry.model, entry.request.task) for entry in found] == [
        ("a", f"{folder}/own.py:brightness"),
        ("b", f"{folder}/own.py:brightness"),
    ]
    assert found[0].request.options.text("values") == str(folder / "x")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "which models? Give a folder"),
        (["nowhere"], "nowhere: no such file or folder"),
        (["empty"], "no .tflite file is below empty"),
        (["models", "models/a.tflite"], "is given twice; give each model once"),
        (["models", "--job=diff"], '--job=\'diff\': expected "NAME: command"'),
        (["models", "--job=x: doctor"], "job x: 'doctor' is not a job; use diff"),
        (["models", "--job=x: diff --nim_runs=2"], "job x: --nim_runs=2: no such flag. Did you mean --num_runs?"),
        (["models", "--job=x: diff --use_gpu"], "job x: leave configurations out of its command"),
        (["models", "--job=x: diff --output=r.json"], "job x: leave --output_file_path out of its command"),
        (["models", "--job=x: diff", "--job=x: diff"], "two jobs are named 'x'"),
        (["models", "--config=x: num_threads=1", "--config=x: num_threads=2"], "two configurations are named 'x'"),
    ],
)  # fmt: skip
def test_what_makes_no_suite(words: list[str], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "empty").mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(UsageError, match=re.escape(message)):
        entries(*words)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models = [", "suite.toml is not TOML"),
        ("", "missing required field `models`"),
        ("models = ['*.onnx']", "no model fits '*.onnx'"),
        ("models = ['/x/*']", "models '/x/*'"),
        ("models = ['models']\nconfig = 1", "unknown field `config`"),
        ("models = ['models']\n[jobs.x]\ncomand = 'diff'", "unknown field `comand` - at `$.jobs[...]`"),
        ("models = ['models']\n[jobs.x]\ncommand = ''", "jobs.x: '' is not a command"),
        ("models = ['models']\n[jobs.x]\ncommand = 'diff'\nmodels = ['z*']", "job x: no model's file name fits 'z*'"),
        ("models = ['models']\n[jobs.x]\ncommand = 'diff'\nconfigurations = ['y']", "no configuration is named 'y'"),
        ("models = ['models']\n[configurations]\nx = 'use_gpuu=1'", "suite.toml: x: configuration 'x': --use_gpuu"),
    ],
)
def test_what_is_no_file_of_a_suite(text: str, message: str, folder: Path) -> None:
    (folder / "suite.toml").write_text(text)
    with pytest.raises((UsageError, DataError), match=re.escape(message)):
        entries(str(folder / "suite.toml"))
