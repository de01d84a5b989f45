"""Configurations out of a sweep."""

from __future__ import annotations

import pytest

from evaltools.errors import UsageError
from evaltools.request.sweep import sweep_configurations


def test_a_sweep_is_every_combination_on_top_of_the_command_line() -> None:
    found = sweep_configurations(
        ["num_threads=1,2 use_xnnpack=true,false", "runtime=litert"], [("kernels", "builtin"), ("num_threads", "9")]
    )
    assert [(entry.name, entry.to_flags()) for entry in found][1:3] == [
        (
            "num_threads=1 use_xnnpack=false runtime=litert",
            ["--runtime=litert", "--kernels=builtin", "--use_xnnpack=false"],
        ),
        (
            "num_threads=2 use_xnnpack=true runtime=litert",
            ["--runtime=litert", "--kernels=builtin", "--num_interpreter_threads=2", "--use_xnnpack=true"],
        ),
    ]
    assert len(found) == 4
    assert sweep_configurations([], []) == []


def test_a_sweep_goes_before_other_names_of_its_flag() -> None:
    own = [("num_interpreter_threads", "4"), ("delegate", "xnnpack")]
    found = sweep_configurations(["num_threads=1,2 use_xnnpack=false"], own)
    assert [entry.to_flags() for entry in found] == [
        ["--use_xnnpack=false"],
        ["--num_interpreter_threads=2", "--use_xnnpack=false"],
    ]


def test_a_sweep_over_files_is_named_after_them() -> None:
    (found,) = sweep_configurations(["external_delegate_path=/a/very/long/folder/" + 9 * "x/" + "one.so"], [])
    assert found.name == "external_delegate_path=one.so"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("use_xnnpack=true,1", "twice"),
        ("num_thread=1", "not a flag of a configuration. Did you mean num_threads"),
        ("num_threads=1 num_threads=2", "given twice"),
        ("num_threads=1,,2", "empty value"),
        ("num_threads=1,1", "twice"),
        ("num_threads=x", "--sweep: --num_threads=x: not a valid value"),
        (" ", "--sweep is empty"),
        ("gpu_backend=cl", "gpu_backend=cl: --gpu_backend has no effect"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace(".", r"\.")):
        sweep_configurations([text], [])


def test_a_colon_does_for_an_equals_sign_and_threads_is_short() -> None:
    found = sweep_configurations(["threads:1,2 external_delegate_path=/d:x/one.so"], [])
    assert [entry.name for entry in found] == [f"num_threads={n} external_delegate_path=one.so" for n in (1, 2)]
    assert found[0].to_flags() == ["--external_delegate_path=/d:x/one.so"]
