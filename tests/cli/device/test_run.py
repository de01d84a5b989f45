"""``evaltools device run`` with the real adb client and the real daemon: a device gives what this computer gives."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evaltools.datasets import sample
from evaltools.device.evaluation import folder_of
from tests import tiny_models
from tests.cli.device import runs as device_runs
from tests.cli.evaluate.sample_runs import coco, figures, figures_here, imagenet, inference_diff, journal_rows
from tests.device.fixtures import Devices
from tests.device.real_device import Network
from tests.tasks.framework import task_files
from tests.tasks.framework.task_files import write_task, write_values

pytestmark = pytest.mark.once


def serials(devices: Devices) -> list[str]:
    return [device.serial for device in devices]


def test_a_device_gives_the_result_of_this_computer(network: Network, devices: Devices, tmp_path: Path) -> None:
    arguments = imagenet("--record_examples=true", "--use_xnnpack=true")
    expected = figures_here(arguments, tmp_path / "here.json")
    output = tmp_path / "devices.json"
    command = device_runs.on_devices(network, serials(devices)[1:], arguments, f"--output_file_path={output}")
    done = device_runs.run([*command, f"--run_dir={tmp_path / 'run'}"])
    assert done.code == 0, done.err
    assert figures(output) == expected
    assert [line for line in done.out.splitlines() if "Top-1 " in line] == ["INFO: Top-1 Accuracy: 0.925"]
    told = device_runs.device_run(output)
    (work,), (facts,) = told["work"], told["devices"]
    assert (work["serial"], facts["model"]) == (serials(devices)[1], "Second model")
    assert work["before"]["battery_temperature"] == 415
    assert (work["lost"], work["elapsed_s"] > 0) == ([], True)
    assert "Second model" in done.err
    assert device_runs.left_runs(devices) == []
    later = tmp_path / "later.json"
    again = device_runs.run(["resume", str(tmp_path / "run"), f"--output_file_path={later}", "--device_patience=9"])
    assert again.code == 0, again.err
    assert figures(later) == expected
    assert device_runs.device_run(later)["work"] == told["work"], "nothing was done again"
    (folder,) = (tmp_path / "run").glob("*/run")
    rows = journal_rows(folder)
    assert sorted(rows) == [(example, name) for example in range(40) for name in ("reference", "test")]
    assert not list((devices[1].folder / device_runs.ROOT / "kept").iterdir())


def same_there(
    network: Network,
    serials: Sequence[str],
    arguments: Sequence[str],
    folder: Path,
    *flags: str,
    here: Sequence[str] = (),
) -> Any:
    """The figures that devices give, which are those of this computer; ``here`` stands before the arguments here."""
    expected, output = figures_here([*here, *arguments], folder / "here.json"), folder / "devices.json"
    done = device_runs.run(device_runs.on_devices(network, serials, arguments, f"--output_file_path={output}", *flags))
    assert done.code == 0, done.err
    assert figures(output) == expected
    return expected


def test_a_random_sample_is_the_same_on_devices(network: Network, devices: Devices, tmp_path: Path) -> None:
    """A device makes the order of all pictures for itself, also of those that it does not get."""
    order = ("--order=random", "--seed=3", "--bootstrap_resamples=0")
    arguments = coco("--record_examples=true", "--use_xnnpack=true", *order, pictures=9)
    same_there(network, serials(devices)[:1], arguments, tmp_path)


def test_a_task_of_ones_own_travels_with_its_file_and_the_modules_beside_it(
    network: Network, devices: Devices, tmp_path: Path
) -> None:
    (tmp_path / "model.tflite").write_bytes(tiny_models.vector_input(length=4))
    (tmp_path / "steps" / "inner").mkdir(parents=True)
    (tmp_path / "steps" / "__init__.py").touch()
    (tmp_path / "steps" / "inner" / "scale.py").write_text("SCALE = 0.5\n")
    (tmp_path / "near.py").write_text("from steps.inner.scale import SCALE as NEAR\n")
    content = task_files.BRIGHTNESS.replace("import numpy as np", "import numpy as np\nfrom near import NEAR")
    task = f"{write_task(tmp_path, content.replace('distance < 0.5', 'distance < NEAR'))}:brightness"
    options = [f"--model_file={tmp_path / 'model.tflite'}", f"--values={write_values(tmp_path, 40)}"]
    arguments = [task, *options, "--times=2", "--kernels=default"]
    same_there(network, serials(devices)[:1], arguments, tmp_path, here=["run"])


def test_each_device_and_this_computer_are_compared_example_by_example(
    network: Network, devices: Devices, tmp_path: Path
) -> None:
    output = tmp_path / "devices.json"
    arguments = imagenet("--record_examples=true", pictures=12)
    command = device_runs.on_devices(network, serials(devices), arguments, "--include_host=true")
    done = device_runs.run([*command, f"--output_file_path={output}"])
    assert done.code == 0, done.err
    result = json.loads(output.read_text())
    places = ["host", *serials(devices)]
    assert [entry["name"] for entry in result["rows"]] == [
        f"{name}@{place}" for place in places for name in ("reference", "test")
    ]
    assert [entry["role"] for entry in result["rows"]] == ["reference", *["test"] * 5]
    pairs = [(entry["name"], each["against"]) for entry in result["rows"] for each in entry.get("verdicts", ())]
    first, second, third = places
    assert {(f"test@{second}", f"test@{first}"), (f"test@{third}", f"reference@{first}")} <= set(pairs)
    assert len(pairs) == 7, "no reference of another place is compared with another one"
    assert {entry["figures"]["agreement"]["value"] for entry in result["rows"][1:]} == {1.0}
    preprocessing = {entry["place"]: entry["times"]["preprocessing"]["avg_us"] for entry in result["rows"]}
    printed = [line for line in done.out.splitlines() if "Preprocessing latency" in line]
    assert printed == [f"INFO: Preprocessing latency: avg={preprocessing[place]:g}(us), std_dev=0(us)"
                       for place in ["host", *[name for name in serials(devices) for _ in range(2)]]]  # fmt: skip
    assert result["environment"]["elapsed_s"] > sum(work["elapsed_s"] for work in result["device_run"]["work"]) / 2
    answers = result["tables"]["examples"]
    answered = set(zip(answers["example"], answers["configuration"], strict=True))
    assert len(answered) == 12 * len(result["rows"])


def test_an_inference_diff_has_the_devices_noise_floor(network: Network, devices: Devices, tmp_path: Path) -> None:
    arguments = inference_diff(f"--input_images={sample.images_dir()}")
    expected = same_there(network, serials(devices)[:1], arguments, tmp_path)
    assert "CPU variants" in json.dumps(expected["blocks"])
    assert expected["given"]["input 0"].startswith(f"pictures in {sample.images_dir()}, ")


def test_an_inference_diff_of_devices_against_this_computer(network: Network, devices: Devices, tmp_path: Path) -> None:
    expected = figures_here(inference_diff(), tmp_path / "here.json")["rows"][1]["parts"]
    output = tmp_path / "devices.json"
    command = device_runs.on_devices(network, serials(devices), inference_diff())
    done = device_runs.run([*command, f"--output_file_path={output}"])
    assert done.code == 0, done.err
    result = json.loads(output.read_text())
    tests = [entry for entry in result["rows"] if entry["role"] == "test"]
    assert [entry["name"] for entry in tests] == [f"test@{name}" for name in serials(devices)]
    assert result["given"]["input 0"] == "the inputs of the reference, which ran on this computer"
    for entry in tests:
        assert entry["parts"][0]["figures"] == expected[0]["figures"]


def test_a_package_that_a_device_lacks_is_missed_before_anything_is_run(
    network: Network, devices: Devices, tmp_path: Path
) -> None:
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    (lacking / "pycocotools.py").write_text("raise ImportError('no pycocotools on this board')")
    python = tmp_path / "python"
    python.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(lacking))}:$PYTHONPATH exec {shlex.quote(sys.executable)} "$@"\n'
    )
    python.chmod(0o755)
    done = device_runs.run(device_runs.on_devices(network, serials(devices)[:1], coco(pictures=4), python=python))
    assert done.code == 3, done.err
    assert f"evaltools coco cannot be started with {python}" in done.err
    assert "no pycocotools on this board" in done.err
    assert "exit code 1 and no records" not in done.err


def test_ctrl_c_leaves_nothing_running(network: Network, devices: Devices, tmp_path: Path) -> None:
    held = device_runs.Held(tmp_path)
    flags = [f"--run_dir={tmp_path / 'run'}"]
    command = device_runs.on_devices(network, serials(devices)[:1], imagenet(), *flags, python=held.python)
    process = device_runs.start(command)
    device_runs.wait_for(lambda: any(map(device_runs.is_running, devices)), process)
    process.send_signal(signal.SIGINT)
    done = device_runs.finish(process)
    assert done.code == 130, done.err
    assert f"; evaltools resume {tmp_path / 'run'} goes on\n" in done.err
    assert device_runs.left_running() == []
    assert device_runs.left_runs(devices) == []
    held.let_go()
    resumed = device_runs.run(["resume", str(tmp_path / "run"), f"--output_file_path={tmp_path / 'resumed.json'}"])
    assert resumed.code == 0, resumed.err
    assert figures(tmp_path / "resumed.json") == figures_here(imagenet(), tmp_path / "here.json")
    merged = device_runs.run(["merge", str(tmp_path / "run")])
    assert (merged.code, "a run on devices makes its result itself" in merged.err) == (2, True)


def test_a_run_of_every_device_goes_on_with_those_it_began_with(
    network: Network, devices: Devices, tmp_path: Path
) -> None:
    """What a device that is away has done counts; if it has not, it is left out by name."""
    run_dir = tmp_path / "run"
    flags = [f"--run_dir={run_dir}"]
    command = device_runs.on_devices(network, serials(devices), imagenet(pictures=8), *flags)
    whole = device_runs.run([*command, f"--output_file_path={tmp_path / 'whole.json'}"])
    assert whole.code == 0, whole.err
    again = ["resume", str(run_dir), f"--output_file_path={tmp_path / 'again.json'}"]
    without = device_runs.run([*again, "--adb=/no/such/adb"])
    assert without.code == 0, "nothing is left to be done: " + without.err
    assert figures(tmp_path / "again.json") == figures(tmp_path / "whole.json")

    first, second = serials(devices)
    shutil.rmtree(folder_of(run_dir, second))
    some = device_runs.run([*again, f"--serials={first}"])
    assert some.code == 3, some.err
    assert f"{second} began this run and is not among the devices now" in some.err
    assert {entry["place"] for entry in json.loads((tmp_path / "again.json").read_text())["rows"]} == {first}
    (left_out,) = device_runs.device_run(tmp_path / "again.json")["left_out"]
    assert left_out["serial"] == second

    inner = device_runs.run(["resume", str(next(run_dir.glob("*/run")))])
    assert inner.code == 2
