"""``evaltools device run benchmark``: what the result says of files, times and places, and how the command ends."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from evaltools.datasets import sample
from tests.cli.device import runs as device_runs
from tests.device.fixtures import Devices
from tests.device.real_device import Network

pytestmark = pytest.mark.once
MODEL = str(sample.model_file("float32"))
BENCHMARK = ("benchmark", f"--graph={MODEL}", "--num_runs=5", "--min_secs=0.01", "--warmup_min_secs=0.01")


def result_of(output: Path) -> Any:
    return json.loads(output.read_text())


def test_this_computer_and_every_device_have_rows_with_the_names_that_files_have_here_and_the_time_of_the_command(
    network: Network, devices: Devices, rounding_delegate: Path, tmp_path: Path
) -> None:
    output = tmp_path / "result.json"
    serials = [device.serial for device in devices]
    arguments = [*BENCHMARK, f"--external_delegate_path={rounding_delegate}", "--taskset=1"]
    command = device_runs.on_devices(network, serials, arguments, "--include_host", f"--output_file_path={output}")
    done = device_runs.run(command)
    assert done.code == 0, done.err
    result = result_of(output)
    assert [row["name"] for row in result["rows"]] == [f"test@{place}" for place in ("host", *serials)]
    assert done.out.count("INFO: Inference timings in us:") == 1 + len(serials)
    assert [model["file"] for model in result["models"]] == [MODEL]
    assert done.out.count(f"INFO: Graph: [{MODEL}]\n") == 1 + len(serials)
    assert "/store/" not in done.out
    for row in result["rows"]:
        assert f"--external_delegate_path={rounding_delegate}" in row["flags"]
        assert row["delegates"][0]["options"]["external_delegate_path"] == str(rounding_delegate)
    each = result["device_run"]["work"]
    assert {work["serial"] for work in each} == set(serials)
    pythons = [device["python"] for device in result["device_run"]["devices"]]
    assert pythons == [platform.python_version()] * len(serials)
    assert result["environment"]["elapsed_s"] > max(work["elapsed_s"] for work in each)
    assert result["environment"]["started_at"] <= min(work["started_at"] for work in each)
    assert result["environment"]["command"][:4] == ["evaltools", "device", "run", "benchmark"]
