"""``evaltools device run locate``: the search there finds what it finds here, whatever happens to link and device."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.datasets import sample
from evaltools.device.adb.adb import Adb
from tests import locate_models
from tests.cli.device import runs as device_runs
from tests.command import Completed, evaltools_here
from tests.device.fault_proxy import FaultProxy
from tests.device.faults import away
from tests.device.fixtures import Devices
from tests.device.real_device import Network, wait_until

pytestmark = pytest.mark.once
MODELS = locate_models.all_models()
QUICK = ("--num_inputs=2", "--num_runs=10", "--progress=none")
FIGURES = ("verdict", "culprits", "operators", "outputs", "compiles", "stopped")


def written(folder: Path, name: str = "net") -> Path:
    path = folder / f"{name.replace(' ', '_')}.tflite"
    path.write_bytes(MODELS[name])
    return path


def planted(delegate: Path, options: str = "tensor:total;fault:scale;amount:1.2") -> tuple[str, ...]:
    return (f"--external_delegate_path={delegate}", f"--external_delegate_options={options}", "--use_xnnpack=false")


def command_of(
    network: Network, serial: str, model: Path, *flags: str, python: str | Path = sys.executable
) -> list[str]:
    return device_runs.on_devices(network, [serial], ["locate", str(model), *QUICK, *flags], python=python)


def found_in(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output.read_text())
    return found


def found_here(model: Path, flags: Sequence[str], output: Path) -> tuple[Completed, dict[str, Any]]:
    done = evaltools_here("locate", str(model), *QUICK, f"--output={output}", *flags)
    assert done.code == 0, done.err
    return done, found_in(output)


def require_nothing_left(devices: Devices) -> None:
    wait_until(lambda: not device_runs.left_running(), f"these still run: {device_runs.left_running()}")
    assert device_runs.left_runs(devices) == []


def test_the_planted_operator_is_named_as_here(
    network: Network, devices: Devices, faulty_delegate: Path, tmp_path: Path
) -> None:
    model, serial = written(tmp_path), devices[0].serial
    output, bundle = tmp_path / "there.json", tmp_path / "bundle"
    fault = planted(faulty_delegate)
    done = device_runs.run(command_of(network, serial, model, *fault, f"--output={output}", f"--bundle={bundle}"))
    assert done.code == 0, done.err
    here, expected = found_here(model, fault, tmp_path / "here.json")
    assert done.out.startswith("operator at fault: #3 ADD")
    assert done.out.splitlines()[2:] == here.out.splitlines()[2:]
    found = found_in(output)
    assert {name: found[name] for name in FIGURES} == {name: expected[name] for name in FIGURES}
    assert found["model"]["file"] == str(model)
    assert f"--external_delegate_path={faulty_delegate}" in found["configuration"]["flags"]
    assert "/store/" not in output.read_text()
    assert [part["serial"] for part in found["device_run"]["parts"]] == [serial]
    assert found["environment"]["command"][:4] == ["evaltools", "device", "run", "locate"]
    assert found["bundle"]["reproduced"]
    assert {path.name for path in bundle.iterdir()} == set(found["bundle"]["files"])
    assert found_in(bundle / "result.json") == found
    require_nothing_left(devices)


def test_a_hang_there_is_a_finding(network: Network, devices: Devices, rounding_delegate: Path, tmp_path: Path) -> None:
    output = tmp_path / "there.json"
    fault = planted(rounding_delegate, "ops:depthwise;fail:hang")
    flags = (*fault, "--operators=0-1", "--example_timeout=3", f"--output={output}")
    done = device_runs.run(command_of(network, devices[0].serial, written(tmp_path), *flags))
    assert done.code == 0, done.err
    found = found_in(output)
    assert found["verdict"]["kind"] == "crash"
    assert [operator["status"] for operator in found["operators"]] == ["stays on the CPU", "crashes alone"]
    assert "no answer within 3 s" in found["operators"][1]["reason"]
    require_nothing_left(devices)


def test_pictures_and_the_other_model_are_sent(network: Network, devices: Devices, tmp_path: Path) -> None:
    model, output = sample.model_file("int8"), tmp_path / "there.json"
    flags = (f"--reference_model_file={sample.model_file('float32')}", f"--input_images={sample.images_dir()}")
    done = device_runs.run(command_of(network, devices[0].serial, model, *flags, f"--output={output}"))
    assert done.code == 0, done.err
    _, expected = found_here(model, flags, tmp_path / "here.json")
    found = found_in(output)
    assert found["verdict"]["kind"] == "compared by name"
    assert {name: found[name] for name in FIGURES} == {name: expected[name] for name in FIGURES}
    assert found["inputs"] == expected["inputs"]


def test_arrays_are_sent(network: Network, devices: Devices, tmp_path: Path) -> None:
    model, output = written(tmp_path), tmp_path / "there.json"
    picture = np.random.default_rng(3).normal(size=locate_models.NET_SHAPE).astype(np.float32)
    np.save(tmp_path / "picture.npy", picture)
    np.savez(tmp_path / "saved.npz", stem=np.zeros((1, 8, 8, 8), np.float32))
    flags = (f"--reference_tensors={tmp_path / 'saved.npz'}", f"--input_files={tmp_path / 'picture.npy'}")
    command = device_runs.on_devices(network, [devices[0].serial], ["locate", str(model), *flags], f"--output={output}")
    done = device_runs.run(command)
    assert done.code == 0, done.err
    here = evaltools_here("locate", str(model), *flags, f"--output={tmp_path / 'here.json'}")
    assert here.code == 0, here.err
    found, expected = found_in(output), found_in(tmp_path / "here.json")
    assert found["operators"][0]["status"] == "compared"
    assert {name: found[name] for name in FIGURES} == {name: expected[name] for name in FIGURES}
    assert found["inputs"] == expected["inputs"]


def test_limits_hold_there_and_the_run_folder_goes_on(
    network: Network, devices: Devices, faulty_delegate: Path, tmp_path: Path
) -> None:
    model, output, folder = written(tmp_path), tmp_path / "there.json", tmp_path / "run"
    fault = planted(faulty_delegate)
    command = command_of(network, devices[0].serial, model, *fault, f"--run_dir={folder}", f"--output={output}")
    stopped = device_runs.run([*command, "--max_compiles=4"])
    assert stopped.code == 0, stopped.err
    assert "--max_compiles=4 was reached" in stopped.out
    again = device_runs.run([*command, "--max_compiles=3"])
    assert (again.code, found_in(output)["compiles"]) == (0, 3), again.err
    resumed = device_runs.run(["resume", str(folder), "--max_compiles=0"])
    assert resumed.code == 0, resumed.err
    found, (_, whole) = found_in(output), found_here(model, fault, tmp_path / "here.json")
    assert found["compiles"] == whole["compiles"] - 4 - 3
    for name in ("verdict", "culprits", "operators", "outputs"):
        assert found[name] == whole[name], name
    other = command_of(network, devices[0].serial, model, "--use_xnnpack", f"--run_dir={folder}")
    refused = device_runs.run(other)
    assert (refused.code, "holds another run" in refused.err) == (2, True)
    kept = devices[0].folder / device_runs.ROOT / "searches"
    assert len(list(kept.iterdir())) == 1
    assert device_runs.run(["device", "clean", f"--adb={network.adb}", f"--serials={devices[0].serial}"]).code == 0
    assert not kept.exists()


def test_a_limit_of_seconds_holds_there(
    network: Network, devices: Devices, faulty_delegate: Path, tmp_path: Path
) -> None:
    command = command_of(network, devices[0].serial, written(tmp_path), *planted(faulty_delegate), "--max_secs=0.001")
    done = device_runs.run(command)
    assert (done.code, "--max_secs was reached" in done.out) == (0, True), done.err


def test_a_device_that_goes_away_and_comes_back_is_waited_for(
    network: Network, devices: Devices, proxy: FaultProxy, client: Adb, faulty_delegate: Path, tmp_path: Path
) -> None:
    held, output = device_runs.Held(tmp_path), tmp_path / "there.json"
    flags = (*planted(faulty_delegate), "--device_patience=20", f"--output={output}")
    command = command_of(network, proxy.serial, written(tmp_path), *flags, python=held.python)
    process = device_runs.start([word for word in command if word != "--progress=none"] + ["--progress=json"])
    device_runs.wait_for(lambda: device_runs.is_running(devices[0]), process)
    away(proxy, client)
    held.let_go()
    done = device_runs.finish(process)
    assert done.code == 0, done.err
    assert '{"phase": "operators", "done": 10, "total": 10, ' in done.err
    found = found_in(output)
    assert found["verdict"]["operators"] == [3]
    assert found["device_run"]["parts"][0]["lost"] == []
    require_nothing_left(devices)


@pytest.mark.parametrize("end", ["lost", "interrupted"])
def test_what_was_measured_there_is_not_measured_again(
    end: str, network: Network, devices: Devices, proxy: FaultProxy, faulty_delegate: Path, tmp_path: Path
) -> None:
    held, output, folder = device_runs.Held(tmp_path), tmp_path / "there.json", tmp_path / "run"
    flags = (*planted(faulty_delegate), "--device_patience=2", f"--run_dir={folder}", f"--output={output}")
    process = device_runs.start(command_of(network, proxy.serial, written(tmp_path), *flags, python=held.python))
    runs = devices[0].folder / device_runs.ROOT / "runs"
    device_runs.wait_for(lambda: any(runs.glob("*/result.msgpack")), process)
    if end == "lost":
        proxy.go_away()
    else:
        process.send_signal(signal.SIGINT)
    done = device_runs.finish(process)
    assert done.code == (3 if end == "lost" else 130)
    assert f"evaltools resume {folder} goes on" in done.err
    assert not output.exists()
    if end == "lost":
        proxy.go_on()
        network.connect(proxy)
    held.let_go()
    resumed = device_runs.run(["resume", str(folder)])
    assert resumed.code == 0, resumed.err
    found = found_in(output)
    assert (found["verdict"]["operators"], found["compiles"]) == ([3], 0)
    require_nothing_left(devices)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--device_program=native"], "--device_program=native gives no tensors"),
        (["--operators=5-99"], "the model has the operators 0 to 7"),
        (["--serials=all"], "a search looks into one device, but there are 2"),
    ],
)
def test_what_a_search_on_a_device_cannot_do_is_said(
    flags: list[str], message: str, network: Network, devices: Devices, tmp_path: Path
) -> None:
    command = ["device", "run", "locate", str(written(tmp_path)), f"--adb={network.adb}", "--use_xnnpack", *flags]
    done = evaltools_here(*command, cwd=tmp_path)
    assert (done.code, message in done.err) == (2, True), done.err


def test_a_python_without_the_schema_is_told_by_its_name(network: Network, devices: Devices, tmp_path: Path) -> None:
    bare = tmp_path / "bare_python"
    hidden = tmp_path / "hidden" / "ai_edge_litert"
    hidden.mkdir(parents=True)
    (hidden / "__init__.py").write_text("raise ImportError('no ai_edge_litert here')")
    bare.write_text(f'#!/bin/sh\nPYTHONPATH={hidden.parent}:"$PYTHONPATH" exec {sys.executable} "$@"\n')
    bare.chmod(0o755)
    done = device_runs.run(command_of(network, devices[0].serial, written(tmp_path), "--use_xnnpack", python=bare))
    assert done.code == 3
    assert "no ai_edge_litert here" in done.err
    assert 'Traceback (most recent call last):\n  File "/' not in done.err.partition("evaltools:")[0]


def test_a_diff_looks_for_the_operator_on_the_device(
    network: Network, devices: Devices, faulty_delegate: Path, tmp_path: Path
) -> None:
    output = tmp_path / "diff.json"
    arguments = [
        "diff", str(written(tmp_path)), *planted(faulty_delegate, "tensor:project;fault:scale;amount:1.5"),
        "--config=right: use_xnnpack=true", "--locate", "--num_runs=4", "--noise_floor_runs=1", "--progress=none",
        f"--output={output}",
    ]  # fmt: skip
    done = device_runs.run(device_runs.on_devices(network, [devices[1].serial], arguments))
    assert done.code == 0, done.err
    assert "operator at fault: #2 CONV_2D" in done.err
    found = found_in(output.with_suffix(".locate.json"))
    assert (found["configuration"]["name"], found["verdict"]["operators"]) == ("test", [2])
    assert [part["serial"] for part in found["device_run"]["parts"]] == [devices[1].serial]
    refused = device_runs.run(device_runs.on_devices(network, [devices[1].serial], arguments, "--split=each"))
    assert (refused.code, "--locate has no effect with --split=each" in refused.err) == (2, True)
