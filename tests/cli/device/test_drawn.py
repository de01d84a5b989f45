"""Runs on drawn examples with the real daemon: the reference here, only what is drawn on the devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.datasets import sample
from evaltools.result.evaluation import EvaluationResult
from evaltools.result_file import read_result
from tests.cli.device import runs as device_runs
from tests.cli.evaluate.sample_runs import coco, imagenet
from tests.command import evaltools_here
from tests.device.fixtures import Devices
from tests.device.real_device import Network

pytestmark = pytest.mark.once
PICTURES = 60
LIMIT = ("--sample=informed", "--stop=decided", "--limit=agreement >= 70 %")


def here(arguments: list[str], output: Path) -> EvaluationResult:
    completed = evaltools_here(*arguments, f"--output_file_path={output}")
    assert completed.code == 0, completed.err
    return read_result(output)


def test_devices_get_the_drawn_pictures_alone_and_decide_as_this_computer_does(
    network: Network, devices: Devices, tmp_path: Path
) -> None:
    arguments = imagenet("--use_xnnpack=true", pictures=PICTURES)
    before = here([*arguments, *LIMIT, f"--run_dir={tmp_path / 'before'}"], tmp_path / "here.json").sampling
    assert before is not None
    expected = replace(before, reference_run=str(tmp_path / "before"))
    output = tmp_path / "devices.json"
    serials = [device.serial for device in devices]
    arguments += [*LIMIT, f"--reference_run={tmp_path / 'before'}"]
    command = device_runs.on_devices(network, serials, arguments, f"--output_file_path={output}")
    done = device_runs.run([*command, f"--run_dir={tmp_path / 'run'}"])
    assert done.code == 0, done.err
    result = read_result(output)
    assert result.sampling == expected
    assert result.sampling.answers["test"].answer == "kept"
    assert len(expected.drawn) < PICTURES
    assert result.device_run is not None
    assert sum(part.examples for part in result.device_run.parts) == len(expected.drawn)
    assert {part.serial for part in result.device_run.parts} == set(serials)
    assert [entry.place for entry in result.configurations] == ["host", ""]
    assert result.latency_comparisons == []
    assert "the speed of reference" not in done.err
    assert result.configurations[1].finished_examples == len(expected.drawn)
    later = tmp_path / "later.json"
    again = device_runs.run(["resume", str(tmp_path / "run"), f"--output_file_path={later}", "--adb=no adb"])
    assert again.code == 0, again.err
    assert read_result(later).sampling == expected
    assert device_runs.device_run(later)["parts"] == json.loads(output.read_text())["device_run"]["parts"]


def test_drawn_pictures_of_a_detector_are_decided_on_devices(
    network: Network, devices: Devices, tmp_path: Path
) -> None:
    limit = ("--sample=informed", "--stop=decided", "--limit=ar_100 drop <= 30 points")
    arguments = coco("--use_xnnpack=true", *limit, pictures=40)
    expected = here(arguments, tmp_path / "here.json").sampling
    output = tmp_path / "devices.json"
    command = device_runs.on_devices(network, [devices[0].serial], arguments, f"--output_file_path={output}")
    done = device_runs.run(command)
    assert done.code == 0, done.err
    result = read_result(output)
    assert result.sampling == expected
    assert result.examples_done < 40


def test_a_task_that_is_held_against_the_reference_has_it_beside_it_on_the_device(
    network: Network, devices: Devices, tmp_path: Path
) -> None:
    folder = Path(sample.__file__).resolve().parent / "text"
    flags = (f"--table={folder / 'texts.csv'}", "--use_xnnpack=true", "--sample=informed")
    arguments = ["text", f"--model_file={folder / 'model.tflite'}", *flags, "--limit=same_answer >= 50 %"]
    expected = here(arguments, tmp_path / "here.json")
    output = tmp_path / "device.json"
    command = device_runs.on_devices(network, [devices[0].serial], arguments, f"--output_file_path={output}")
    done = device_runs.run(command)
    assert done.code == 0, done.err
    result = read_result(output)
    assert (result.sampling, result.part.means) == (expected.sampling, expected.part.means)


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--split=each", "leave --split and --include_host out"),
        ("--parts=3", "drawn examples make a part each time"),
        ("--latency_examples=5", "is that of all drawn examples"),
    ],
)
def test_flags_without_effect_on_drawn_examples_are_refused(flag: str, message: str) -> None:
    completed = evaltools_here("device", "run", *imagenet(*LIMIT, flag, "--output_file_path=result.json"))
    assert completed.code == 2
    assert message in completed.err


def test_what_no_device_can_run_is_not_measured_and_the_others_are_decided(
    network: Network, devices: Devices, tmp_path: Path
) -> None:
    arguments = imagenet("--config=test: use_xnnpack=true", "--config=gone: use_nnapi=true", *LIMIT, pictures=PICTURES)
    output = tmp_path / "devices.json"
    serials = [device.serial for device in devices]
    done = device_runs.run(device_runs.on_devices(network, serials, arguments, f"--output_file_path={output}"))
    assert done.code == 3, done.err
    result = read_result(output)
    assert [entry.status for entry in result.configurations] == ["measured", "measured", "not measured"]
    assert result.sampling is not None
    assert {name: answer.answer for name, answer in result.sampling.answers.items()} == {"test": "kept"}
    assert result.device_run is not None
    assert result.device_run.left_out == ()
    assert {part.serial for part in result.device_run.parts} == set(serials)
