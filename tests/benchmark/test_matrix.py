"""Configurations out of lists of options."""

from __future__ import annotations

from evaltools.benchmark.matrix import ALL_OF_NATIVE, option_configurations


def flags_of(text: str, own: list[tuple[str, str]] | None = None) -> dict[str, list[str]]:
    return {entry.name: entry.to_flags() for entry in option_configurations(text, own or [])}


def test_cpu_is_three_thread_counts_without_and_with_xnnpack() -> None:
    assert flags_of("cpu") == {
        "cpu w/ 1 threads": ["--use_xnnpack=false"],
        "cpu w/ 1 threads (xnnpack)": ["--use_xnnpack=true"],
        "cpu w/ 2 threads": ["--num_interpreter_threads=2", "--use_xnnpack=false"],
        "cpu w/ 2 threads (xnnpack)": ["--num_interpreter_threads=2", "--use_xnnpack=true"],
        "cpu w/ 4 threads": ["--num_interpreter_threads=4", "--use_xnnpack=false"],
        "cpu w/ 4 threads (xnnpack)": ["--num_interpreter_threads=4", "--use_xnnpack=true"],
    }


def test_all_has_every_kind_once() -> None:
    names = list(flags_of("all"))
    assert len(names) == len(set(names))
    assert [name for name in names if not name.startswith("cpu")] == [
        "gpu-fp16",
        "gpu-default",
        "npu",
        "nnapi(w/o accel name)",
        "dsp w/ hexagon",
        "coreml",
    ]
    assert flags_of("gpu,all, gpu") == flags_of("all")


def test_all_of_the_native_tool_has_what_a_binary_for_android_can_have() -> None:
    names = [entry.name for entry in option_configurations("all", [], ALL_OF_NATIVE)]
    assert names == [name for name in flags_of("all") if name not in ("npu", "coreml")]


def test_blanks_in_front_and_repetitions_are_forgiven() -> None:
    assert list(flags_of("dsp, gpu,dsp")) == ["dsp w/ hexagon", "gpu-fp16", "gpu-default"]


def test_what_an_option_states_goes_before_the_command_line() -> None:
    own = [("runtime", "litert"), ("num_threads", "8"), ("use_xnnpack", "true"), ("use_gpu", "true")]
    assert flags_of("cpu", own)["cpu w/ 2 threads"] == [
        "--runtime=litert",
        "--num_interpreter_threads=2",
        "--use_xnnpack=false",
    ]


def test_flags_of_a_delegate_go_only_to_options_that_switch_it_on() -> None:
    own = [("use_gpu", "true"), ("gpu_backend", "cl"), ("xnnpack_runtime_flags", "3")]
    found = flags_of("cpu,gpu", own)
    assert found["gpu-fp16"] == ["--gpu_backend=cl", "--use_gpu=true", "--gpu_precision_loss_allowed=true"]
    assert found["cpu w/ 1 threads (xnnpack)"] == ["--xnnpack_runtime_flags=3", "--use_xnnpack=true"]
    assert found["cpu w/ 1 threads"] == ["--use_xnnpack=false"]


def test_an_npu_is_that_of_qualcomm_unless_another_is_named() -> None:
    assert flags_of("npu") == {"npu": ["--use_npu=true", "--npu_vendor=qualcomm"]}
    assert flags_of("npu", [("npu_vendor", "mediatek")]) == {"npu": ["--npu_vendor=mediatek", "--use_npu=true"]}


def test_none_is_the_command_line_itself() -> None:
    """What is wrong: tests/cli/refusals.txt."""
    assert option_configurations("none", [("use_gpu", "true")]) == []
