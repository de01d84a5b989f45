"""What devices are told: the same command, with files under the names that they have there."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaltools.cli.configurations import configurations_of_files_and_texts
from evaltools.cli.device_run import TASKS
from evaltools.cli.device_words import DeviceWords, device_words, host_words
from evaltools.cli.flags import GivenFlags, parse_flags
from evaltools.device.store import remote_path
from evaltools.errors import DataError, UsageError

ROOT = "/data/local/tmp/evaltools"
FILES = (
    "model_file", "graph", "ground_truth_labels", "model_output_labels", "denylist_file_path",
    "ground_truth_annotations", "ground_truth_proto", "reference_model_file",
)  # fmt: skip
LIBRARIES = ("external_delegate_path", "stable_delegate_settings_file")
PICTURES = ("ground_truth_images_path", "input_images")
LEFT_HERE = (
    "output_file_path", "detections_path", "disagreements_path", "output_filepath", "result_file_path",
    "op_profiling_output_file", "plot", "accuracy", "trace", "run_dir", "progress",
)  # fmt: skip
OF_THE_DEVICE = (
    "xnnpack_weight_cache_file_path", "nnapi_support_library_path", "hexagon_lib_path", "npu_dispatch_library_dir",
    "npu_compiler_plugin_dir", "delegate_serialize_dir",
)  # fmt: skip
"""Paths that mean something on the device alone."""
NO_PATHS = (
    "normalization", "workers", "compat", "runtime", "kernels", "delegate", "gpu_backend", "gpu_wait_type",
    "nnapi_execution_preference", "nnapi_execution_priority", "nnapi_accelerator_name", "npu_vendor", "npu_options",
    "external_delegate_options", "delegate_serialize_token", "resize", "output_map", "class_offset", "coco_evaluator",
    "signature", "input_range", "input_shape", "max_avg_error", "max_quanta", "min_snr_db", "signature_to_run_for",
    "input_layer", "input_layer_shape", "input_layer_value_range", "op_profiling_output_mode", "perf_options_list",
    "sweep", "cpu_affinity",
)  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "my model.tflite"
    path.write_bytes(b"a model")
    return path


@pytest.fixture
def remote(model: Path) -> str:
    return remote_path(ROOT, model)


def told(*given: tuple[str, str]) -> DeviceWords:
    return device_words(flags(*given), ROOT)


def flags(*given: tuple[str, str]) -> GivenFlags:
    groups = [group for module in TASKS.values() for group in importlib.import_module(module).GROUPS.values()]
    return GivenFlags(given, {parameter.name: parameter for group in groups for parameter in group})


def typed(task: str, *words: str) -> GivenFlags:
    return parse_flags(task, "", "", importlib.import_module(TASKS[task]).GROUPS, words)


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_its_place_in_the_store_of_the_device(name: str, model: Path, remote: str) -> None:
    made = told((name, str(model)))
    assert made.words == [f"--{name}={remote}"]
    assert made.files == {model: remote}
    with pytest.raises(DataError, match=r"none\.tflite cannot be read"):
        told((name, "none.tflite"))


def test_a_file_is_sent_once_however_often_it_is_named(model: Path, remote: str) -> None:
    made = told(("model_file", str(model)), ("reference_model_file", str(model)))
    assert made.words == [f"--model_file={remote}", f"--reference_model_file={remote}"]
    assert made.files == {model: remote}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_lies_here_or_there(name: str, model: Path, remote: str) -> None:
    assert told((name, str(model))).words == [f"--{name}={remote}"]
    there = told((name, "/vendor/lib64/libexternal.so"))
    assert (there.words, there.files) == ([f"--{name}=/vendor/lib64/libexternal.so"], {})
    with pytest.raises(DataError, match=f"--{name}=lib.so: there is no such file here, and it is no absolute path"):
        told((name, "lib.so"))


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_lie_in_a_folder_of_the_part_named_like_the_flag(name: str, tmp_path: Path) -> None:
    made = told((name, str(tmp_path)))
    assert made.words == [f"--{name}={name}"]
    assert (made.pictures, made.folders, made.files) == ({name: tmp_path}, {}, {})


def test_a_saved_reference_is_sent_whole(tmp_path: Path) -> None:
    made = told(("load_reference", str(tmp_path / "saved")))
    assert made.words == ["--load_reference=folder-0"]
    assert made.folders == {"folder-0": tmp_path / "saved"}


@pytest.mark.parametrize("name", LEFT_HERE)
def test_what_becomes_of_the_records_is_decided_here(name: str) -> None:
    assert told((name, "x"), ("num_images", "5")).words == ["--num_images=5"]
    assert host_words(flags((name, "x"), ("num_images", "5"))) == ["--num_images=5"]


@pytest.mark.parametrize(
    "name", ["label_check", "noise_floor_runs", "bootstrap_resamples", "margin", "record_examples", "debug_mode"]
)
def test_what_is_done_once_is_not_asked_of_every_part(name: str) -> None:
    assert told((name, "1")).words == []
    assert host_words(flags((name, "1"))) == []


@pytest.mark.parametrize("name", [*OF_THE_DEVICE, *NO_PATHS])
def test_everything_else_is_told_as_it_was_typed(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Even where a file of that name is here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").touch()
    made = told((name, "text"), (name, ""))
    assert made.words == [f"--{name}=text", f"--{name}="]
    assert (made.files, made.pictures, made.folders) == ({}, {}, {})


def test_the_order_is_that_of_typing(model: Path, remote: str) -> None:
    given = [("use_xnnpack", "true"), ("model_file", str(model)), ("config", "a: use_gpu=true"), ("use_gpu", "false")]
    assert told(*given).words == [
        "--use_xnnpack=true",
        f"--model_file={remote}",
        "--config=a: use_gpu=true",
        "--use_gpu=false",
    ]
    assert host_words(flags(*given)) == [f"--{name}={text}" for name, text in given], "here files keep their names"


# ----- inputs


@pytest.mark.parametrize("prefix", ["", "image=", "a=b=", "="])
def test_input_files_keep_the_name_of_their_input(prefix: str, model: Path, remote: str, tmp_path: Path) -> None:
    assert told(("input_files", f"{prefix}{model}")).words == [f"--input_files={prefix}{remote}"]
    (tmp_path / "many").mkdir()
    made = told(("input_files", f"{prefix}{tmp_path / 'many'}"))
    assert made.words == [f"--input_files={prefix}folder-0"]
    assert made.folders == {"folder-0": tmp_path / "many"}


def test_a_file_whose_name_looks_like_name_and_path_is_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As inference-diff itself reads it: a file that is there goes before a name."""
    monkeypatch.chdir(tmp_path)
    for name in ("x=y.npy", "y.npy"):
        Path(name).write_text(name)
    assert list(told(("input_files", "x=y.npy")).files) == [Path("x=y.npy")]
    assert list(told(("input_files", "z=y.npy")).files) == [Path("y.npy")]


