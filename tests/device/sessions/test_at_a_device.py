"""``--at=adb:SERIAL --native_binary``: tasks over the real daemon, with the figures of this computer."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.adb import detached
from evaltools.adb.client import Adb, Answer, Link
from evaltools.configuration import Configuration
from evaltools.engine.journal import temporary_journal
from evaltools.errors import MachineLost
from evaltools.model import read_model
from evaltools.model.cut import CuttableModel
from evaltools.operators.bench import Bench
from evaltools.operators.part import Part
from evaltools.runs.one_pass import RUNS_TO_REPEAT
from evaltools.runtime.registry import open_session
from tests.benchmark_model import write_benchmark_model
from tests.cli.evaluate.test_own_task import ONE_FUNCTION
from tests.command import evaltools_here
from tests.device.fault_proxy import FaultProxy
from tests.device.faults import Fault, ended_server, restarted_daemon
from tests.device.fixtures import Devices
from tests.device.real_device import Network
from tests.locate_models import NET_OPERATORS
from tests.runtime.native.test_here import COCO, FLOAT, IMAGENET, PLANTED, SAMPLE, figures, located

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
    assert f"{devices[0].serial}: Real daemon (EV100), Adreno (TM) 740, 28.7 C" in done.err
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


@pytest.mark.parametrize("task", ["coco", "own"])
def test_other_tasks_give_the_figures_of_the_desk(task: str, devices: Devices, binary: Path, tmp_path: Path) -> None:
    """All of them on this computer: tests/runtime/native/test_here.py."""
    (tmp_path / "own.py").write_text(ONE_FUNCTION)
    own = ("run", f"{tmp_path / 'own.py'}:surest", f"{FLOAT}", f"--images={SAMPLE / 'images'}")
    config = f"phone: native_binary={binary} use_xnnpack=false"
    there = (f"--at=adb:{devices[0].serial}", "--config", config, "--config", "here: use_xnnpack=false")
    words = COCO if task == "coco" else own
    done = evaltools_here(*words, *there, f"--output_file_path={tmp_path / 'result.json'}")
    assert done.code == 0, done.err
    rows = rows_of(tmp_path / "result.json")
    here, phone = figures(rows["here"]), figures(rows["phone"])
    shared = {name: value for name, value in here.items() if name in phone}
    assert {"ap", "sure"} & set(shared)
    assert {name: phone[name] for name in shared} == shared
    assert rows["phone"]["runtime"]["machine"] == "Real daemon (EV100)"


@pytest.mark.parametrize(("name", "place", "amount"), PLANTED[:1])
def test_locate_names_the_planted_operator_and_leaves_what_shows_it_there(
    name: str,
    place: int,
    amount: float,
    devices: Devices,
    network: Network,
    tmp_path: Path,
    faulty_delegate: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ADB", str(network.adb))
    device, bundle = devices[0], tmp_path / "bundle"
    own = (f"--at=adb:{device.serial}", f"--operators={max(0, place - 1)}-{place + 1}", f"--bundle={bundle}")
    done = located(name, place, amount, tmp_path, faulty_delegate, *own)
    assert done.code == 0, done.err
    assert done.out.startswith(f"operator at fault: #{place} {NET_OPERATORS[place]}"), done.out
    readme = (bundle / "README.md").read_text()
    assert "on Real daemon (EV100)." in readme
    assert "wrong in 1 of 1 runs" in readme
    commands = readme.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert [command.split()[:2] for command in commands] == [["adb", "push"], ["adb", "shell"], ["adb", "exec-out"]]
    environment = {**os.environ, "ANDROID_SERIAL": device.serial, "PATH": f"{network.adb.parent}:{os.environ['PATH']}"}
    ran = subprocess.run(
        ["sh", "-c", "\n".join(commands)], cwd=bundle, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1, ran
    assert "wrong in 1 of 1 runs:" in ran.stdout


@pytest.mark.parametrize("fault", [restarted_daemon, ended_server])
def test_what_dies_in_a_batch_loses_nothing(
    fault: Fault, binary: Path, own_client: Adb, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_client.connect(proxy.serial)
    configuration = Configuration.from_text("c", f"native_binary={binary} device={proxy.serial} kernels=builtin")
    session = open_session(read_model(FLOAT), configuration)
    inputs = [[np.full(spec.shape, 0.1 * number, spec.dtype) for spec in session.inputs] for number in range(3)]
    plain = open_session(read_model(FLOAT), Configuration("here", kernels="builtin"))
    wanted = [plain.run(each).outputs[0].tobytes() for each in inputs]
    wait = detached.wait

    def wait_behind_the_fault(*arguments: Any) -> Answer:
        fault(proxy, own_client)
        return wait(*arguments)

    monkeypatch.setattr("evaltools.adb.detached.wait", wait_behind_the_fault)
    outcomes = session.run_block(inputs, 1)  # type: ignore[attr-defined]
    assert [each.outputs[0].tobytes() for each in outcomes] == wanted
    session.close()


def test_a_search_takes_a_device_that_is_away_for_no_finding(binary: Path, tmp_path: Path) -> None:
    model, journal = read_model(FLOAT), temporary_journal()
    bench = Bench(model, Configuration("reference", kernels="builtin"), tmp_path, journal, 60.0)
    inputs = CuttableModel(model.read()).graph_inputs
    bench.capture([[np.zeros(each.shape, each.dtype) for each in model.inputs]], inputs)
    part = Part(0, 0, Configuration.from_text("c", f"native_binary={binary} device=127.0.0.1:9"))
    with pytest.raises(MachineLost, match="127.0.0.1:9"):
        bench.measure(part)
    bench.close()
    assert journal.fact(part.key) is None


@pytest.fixture
def small_disk(devices: Devices, client: Adb) -> Iterator[Link]:
    """The second device, with a disk of 1 MiB for what is sent."""
    link = Link(client, devices[1].serial)
    root = "/data/local/tmp/evaltools"
    assert link.shell(f"mkdir -p {root} && mount -t tmpfs -o size=1m tmpfs {root}").code == 0
    yield link
    assert link.shell(f"umount {root}").code == 0


def test_a_device_that_is_full_ends_the_run_and_resume_goes_on(small_disk: Link, binary: Path, tmp_path: Path) -> None:
    (binary.parent / "faults").write_text("fill 10")
    config = f"phone: native_binary={binary} use_xnnpack=false"
    words = (*IMAGENET, f"--at=adb:{small_disk.serial}", "--config", config, "--config", "here: use_xnnpack=false")
    done = evaltools_here(*words, f"--output_file_path={tmp_path / 'r.json'}", f"--run_dir={tmp_path / 'run'}")
    assert done.code == 3, done.err
    assert "space" in done.err
    assert "evaltools resume goes on" in done.err
    (binary.parent / "faults").unlink()
    assert small_disk.shell("rm /data/local/tmp/evaltools/sessions/filler").code == 0
    started = int((binary.parent / "count").read_text())
    again = evaltools_here("resume", f"{tmp_path / 'run'}")
    assert again.code == 0, again.err
    assert int((binary.parent / "count").read_text()) - started == 1 + 4 + RUNS_TO_REPEAT
    rows = rows_of(tmp_path / "r.json")
    here, phone = figures(rows["here"]), figures(rows["phone"])
    assert {name for name in here if name in phone and here[name] != phone[name]} == set()
