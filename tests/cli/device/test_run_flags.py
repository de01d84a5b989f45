"""The flags of ``evaltools device run``: what they mean, what is refused and in which words, and the help."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.adb.store import DEFAULT_ROOT
from evaltools.cli.device import run_task as run
from evaltools.commands.device_run import command_on_devices
from evaltools.device.flags import BY_NAME, PARAMETERS, DeviceFlags, read_device_flags, read_root
from evaltools.errors import UsageError
from evaltools.request import Options, Request
from evaltools.request.flags import parse_flags
from evaltools.runs.stored import changed


def read(*words: str) -> DeviceFlags:
    return read_device_flags(parse_flags("device run imagenet", "", "", {"devices": PARAMETERS}, words).options())


@pytest.mark.parametrize(
    ("word", "name", "value"),
    [
        ("--serials=all", "all_devices", True),
        ("--serials=10.0.0.2:5555, R5,R5", "serials", ("10.0.0.2:5555", "R5")),
        ("--adb=/opt/adb", "adb", "/opt/adb"),
        ("--device_python=/usr/bin/python3.12", "python", "/usr/bin/python3.12"),
        ("--device_folder=/data/local/tmp/mine/", "root", "/data/local/tmp/mine"),
        ("--include_host", "include_host", True),
        ("--cool_down=35", "cool_down_c", 35.0),
        ("--cool_down=0", "cool_down_c", None),
        ("--taskset=0xF0", "taskset", "f0"),
        ("--taskset=big", "taskset", "big"),
        ("--force", "takes_by_force", True),
        ("--device_patience=0.5", "patience_s", 0.5),
        ("--device_timeout=60", "silence_s", 60.0),
    ],
)
def test_each_flag_sets_what_it_says_and_nothing_else(word: str, name: str, value: object) -> None:
    found, default = read(word), read()
    assert (default.program, default.serials, default.patience_s) == ("evaltools", (), 180.0)
    assert getattr(found, name) == value
    others = [field for field in DeviceFlags.__struct_fields__ if field != name]
    assert [field for field in others if getattr(found, field) != getattr(default, field)] == []


def test_the_wheels_of_a_folder_are_taken_in_order(tmp_path: Path) -> None:
    for name in ("b.whl", "a.whl", "notes.txt"):
        (tmp_path / name).touch()
    assert read(f"--device_wheels={tmp_path}").wheels == (tmp_path / "a.whl", tmp_path / "b.whl")


@pytest.mark.parametrize(
    ("word", "program"),
    [
        ("--native_binary=/x", "native"),
        ("--app_apk=/x", "app"),
        ("--app_package=x", "app"),
        ("--app_activity=x", "app"),
        ("--device_python=x", "evaltools"),
    ],
)
def test_a_flag_of_one_program_is_refused_with_the_others(word: str, program: str) -> None:
    for other in ("evaltools", "native", "app"):
        words = (f"--device_program={other}", word)
        if other == program:
            assert read(*words).program == program
            continue
        said = (
            f"with --device_program={other}; leave one"
            if other != "evaltools"
            else f"without --device_program={program}"
        )
        with pytest.raises(UsageError, match=f"has no effect {said}"):
            read(*words)


def test_the_folder_on_the_device_is_one_of_its_own() -> None:
    """It is deleted whole by ``evaltools device clean``."""
    assert read_root(DEFAULT_ROOT) == DEFAULT_ROOT
    assert read_root("/sdcard/eval tools///") == "/sdcard/eval tools"
    for text in ("", "/", "//", "/sdcard", "/sdcard/", "data/local/tmp/x", "/data/../x", "/data/local/..", "/a/b\nc",
                 "//sdcard", "/./sdcard", "/data/./local", "/data//local", "/sdcard/."):  # fmt: skip
        with pytest.raises(UsageError, match="give an absolute path of its own on the device, as /data/local/tmp/eval"):
            read_root(text)
    with pytest.raises(UsageError, match="the path has a colon, at which the search path of Python is split"):
        read_root("/data/local/tmp/e:v")


# ----- the command


def test_the_tasks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("--help", "-h", "help"):
        assert run([word]) == 0
        listed = capsys.readouterr().out.partition("\ntasks:\n")[2].partition("\n\n")[0].splitlines()
        names = [line.split()[0] for line in listed]
        assert (names[:3], names[-1:]) == (["imagenet", "coco", "inference-diff"], ["benchmark"])


TASKS = ("imagenet", "coco", "inference-diff", "diff", "benchmark")
OF_EXECUTORS = {"at", "executor", "ray_address", "ray_tasks", "shard_index", "shard_count"}
WITHOUT_EFFECT = {
    "imagenet": {*OF_EXECUTORS, "trace"},
    "coco": {*OF_EXECUTORS, "trace"},
    "inference-diff": {*OF_EXECUTORS, "trace", "save_outputs", "locate"},
    "diff": {*OF_EXECUTORS, "trace", "save_outputs", "locate"},
    "benchmark": {
        "output_filepath", "result_file_path", "op_profiling_output_file", "profiling_output_csv_file", "native_lines"
    },
}  # fmt: skip
BESIDE = {
    "ray_address": ["--executor=ray"],
    "ray_tasks": ["--executor=ray"],
    "op_profiling_output_file": ["--enable_op_profiling"],
    "profiling_output_csv_file": ["--enable_op_profiling"],
}
CHOSEN = {"executor": "ray", "locate": "true"}


def flags_of(task: str) -> set[str]:
    return set(command_on_devices(task).parameters)


@pytest.mark.parametrize("task", ["coco", "inference-diff", "benchmark"])
def test_the_help_of_a_task_has_its_own_flags_and_those_about_devices(
    task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        run([task, "--help=all"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: evaltools device run {task} --flag=value ...\n")
    for name in [*BY_NAME, *flags_of(task) - WITHOUT_EFFECT[task]]:
        assert f"  --{name} " in shown
    for name in WITHOUT_EFFECT[task]:
        assert f"  --{name} " not in shown
    assert "\ndevices:\n" in shown
    assert f"evaltools {task}" in shown
    codes = shown.partition("\nexit codes, of several the first:\n")[2]
    assert "there are no figures" in codes.partition("  130  ")[2]
    assert "evaltools gate" not in codes


@pytest.mark.parametrize(("task", "name"), [(task, name) for task in TASKS for name in sorted(WITHOUT_EFFECT[task])])
def test_flags_that_the_help_leaves_out_are_refused_with_the_reason(task: str, name: str) -> None:
    needed = [*required(task), *BESIDE.get(name, ())]
    value = CHOSEN.get(name, "2")
    with pytest.raises(UsageError, match=f"--{name} has no effect on devices: [a-z].{{15}}"):
        run([task, f"--{name}={value}", *needed])


def test_the_folder_on_the_device_cannot_be_another_when_a_run_goes_on() -> None:
    """The paths of files there are part of what the run is."""
    stored = Request("imagenet", Options({}, {}), None, (), devices=Options({}, BY_NAME))
    later = changed(stored, Options({"device_patience": 5.0}, BY_NAME), lambda parameter: parameter.may_differ)
    assert later.devices == Options({"device_patience": 5.0}, BY_NAME)
    with pytest.raises(UsageError, match="--device_folder=/data/x: a run goes on with the flags that it began with"):
        changed(stored, Options({"device_folder": "/data/x"}, BY_NAME), lambda parameter: parameter.may_differ)


REQUIRED = {
    "imagenet": ["model_file", "ground_truth_images_path", "ground_truth_labels", "model_output_labels"],
    "coco": ["model_file", "ground_truth_images_path"],
    "inference-diff": ["model_file"],
    "diff": ["model_file"],
    "benchmark": ["graph"],
}


def required(task: str) -> list[str]:
    return [f"--{name}=x" for name in REQUIRED[task]]
