"""Command lines of native evaluations, and what is refused because they would ignore it."""

from __future__ import annotations

from typing import Final

import pytest

from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration
from evaltools.delegates import DELEGATES, PARAMETERS
from evaltools.device.native_program import configuration_flags, refuse_options, task_flags
from evaltools.errors import UsageError
from evaltools.known_tasks import task_command
from evaltools.native.logs.evaluation import NativeTask
from evaltools.request import Options

TASKS: Final[tuple[NativeTask, ...]] = ("imagenet", "coco", "inference_diff")
SHOWN: Final = ("progress", "plot", "report", "output_format", "quiet", "verbose")
USED_HERE: Final[dict[NativeTask, set[str]]] = {
    "imagenet": {
        "model_file", "model_output_labels", "ground_truth_images_path", "ground_truth_labels", "denylist_file_path",
        "num_images", "output_file_path", "label_check", *SHOWN,
    },
    "coco": {
        "model_file", "model_output_labels", "ground_truth_images_path", "ground_truth_annotations",
        "ground_truth_proto", "num_images", "output_file_path", "coco_evaluator", "bootstrap_resamples",
        "margin", "record_examples", *SHOWN,
    },
    "inference_diff": {"model_file", "num_runs", "output_file_path", "max_avg_error", *SHOWN},
}  # fmt: skip
"""Flags that have an effect here, before and after a native tool runs, or ask for what happens anyway."""
OF_CONFIGURATIONS: Final = {"config", "configs", "sweep", "reference", "allow_fallback", "compat"}


def configured(text: str) -> Configuration:
    return Configuration.from_text("test", text)


def words_of(text: str) -> list[str]:
    return configuration_flags(configured(text), {})


def test_the_flags_of_the_tasks() -> None:
    assert task_flags("imagenet", "i", "l", "t", None) == [
        "--ground_truth_images_path=i",
        "--model_output_labels=l",
        "--ground_truth_labels=t",
    ]
    coco = ["--ground_truth_images_path=i", "--model_output_labels=l"]
    assert task_flags("coco", "i", "l", "t", None) == [*coco, "--ground_truth_proto=t", "--debug_mode=true"]
    assert task_flags("coco", "i", "l", "", None) == [*coco, "--debug_mode=true"]
    assert task_flags("inference_diff", "", "", "", 7) == ["--num_runs=7"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        ("kernels=default", []),
        ("kernels=builtin", ["--use_xnnpack=false"]),
        ("kernels=builtin use_xnnpack=false", ["--use_xnnpack=false"]),
        ("kernels=builtin use_xnnpack=true", ["--use_xnnpack=true"]),
        ("kernels=builtin use_gpu=true", ["--use_gpu=true", "--use_xnnpack=false"]),
        ("use_nnapi=true use_gpu=true", ["--use_nnapi=true", "--use_gpu=true"]),
        ("use_gpu=true delegate=nnapi gpu_backend=cl", ["--use_nnapi=true", "--use_gpu=true", "--gpu_backend=cl"]),
        ("delegate=xnnpack", ["--use_xnnpack=true"]),
    ],
)
def test_kernels_and_delegates_in_their_order(text: str, words: list[str]) -> None:
    assert words_of(text) == ["--num_interpreter_threads=1", *words]


def test_files_get_the_paths_that_they_have_on_the_device() -> None:
    text = "external_delegate_path=lib/x.so external_delegate_options='a:1;b:\"two\"' delegate_serialize_dir=/x"
    with pytest.raises(UsageError, match="no effect"):
        words_of(text)
    words = configuration_flags(
        configured("external_delegate_path=lib/x.so external_delegate_options='a:1;b:\"two\"'"), {"lib/x.so": "/d/x.so"}
    )
    assert words[1:] == ["--external_delegate_path=/d/x.so", "--external_delegate_options=a:1;b:two"]
    gpu = "use_gpu=true delegate_serialize_dir=/sdcard/cache delegate_serialize_token=t"
    assert "--delegate_serialize_dir=/sdcard/cache" in words_of(gpu)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("runtime=litert", "--runtime=litert is a runtime for Python, which a native tool is not"),
        ("kernels=reference", "--kernels=reference: the native tools have no such kernels; use --kernels=builtin"),
        ("use_npu=true npu_vendor=qualcomm", "--use_npu: only ai-edge-litert's CompiledModel has it"),
        ("use_gpu=true gpu_infinite_float_capping=true", "--gpu_infinite_float_capping: only ai-edge-litert's"),
        ("external_delegate_path=a.so external_delegate_per_worker=true", "a native tool has one worker"),
        (
            "external_delegate_path=a.so external_delegate_path=b.so",
            "is given 2 times; the native tools take the first",
        ),
        ("external_delegate_path=a.so external_delegate_options='k:\"/a:b\"'", "the value of 'k' holds ':' or ';'"),
    ],
)
def test_a_configuration_that_native_tools_cannot_have_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match="configuration 'test': ") as caught:
        words_of(text)
    assert said in str(caught.value)


def given(task: NativeTask, *pairs: tuple[str, str]) -> Options:
    return Options.of(dict(pairs), task_command(task).parameters)


OTHER_VALUES: Final = {"bool": ("true", "false"), "int32": ("987", "986"), "float": ("0.987", "0.986")}


def is_refused(task: NativeTask, name: str) -> bool:
    parameter = given(task).parameters[name]
    if parameter.refused_on_devices:
        return True
    others = parameter.choices[1:] or OTHER_VALUES.get(parameter.type, ("a", "b"))
    try:
        for text in others:
            refuse_options(given(task, (name, str(text))), "native")
    except UsageError:
        return True
    return False


@pytest.mark.parametrize("task", TASKS)
def test_every_flag_of_the_task_has_an_effect_or_is_refused(task: NativeTask) -> None:
    """Where it has none, its declaration says so."""
    ours = given(task).parameters.keys() - CONFIGURATION_PARAMETERS.keys() - OF_CONFIGURATIONS
    assert ours - {name for name in ours if is_refused(task, name)} == USED_HERE[task]


def test_every_delegate_flag_is_printed_or_refused() -> None:
    printed = {name for delegate in DELEGATES for name in (parameter.name for parameter in delegate.parameters)}
    refused = {name for name, parameter in PARAMETERS.items() if parameter.not_native}
    assert refused <= printed <= PARAMETERS.keys()


@pytest.mark.parametrize(
    ("task", "name", "text"),
    [
        ("imagenet", "label_offset", "1"),
        ("coco", "output_map", "boxes=1,classes=3,scores=0,count=2"),
        ("inference_diff", "seed", "2"),
    ],
)
def test_a_flag_without_effect_is_refused_with_a_reason_and_a_way_out(task: NativeTask, name: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        refuse_options(given(task, (name, text)), "native")
    message = str(caught.value)
    assert message.startswith(f"--{name}={text} has no effect with --device_program=native: ")
    assert message.endswith("; leave it out, or take --device_program=evaltools")


@pytest.mark.parametrize(
    ("task", "name", "text"),
    [
        ("imagenet", "label_offset", "0"),
        ("coco", "class_offset", "1"),
        ("inference_diff", "warmup_runs", "0"),
        ("inference_diff", "max_avg_error", "0.5"),
    ],
)
def test_what_happens_anyway_may_be_asked_for(task: NativeTask, name: str, text: str) -> None:
    refuse_options(given(task, (name, text)), "native")
