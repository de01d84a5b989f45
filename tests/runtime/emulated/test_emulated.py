"""The NPU of a phone's chip on this computer, beside the vendors' own Python."""

from __future__ import annotations

import importlib.util
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.errors import ConfigurationUnavailable, InferenceError, UsageError
from evaltools.model import read_model
from evaltools.runtime.emulated import compiler
from evaltools.runtime.process.isolated import open_isolated
from tests.command import evaltools
from tests.runtime.emulated.bare import bare_outputs, emulator_or_skip
from tests.runtime.openers import model_of, opened, outputs, random_inputs
from tests.tflite_writer import Graph
from tests.tiny_models import add_chain, two_signatures

NPU = "use_npu=true npu_vendor=qualcomm npu_soc=SM8650"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", ["float32", "int8"])
def test_outputs_are_those_of_the_vendors_own_python_bit_for_bit(name: str, tmp_path: Path) -> None:
    emulator_or_skip()
    model = sample.model_file(name)
    session = opened(read_model(model), NPU)
    given = random_inputs(session)
    expected, report = bare_outputs(model, "SM8650", given, tmp_path)
    found = session.run(given, invocations=2).outputs
    assert [each.tobytes() for each in found] == [each.tobytes() for each in expected]
    (npu,) = session.delegation.delegates
    total = session.delegation.total_nodes
    assert f"{npu.nodes} / {total} ops offloaded to {npu.partitions} partitions" in report
    assert npu.device == f"Qualcomm SM8650, emulated by {session.facts.emulator}"


def test_what_the_npu_leaves_runs_on_the_cpu_between() -> None:
    """A detector's last operator, which no NPU has: it gets what the NPU made."""
    emulator_or_skip()
    model = read_model(sample.detection_model_file(sample.DETECTION_MODELS[0]))
    session = opened(model, NPU)
    left = session.delegation.cpu_operators
    (npu,) = session.delegation.delegates
    assert left
    assert npu.nodes == session.delegation.total_nodes - sum(left.values())
    assert set(session.delegation.refused) == set(left), "each with the vendor's reason"
    on_cpu = outputs(model, "kernels=builtin")
    for one, other in zip(session.run(random_inputs(session)).outputs, on_cpu, strict=True):
        assert one.shape == other.shape
        assert np.isfinite(one).all()


def test_a_compiled_model_is_taken_from_the_cache_and_a_damaged_entry_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulator_or_skip()
    model = read_model(sample.model_file("int8"))
    first = outputs(model, NPU)
    (kept,) = compiler.cache().iterdir()
    content = bytearray(kept.read_bytes())
    kept.write_bytes(content[:1000])
    assert outputs(model, NPU)[0].tobytes() == first[0].tobytes()
    dead = tmp_path / "dead"
    dead.write_text("#!/bin/sh\nkill -9 $$\n")
    dead.chmod(0o755)
    program = compiler._program()
    monkeypatch.setattr(compiler, "_plugin", lambda *_: next(program.parent.parent.glob("vendors/qualcomm/compiler/*")))
    monkeypatch.setattr(compiler, "_program", lambda: dead)
    assert outputs(model, NPU)[0].tobytes() == first[0].tobytes(), "nothing is compiled"
    with pytest.raises(
        ConfigurationUnavailable, match=r"Qualcomm's compiler \(.*\) died \(SIGKILL\) while it compiled"
    ):
        opened(model, NPU.replace("SM8650", "SM8750"))


def test_what_cannot_be_emulated_is_said_in_one_sentence(tmp_path: Path) -> None:
    emulator_or_skip()
    model = model_of(add_chain(), tmp_path)
    with pytest.raises(UsageError, match="SM1: ai-edge-litert compiles for no such chip.* Use one of .*SM8750"):
        opened(model, NPU.replace("SM8650", "SM1"))
    with pytest.raises(ConfigurationUnavailable, match="say which: --use_npu=true"):
        opened(model, "runtime=emulated")
    with pytest.raises(ConfigurationUnavailable, match="has several graphs.* only a model with one can be "):
        opened(model_of(two_signatures(), tmp_path), NPU)
    with pytest.raises(UsageError, match="only chips of qualcomm can be emulated"):
        Configuration.from_text("c", "use_npu=true npu_vendor=mediatek npu_soc=SM8650")


def test_a_killed_emulator_fails_its_run_and_says_so() -> None:
    emulator_or_skip()
    session = open_isolated(read_model(sample.model_file("int8")), Configuration.from_text("npu", NPU))
    assert session.process_id is not None
    os.kill(session.process_id, signal.SIGKILL)
    with pytest.raises(InferenceError, match="died.*SIGKILL"):
        session.run(random_inputs(session))
    session.close()


def test_it_has_no_latency_anywhere_and_no_limit_on_one_passes() -> None:
    emulator_or_skip()
    model = str(sample.model_file("int8"))
    diff = evaltools("diff", model, "--num_runs=3", f"--config=npu: {NPU}")
    assert diff.code == 0, diff.err
    assert "Test run latency: none, emulated" in diff.out
    assert "NPU on Qualcomm SM8650, emulated by QAIRT" in diff.err
    row = next(line for line in diff.err.splitlines() if line.startswith("npu  "))
    assert "emulated" in row.split()
    timed = evaltools("benchmark", model, f"--config=npu: {NPU}")
    assert timed.code == 3
    assert "emulated by QAIRT" in timed.err
    assert "no latency" in timed.err


def test_what_the_compiler_refuses_and_what_it_would_misread_is_not_measured_with_its_reason(tmp_path: Path) -> None:
    emulator_or_skip()
    graph = Graph()
    fed, kept, total = (
        graph.tensor("fed", (1, 4)),
        graph.tensor("kept", (1, 4), variable=True),
        graph.tensor("t", (1, 4)),
    )
    graph.node("ADD", [fed, kept], total, "AddOptions")
    (tmp_path / "state.tflite").write_bytes(graph.to_bytes([fed], [total]))
    graph = Graph()
    fed, halved = graph.tensor("fed", (1, 1, 3), shape_signature=(1, -1, 3)), graph.tensor("halved", (1, 1, 3))
    graph.node("ADD", [fed, fed], halved, "AddOptions")
    (tmp_path / "open.tflite").write_bytes(graph.to_bytes([fed], [halved]))
    for name, reason in (("state", "Variable tensors not yet supported"), ("open", "sizes that the file leaves open")):
        done = evaltools("diff", str(tmp_path / f"{name}.tflite"), "--num_runs=2", f"--config=npu: {NPU}")
        assert done.code == 3, done.err
        assert reason in done.err
        assert "crashed" not in done.err


@pytest.mark.skipif(importlib.util.find_spec("onnxruntime_qnn") is not None, reason="the extra is installed")
def test_without_the_extra_one_sentence_says_what_to_install() -> None:
    done = evaltools("diff", str(sample.model_file("int8")), "--num_runs=3", f"--config=npu: {NPU}")
    assert done.code == 3
    assert "pip install 'evaltools[npu-qualcomm]' (x86-64 Linux, Python 3.11 to 3.13)" in done.err
    assert "Traceback" not in done.err
