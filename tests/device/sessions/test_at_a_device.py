"""``--at=adb:SERIAL --native_binary``: tasks over the real daemon, with the figures of this computer."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.model import read_model
from evaltools.runtime.registry import open_session
from tests.benchmark_model import write_benchmark_model
from tests.command import evaltools_here
from tests.device.fault_proxy import FaultProxy
from tests.device.fixtures import Devices
from tests.device.real_device import Network
from tests.runtime.native.test_here import FLOAT, IMAGENET, figures

pytestmark = pytest.mark.once
DEAD = 4_194_305
"""More than the number of any process."""


@pytest.fixture
def binary(tmp_path: Path, network: Network, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADB", str(network.adb))
    return write_benchmark_model(tmp_path / "program")


def rows_of(result: Path) -> dict[str, Any]:
    return {row["name"]: row for row in json.loads(result.read_text())["rows"]}


def test_a_task_gives_the_figures_of_the_desk_and_says_where_it_ran(
    devices: Devices, binary: Path, tmp_path: Path
) -> None:
    """Nothing stays there but what was sent, not even the batch of a process that was killed here."""
    left = devices[0].folder / "evaltools" / "sessions" / f"{platform.node()}.{DEAD}.0123abcd.7"
    left.mkdir(parents=True)
    (devices[0].folder / "evaltools" / ".evaltools").touch()
    config = f"phone: native_binary={binary} use_xnnpack=false"
    words = (*IMAGENET, f"--at=adb:{devices[0].serial}", "--config", config, "--config", "here: use_xnnpack=false")
    done = evaltools_here(*words, f"--output_file_path={tmp_path / 'result.json'}")
    assert done.code == 0, done.err
    rows = rows_of(tmp_path / "result.json")
    here, phone = figures(rows["here"]), figures(rows["phone"])
    assert here["top1"] == phone["top1"]
    assert {name for name in here if name in phone and here[name] != phone[name]} == set()
    assert rows["phone"]["runtime"]["machine"] == "Real daemon (EV100)"
    assert "on Real daemon (EV100)" in done.err
    assert [entry.name for entry in (devices[0].folder / "evaltools" / "sessions").iterdir()] == ["turn"]


def test_a_cable_that_is_cut_in_a_batch_loses_nothing(proxy: FaultProxy, binary: Path) -> None:
    configuration = Configuration.from_text("c", f"native_binary={binary} device={proxy.serial} kernels=builtin")
    session = open_session(read_model(FLOAT), configuration)
    inputs = [[np.full(spec.shape, 0.1 * number, spec.dtype) for spec in session.inputs] for number in range(3)]
    plain = open_session(read_model(FLOAT), Configuration("here", kernels="builtin"))
    wanted = [plain.run(each).outputs[0].tobytes() for each in inputs]
    proxy.cut_after("up", 20_000)
    outcomes = session.run_block(inputs, 1)  # type: ignore[attr-defined]
    assert [each.outputs[0].tobytes() for each in outcomes] == wanted
    session.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--at=adb:R5", "--use_gpu"], "--at=adb:R5 starts a program on the device: add --native_binary="),
        (["--at=adb:R5", "--at=arm64", "--native_binary=x"], "devices and other places are not compared in one run"),
        (["--device=R5"], "--device has no effect without --native_binary"),
        (["--native_binary=/none"], "--native_binary=/none cannot be read"),
    ],
)
def test_what_makes_no_sense_is_said(words: list[str], said: str) -> None:
    done = evaltools_here("diff", f"{FLOAT}", *words)
    assert done.code in (2, 3)
    assert said in done.err
    assert "Traceback" not in done.err