def test_folders_are_told_apart_and_each_is_sent_once(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    given = [("input_files", f"{name}={folder}") for name, folder in zip("abc", [*folders, folders[0]], strict=True)]
    made = told(*given, ("load_reference", str(tmp_path / "three")))
    assert made.words == [
        "--input_files=a=folder-0",
        "--input_files=b=folder-1",
        "--input_files=c=folder-0",
        "--load_reference=folder-2",
    ]
    assert made.folders == {"folder-0": folders[0], "folder-1": folders[1], "folder-2": tmp_path / "three"}


@pytest.mark.parametrize("text", ["none.npy", "image=none.npy", "image=", "=", "=="])
def test_input_files_that_are_not_there_are_named(text: str) -> None:
    """Nothing behind the name, as an unset variable leaves it, is not the folder that the command is given in."""
    with pytest.raises(DataError, match=f"--input_files={text}: no such file or folder"):
        told(("input_files", text))


def test_layer_files_are_pairs_with_commas_between(model: Path, remote: str, tmp_path: Path) -> None:
    """A colon in a name or path is written twice, there as well as here."""
    odd = tmp_path / "a:b::c.bin"
    odd.write_bytes(b"other")
    doubled = str(odd).replace(":", "::")
    made = told(("input_layer_value_files", f"ids:{model},in::0:{doubled}"))
    there = remote_path(ROOT, odd).replace(":", "::")
    assert there.endswith("/a::b::::c.bin")
    assert made.words == [f"--input_layer_value_files=ids:{remote},in::0:{there}"]
    assert made.files == {model: remote, odd: remote_path(ROOT, odd)}


@pytest.mark.parametrize("text", ["ids", "ids:", "ids,other", "::"])
def test_what_is_no_pair_is_left_to_the_benchmark_to_refuse(text: str) -> None:
    made = told(("input_layer_value_files", text))
    assert (made.words, made.files) == ([f"--input_layer_value_files={text}"], {})


# ----- configurations


def test_files_within_a_configuration_have_their_places_too(model: Path, remote: str) -> None:
    text = f'ext: --external_delegate_path="{model}" num_threads=2 external_delegate_options="a:1;b:2"'
    made = told(("config", text), ("reference", f"kernels=builtin external_delegate_path='{model}'"))
    first, second = made.words
    name, _, flags = first.partition(": ")
    assert name == "--config=ext"
    assert shlex.split(flags) == [
        f"external_delegate_path={remote}", "num_threads=2", "external_delegate_options=a:1;b:2"
    ]  # fmt: skip
    assert shlex.split(second.removeprefix("--reference=")) == ["kernels=builtin", f"external_delegate_path={remote}"]
    assert made.files == {model: remote}


@pytest.mark.parametrize("text", ["none", " none ", ""])
def test_no_reference_and_the_usual_one_stay_what_they_are(text: str) -> None:
    assert told(("reference", text)).words == [f"--reference={text}"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("config", "a: use_xnpack", "'use_xnpack': no such flag. Did you mean use_xnnpack?"),
        ("config", "a: 'use_gpu=true", "cannot be split into flags: No closing quotation"),
        ("reference", "nonsense", "'nonsense': no such flag"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_refused_here(name: str, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        told((name, text))


def configurations(words: Sequence[str], native: bool = False) -> list[object]:
    return list(configurations_of_files_and_texts(typed("imagenet", *words), native))


@pytest.mark.parametrize("native", [False, True])
def test_configurations_of_a_yaml_file_become_the_same_ones_on_the_command_line(
    native: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the native tool understands flags otherwise, so do devices."""
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(
        "'gpu, fp16': use_gpu=true gpu_precision_loss_allowed=true\n"
        "named: {delegate: xnnpack, num_threads: 4}\n"
        "external: {external_delegate_path: /vendor/lib.so, external_delegate_options: 'a:1;b:\"2 ; 3\"'}\n"
        "plain:\n"
    )
    compat = ["--compat=native"] if native else []
    here = ["--configs=c.yaml", *compat]
    made = device_words(typed("imagenet", *here), ROOT)
    assert configurations(made.words, native) == configurations(here, native)
    assert len(configurations(made.words, native)) == 4


@pytest.mark.parametrize("name", ["a:b", "a=b"])
def test_a_name_that_no_command_line_can_hold_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(f"'{name}': use_gpu=true\n")
    with pytest.raises(UsageError, match=f"--configs: '{name}' holds ':' or '='; give it another name for devices"):
        told(("configs", str(path)))


def test_what_devices_are_told_is_a_command_that_evaltools_reads(model: Path, remote: str, tmp_path: Path) -> None:
    typed_here = typed(
        "inference-diff", "--model-file", str(model), "--config", f'x: external_delegate_path="{model}"',
        "--nouse_xnnpack", "--input_files", f"in={model}", "--num_runs=7", "--output_file_path=r.json",
    )  # fmt: skip
    there = typed("inference-diff", *device_words(typed_here, ROOT).words)
    assert there.text("model_file") == remote
    assert (there.is_on("use_xnnpack"), "use_xnnpack" in there) == (False, True)
    assert there.texts("input_files") == [f"in={remote}"]
    assert (there.number("num_runs"), "output_file_path" in there) == (7, False)
    (configuration,) = configurations_of_files_and_texts(there)
    assert [str(path) for path in configuration.libraries] == [remote]
