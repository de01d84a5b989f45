"""What devices are told: the same request, with files under the names that they have there."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from evaltools.adb.store import remote_path, stored_folder
from evaltools.commands.device_run import command_on_devices
from evaltools.commands.evaluation import request_of_task
from evaltools.configuration import Configuration
from evaltools.device.python_program import device_request
from evaltools.errors import DataError
from evaltools.known_tasks import task_command
from evaltools.request import Options, Request, Stated
from evaltools.request.flags import parse_flags
from evaltools.request.plain import from_plain, to_plain
from evaltools.runs.places import without_host_options
from tests.cli.device.test_run_flags import TASKS
from tests.tasks.framework import task_files
from tests.tasks.framework.task_files import write_task

ROOT = "/data/local/tmp/evaltools"
FILES = (
    "model_file", "graph", "ground_truth_labels", "model_output_labels", "denylist_file_path",
    "ground_truth_annotations", "ground_truth_proto", "reference_model_file",
)  # fmt: skip
PICTURES = ("ground_truth_images_path", "input_images")
LEFT_HERE = (
    "output_file_path", "detections_path", "output_filepath", "result_file_path",
    "op_profiling_output_file", "plot", "accuracy", "trace", "run_dir", "progress",
)  # fmt: skip
OF_THE_DEVICE = (
    "xnnpack_weight_cache_file_path", "nnapi_support_library_path", "hexagon_lib_path", "dispatch_library_path",
    "compiler_plugin_library_path", "qualcomm_dlc_dir", "delegate_serialize_dir",
)  # fmt: skip
"""Paths that mean something on the device alone."""
NO_PATHS = (
    "normalization", "workers", "output_map", "signature", "input_range", "input_shape", "max_avg_error",
    "signature_to_run_for", "input_layer", "input_layer_shape", "input_layer_value_range", "perf_options_list",
)  # fmt: skip
REPEATABLE = ("input_range", "input_shape", "max_avg_error")


def named(*given: tuple[str, str], tests: Sequence[Configuration] = ()) -> Request:
    """A request with options of whatever task."""
    known = {name: each for task in TASKS for name, each in command_on_devices(task).parameters.items()}
    texts: dict[str, object] = {}
    for name, text in given:
        texts[name] = [*texts.get(name, []), text] if known[name].repeatable else text  # type: ignore[misc]
    parsed = {name: text if isinstance(text, list) else known[name].parse(str(text)) for name, text in texts.items()}
    stated = {name: tuple(value) if isinstance(value, list) else value for name, value in parsed.items()}
    return Request("imagenet", Options(stated, known), None, tuple(tests))


class Told(NamedTuple):
    """What devices are told, and what is sent for it."""

    request: Request
    files: Mapping[Path, str]
    pictures: Mapping[str, Path]
    folders: Mapping[str, Path]


def told(request: Request, libraries: Path | None = None) -> Told:
    there, sent = device_request(request, ROOT, libraries)
    return Told(there, sent.files, sent.pictures, sent.folders)


def sent(*given: tuple[str, str], tests: Sequence[Configuration] = ()) -> Told:
    return told(named(*given, tests=tests))


def options(made: Told) -> dict[str, Stated]:
    return dict(without_host_options(made.request).options.stated)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "my model.tflite"
    path.write_bytes(b"a model")
    return path


@pytest.fixture
def remote(model: Path) -> str:
    return remote_path(ROOT, model)


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_its_place_in_the_store_of_the_device(name: str, model: Path, remote: str) -> None:
    made = sent((name, str(model)))
    assert options(made) in ({name: remote}, {name: (remote,)})
    assert made.files == {model: remote}
    with pytest.raises(DataError, match=r"none\.tflite cannot be read"):
        sent((name, "none.tflite"))


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_lie_in_a_folder_of_the_part_named_after_the_flag(name: str, tmp_path: Path) -> None:
    made = sent((name, str(tmp_path)))
    assert options(made) == {name: f"evaltools-pictures-{name}"}
    assert (made.pictures, made.folders, made.files) == ({name: tmp_path}, {}, {})


@pytest.mark.parametrize("name", LEFT_HERE)
def test_what_becomes_of_the_records_is_decided_here(name: str) -> None:
    value = "none" if name == "progress" else "x"
    assert options(sent((name, value), ("num_images", "5"))) == {"num_images": 5}
    assert without_host_options(named((name, value), ("num_images", "5"))).options.stated == {"num_images": 5}


@pytest.mark.parametrize("name", ["label_check", "bootstrap_resamples", "margin", "record_examples", "debug_mode"])
def test_what_is_made_of_records_is_not_asked_of_devices(name: str) -> None:
    assert options(sent((name, "1"))) == {}


def test_a_file_of_configurations_is_not_sent_as_the_configurations_are(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("a: use_xnnpack=true\n")
    made = sent(("configs", str(tmp_path / "c.yaml")))
    assert (options(made), made.files) == ({}, {})


def test_everything_else_is_told_as_it_was_stated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Even where a file of that name is here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").touch()
    stated = [(name, "text") for name in NO_PATHS]
    made = sent(*stated)
    assert options(made) == {name: ("text",) if name in REPEATABLE else "text" for name in NO_PATHS}
    assert (made.files, made.pictures, made.folders) == ({}, {}, {})


def test_paths_of_the_device_may_name_the_folder_with_its_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is named after what is in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "libs" / "dsp").mkdir(parents=True)
    (tmp_path / "libs" / "dsp" / "libSkel.so").write_text("a library")
    folder, files = stored_folder(ROOT, tmp_path / "libs")
    assert files == {tmp_path / "libs" / "dsp" / "libSkel.so": f"{folder}/dsp/libSkel.so"}
    flags = "use_npu=true npu_vendor=qualcomm dispatch_library_path=libs compiler_plugin_library_path=/vendor/lib64"
    tests = [Configuration.from_text("test", flags)]
    made = told(named(tests=tests), tmp_path / "libs")
    assert {f"--dispatch_library_path={folder}", "--compiler_plugin_library_path=/vendor/lib64"} <= {
        *flags_there("", made)
    }
    (tmp_path / "libs" / "dsp" / "libSkel.so").write_text("another")
    assert stored_folder(ROOT, tmp_path / "libs")[0] != folder


# ----- inputs


@pytest.mark.parametrize("prefix", ["", "image=", "a=b=", "="])
def test_input_files_keep_the_name_of_their_input(prefix: str, model: Path, remote: str, tmp_path: Path) -> None:
    assert options(sent(("input_files", f"{prefix}{model}"))) == {"input_files": (f"{prefix}{remote}",)}
    (tmp_path / "many").mkdir()
    made = sent(("input_files", f"{prefix}{tmp_path / 'many'}"))
    assert options(made) == {"input_files": (f"{prefix}evaltools-folder-0",)}
    assert made.folders == {"evaltools-folder-0": tmp_path / "many"}


def test_a_file_whose_name_looks_like_name_and_path_is_that_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As inference-diff itself reads it: a file that is there goes before a name."""
    monkeypatch.chdir(tmp_path)
    for name in ("x=y.npy", "y.npy"):
        Path(name).write_text(name)
    assert list(sent(("input_files", "x=y.npy")).files) == [Path("x=y.npy")]
    assert list(sent(("input_files", "z=y.npy")).files) == [Path("y.npy")]


