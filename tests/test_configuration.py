"""Configurations from flags, texts and YAML."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import evaltools as et
from evaltools.configuration import Configuration, configurations_from_yaml
from evaltools.errors import UsageError
from evaltools.known_tasks import task_command
from evaltools.request.flags import parse_flags, read_tests


def test_delegate_by_name_ranks_before_use_flags() -> None:
    configuration = Configuration.from_text("x", "use_nnapi=true delegate=gpu")
    assert [delegate.name for delegate in configuration.delegates.requested] == ["GPU", "NNAPI"]


def test_delegate_xnnpack_forces_fp16_only_as_the_native_tool() -> None:
    assert not Configuration.from_text("x", "delegate=xnnpack").delegates.value("xnnpack_force_fp16")
    assert Configuration.from_text("x", "delegate=xnnpack", native=True).delegates.value("xnnpack_force_fp16")


@pytest.mark.parametrize(("text", "expected"), [("", None), ("use_xnnpack", True), ("nouse_xnnpack", False)])
def test_use_xnnpack_has_three_states(text: str, expected: bool | None) -> None:
    assert Configuration.from_text("x", text).xnnpack is expected


def test_a_configuration_prints_back_to_itself() -> None:
    text = "runtime=litert kernels=builtin num_interpreter_threads=2 external_delegate_path='/a b.so'"
    configuration = Configuration.from_text("x", text)
    assert (
        Configuration.from_flags(
            "x",
            [tuple(flag[2:].split("=", 1)) for flag in configuration.to_flags()],  # type: ignore[misc]
        )
        == configuration
    )


@pytest.mark.parametrize(
    ("text", "threads"),
    [("", 1), ("num_interpreter_threads=0", 1), ("num_interpreter_threads=-1", -1), ("num_threads=3", 3)],
)
def test_threads(text: str, threads: int) -> None:
    assert Configuration.from_text("x", text).num_threads == threads


def test_the_native_tool_ignores_num_threads() -> None:
    assert Configuration.from_text("x", "num_threads=3", native=True).num_threads == 1


def test_the_native_tools_know_one_external_delegate() -> None:
    with pytest.raises(UsageError, match="load only the first --external_delegate_path; give one"):
        Configuration.from_text("x", "external_delegate_path=a external_delegate_path=b", native=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runtme=litert", "--runtme: no such flag in a configuration. Did you mean runtime?"),
        ("runtime", "--runtime needs a value"),
        ("runtime=tensorflow", "use one of auto, litert, tflite_runtime, compiled, emulated."),
        ("runtime=litert runtime=tflite_runtime", "--runtime is given twice"),
        ("num_threads=2 num_interpreter_threads=3", "contradict each other"),
        ("num_interpreter_threads=-2", "use 1 to 1024, or -1"),
        ("kernels=reference use_xnnpack=true", "contradict each other"),
        ("use_gpu='", "cannot be split into flags"),
        ("delegate=", "--delegate is empty; use one of xnnpack,"),
    ],
)
def test_mistakes_name_the_configuration_and_the_flag(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Configuration.from_text("x", text)
    assert str(caught.value).startswith("configuration 'x': ")
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["", "  ", "a\nINFO: Top-1 Accuracy: 1", "\x1b[31mred", "x" * 61])
def test_a_name_that_could_deceive_a_reader_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not a name for a configuration"):
        Configuration(name)


def test_yaml_takes_texts_and_mappings() -> None:
    document = yaml.safe_load("one: use_gpu=true\ntwo: {runtime: litert, use_xnnpack: false, num-threads: 2}\nplain:\n")
    one, two, plain = configurations_from_yaml(document, "file.yaml")
    assert one.to_flags() == ["--use_gpu=true"]
    assert two.to_flags() == ["--runtime=litert", "--num_interpreter_threads=2", "--use_xnnpack=false"]
    assert plain == Configuration("plain")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.yaml: expected a mapping of names to flags"),
        ("- a", "f.yaml: expected a mapping of names to flags"),
        ("1: use_gpu=true", "f.yaml: 1: a configuration's name must be text, got int 1"),
        ("a: {use_gpu: [1]}", "f.yaml: a: use_gpu: expected true, false, a number or a text, got list [1]"),
        ("a: {use_gpuu: true}", "Did you mean use_gpu?"),
        ("a: 3", "f.yaml: a: expected flags as a text or a mapping, got int 3"),
    ],
)
def test_yaml_mistakes_name_the_place(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        configurations_from_yaml(yaml.safe_load(text), "f.yaml")
    assert message in str(caught.value)


def test_threads_is_a_name_of_the_flag_wherever_configurations_are_written() -> None:
    two = Configuration.from_text("test", "num_interpreter_threads=2")
    assert Configuration.from_text("test", "threads=2") == two
    assert configurations_from_yaml({"test": {"threads": 2}}, "configs.yaml") == [two]
    for task in ("imagenet", "inference_diff"):
        flags = parse_flags(task, "", "", task_command(task).groups, ["--threads=2"], is_whole=False)
        assert read_tests(flags, False, Path()) == [two]
    assert et.Configuration(threads=2).named("test") == two
