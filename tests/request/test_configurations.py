"""Which configurations a command line describes."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.errors import UsageError
from evaltools.request import Request
from tests.requests import request_of


def described(*arguments: str) -> Request:
    return request_of("imagenet", *arguments)


def test_nothing_given_is_the_runtimes_default_against_builtin_kernels() -> None:
    found = described()
    assert [configuration.name for configuration in found.configurations] == ["reference", "test"]
    assert found.reference is not None
    assert found.reference.to_flags() == ["--kernels=builtin"]
    assert found.tests[0].to_flags() == []


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["--config=a: use_gpu=true"], ["a"]),
        (["--config=a: use_gpu=true", "--num_images=3"], ["a"]),
        (["--config=a: use_gpu=true", "--use_xnnpack=false"], ["test", "a"]),
        (["--config=a: use_gpu=true", "--num_interpreter_threads=2"], ["test", "a"]),
        (["--config=b:", "--config=a : kernels=reference"], ["b", "a"]),
        (["--config=a:", "--sweep=threads:1,2", "--use_xnnpack"], ["num_threads=1", "num_threads=2", "a"]),
    ],
)
def test_flags_on_the_command_line_describe_one_more_configuration(arguments: list[str], names: list[str]) -> None:
    assert [configuration.name for configuration in described(*arguments).tests] == names


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("runtime=tflite_runtime", ["--runtime=tflite_runtime", "--kernels=builtin"]),
        ("kernels=default", []),
        ("kernels=reference num_interpreter_threads=2", ["--kernels=reference", "--num_interpreter_threads=2"]),
    ],
)
def test_a_reference_keeps_builtin_kernels_unless_it_states_others(text: str, flags: list[str]) -> None:
    reference = described(f"--reference={text}").reference
    assert reference is not None
    assert reference.to_flags() == flags


def test_no_reference() -> None:
    assert described("--reference=none").reference is None


def test_configurations_from_a_file_follow_those_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("y: use_gpu=true\nz: {runtime: litert}\n")
    found = described(f"--configs={tmp_path / 'c.yaml'}", "--config=a: use_nnapi=true")
    assert [configuration.name for configuration in found.tests] == ["a", "y", "z"]


@pytest.mark.parametrize(
    "content", [b"a: [", b"\xff\xfe\x00", b"!!python/object/apply:os.system ['true']", b"a: &x {b: *x}"]
)
def test_a_file_that_is_no_yaml_of_configurations_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c.yaml").write_bytes(content)
    with pytest.raises(UsageError, match=r"c\.yaml"):
        described(f"--configs={tmp_path / 'c.yaml'}")


@pytest.mark.parametrize("name", ["reference", "test"])
def test_a_name_stands_for_one_configuration(name: str) -> None:
    with pytest.raises(UsageError, match="two configurations are named"):
        described("--use_xnnpack=false", f"--config={name}: kernels=builtin")


def test_merge_keys_in_yaml_work(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "base: &base {use_xnnpack: true, num_threads: 2}\n"
        "wide: &wide {<<: *base, num_threads: 4}\n"
        "wider: {<<: *wide, runtime: litert}\n"
    )
    tests = described(f"--configs={tmp_path / 'c.yaml'}").tests
    assert [configuration.num_threads for configuration in tests] == [2, 4, 4]
    assert [configuration.xnnpack for configuration in tests] == [True, True, True]


def test_of_merged_mappings_the_first_wins_and_own_keys_before_all(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        "few: &few {num_threads: 1, use_xnnpack: true}\n"
        "many: &many {num_threads: 4}\n"
        "merged: {<<: [*few, *many]}\n"
        "own: {num_threads: 2, <<: [*few, *many]}\n"
    )
    tests = described(f"--configs={tmp_path / 'c.yaml'}").tests
    assert [configuration.num_threads for configuration in tests] == [1, 4, 1, 2]
    assert [configuration.xnnpack for configuration in tests] == [True, None, True, True]


def test_merging_what_is_no_mapping_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("base: &base {use_gpu: true}\ntest: {<<: [*base, use_nnapi]}\n")
    with pytest.raises(UsageError, match="line 2 merges what is not a mapping"):
        described(f"--configs={tmp_path / 'c.yaml'}")


def test_a_key_that_is_a_list_of_lists_of_lists_is_refused_at_once(tmp_path: Path) -> None:
    lines = [f"a0: &a0 [{', '.join(['x'] * 10)}]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    (tmp_path / "c.yaml").write_text("\n".join([*lines, "z: {? *a11 : 1}"]))
    with pytest.raises(UsageError, match="found unhashable key"):
        described(f"--configs={tmp_path / 'c.yaml'}")


def test_merges_of_very_many_keys_are_refused(tmp_path: Path) -> None:
    wide = ", ".join(f"k{number}: 1" for number in range(300))
    lines = [f"a: &a {{{wide}}}", *(f"b{number}: {{<<: *a}}" for number in range(40))]
    (tmp_path / "c.yaml").write_text("\n".join(lines))
    with pytest.raises(UsageError, match="it merges more than 10000 keys"):
        described(f"--configs={tmp_path / 'c.yaml'}")


def test_merges_of_merges_cost_no_more_than_their_keys(tmp_path: Path) -> None:
    lines = ["a0: &a0 {use_xnnpack: true, num_threads: 2}"]
    for level in range(1, 20):
        merged = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} {{<<: [{merged}]}}")
    (tmp_path / "c.yaml").write_text("\n".join(lines))
    assert {configuration.num_threads for configuration in described(f"--configs={tmp_path / 'c.yaml'}").tests} == {2}


def test_a_key_that_stands_twice_in_yaml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("a: use_gpu=true\na: use_nnapi=true\n")
    with pytest.raises(UsageError, match="the key 'a' stands twice"):
        described(f"--configs={tmp_path / 'c.yaml'}")