def test_folders_are_distinguished_and_each_is_sent_once(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    given = [("input_files", f"{name}={folder}") for name, folder in zip("abc", [*folders, folders[0]], strict=True)]
    made = sent(*given, ("load_reference", str(tmp_path / "three")))
    assert options(made) == {
        "input_files": ("a=evaltools-folder-0", "b=evaltools-folder-1", "c=evaltools-folder-0"),
        "load_reference": "evaltools-folder-2",
    }
    assert made.folders == {
        "evaltools-folder-0": folders[0],
        "evaltools-folder-1": folders[1],
        "evaltools-folder-2": tmp_path / "three",
    }


@pytest.mark.parametrize("text", ["none.npy", "image=none.npy", "image=", "=", "=="])
def test_input_files_that_are_not_there_are_named(text: str) -> None:
    """Nothing behind the name, as an unset variable leaves it, is not the folder that the command is given in."""
    with pytest.raises(DataError, match=f"--input_files={text}: no such file or folder"):
        sent(("input_files", text))


def test_layer_files_are_pairs_with_commas_between(model: Path, remote: str, tmp_path: Path) -> None:
    """A colon in a name or path is written twice, there as well as here."""
    odd = tmp_path / "a:b::c.bin"
    odd.write_bytes(b"other")
    doubled = str(odd).replace(":", "::")
    made = sent(("input_layer_value_files", f"ids:{model},in::0:{doubled}"))
    there = remote_path(ROOT, odd).replace(":", "::")
    assert there.endswith("/a::b::::c.bin")
    assert options(made) == {"input_layer_value_files": f"ids:{remote},in::0:{there}"}
    assert made.files == {model: remote, odd: remote_path(ROOT, odd)}


@pytest.mark.parametrize("text", ["ids", "ids:", "ids,other", "::"])
def test_what_is_no_pair_is_left_to_the_benchmark_to_refuse(text: str) -> None:
    made = sent(("input_layer_value_files", text))
    assert (options(made), made.files) == ({"input_layer_value_files": text}, {})


# ----- configurations


def flags_there(text: str, made: Told | None = None) -> list[str]:
    made = made or sent(tests=[Configuration.from_text("test", text)])
    (configuration,) = made.request.tests
    return configuration.to_flags()


@pytest.mark.parametrize("name", ["external_delegate_path", "stable_delegate_settings_file"])
def test_a_library_lies_here_or_there(name: str, model: Path, remote: str) -> None:
    made = sent(tests=[Configuration.from_text("test", f"{name}='{model}'")])
    assert (flags_there("", made), made.files) == ([f"--{name}={remote}"], {model: remote})
    assert flags_there(f"{name}=/vendor/lib64/libexternal.so") == [f"--{name}=/vendor/lib64/libexternal.so"]
    with pytest.raises(DataError, match=f"--{name}=a/lib.so: there is no such file here, and it is not an absolute"):
        flags_there(f"{name}=a/lib.so")


def test_the_name_of_a_library_is_looked_up_there() -> None:
    assert flags_there("external_delegate_path=libedgetpu.so.1") == ["--external_delegate_path=libedgetpu.so.1"]


@pytest.mark.parametrize("name", OF_THE_DEVICE)
def test_a_path_of_the_device_stays_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Even where a file of that name is here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").touch()
    made = told(replace(named(), tests=(configured_with(name, "text"),)))
    assert f"--{name}=text" in flags_there("", made)
    assert (made.files, made.folders) == ({}, {})


def configured_with(name: str, value: str) -> Configuration:
    configuration = Configuration("test")
    return replace(configuration, delegates=replace(configuration.delegates, given=((name, value),)))


def test_names_and_the_reference_are_those_of_here(model: Path, remote: str) -> None:
    """Also a name that no ``--config`` can hold."""
    reference = Configuration.from_text("reference", f"kernels=builtin external_delegate_path='{model}'")
    tests = (Configuration.from_text("a: b=c", "external_delegate_options='a:1;b:2' external_delegate_path=/x.so"),)
    made = told(replace(named(), reference=reference, tests=tests))
    assert made.request.reference is not None
    assert made.request.reference.to_flags() == ["--kernels=builtin", f"--external_delegate_path={remote}"]
    assert made.request.tests == tests
    assert made.files == {model: remote}


def test_what_devices_are_told_is_a_request_that_evaltools_reads(model: Path, remote: str) -> None:
    words = ("--model-file", str(model), "--config", f'x: external_delegate_path="{model}"', "--nouse_xnnpack",
             "--input_files", f"in={model}", "--num_runs=7", "--output_file_path=r.json")  # fmt: skip
    task = task_command("inference_diff")
    here = request_of_task(task, parse_flags("", "", "", task.groups, words), words)
    there = from_plain(to_plain(without_host_options(told(here).request)), {})
    assert there.options.stated == {"model_file": remote, "input_files": (f"in={remote}",), "num_runs": 7}
    assert [configuration.name for configuration in there.configurations] == ["reference", "test", "x"]
    assert [str(path) for path in there.tests[1].libraries] == [remote]
    assert (there.devices, there.command) == (None, ())


def test_modules_beside_the_file_of_a_task_lie_beside_it_there(tmp_path: Path) -> None:
    (tmp_path / "steps").mkdir()
    (tmp_path / "steps" / "scale.py").write_text("SCALE = 2\n")
    file = write_task(tmp_path, "from steps.scale import SCALE\n" + task_files.BRIGHTNESS)

    def there() -> Told:
        task = task_command(f"{file}:brightness")
        return told(Request(task.name, Options({}, task.parameters), None, ()))

    made = there()
    folder = posixpath.dirname(made.files[file])
    assert made.files == {file: f"{folder}/own.py", tmp_path / "steps" / "scale.py": f"{folder}/steps/scale.py"}
    assert made.request.task == f"{folder}/own.py:brightness"
    (tmp_path / "steps" / "scale.py").write_text("SCALE = 3.0\n")
    assert posixpath.dirname(there().files[file]) != folder
