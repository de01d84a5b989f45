"""Sessions in child processes: the same answers, and whatever happens there stays there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates.gpu import GPU
from evaltools.errors import (
    ConfigurationUnavailable,
    DelegateTookNothing,
    EvaltoolsError,
    InferenceError,
    ModelError,
    SessionEnded,
    UsageError,
)
from evaltools.runtime import TensorSpec, open_session
from evaltools.runtime.process.isolated import open_isolated
from tests import tiny_models
from tests.runtime.openers import (
    ANSWERS,
    answering,
    doubling,
    ending_at_three,
    failing_on_two,
    isolated,
    model_of,
    printing,
    refusing,
)


@pytest.fixture(params=("litert", "tflite_runtime"))
def runtime(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    pytest.importorskip({"litert": "ai_edge_litert"}.get(name, name), reason=f"the runtime {name} is not installed")
    return name


def test_facts_and_outputs_are_those_of_a_session_in_this_process(runtime: str, tmp_path: Path) -> None:
    model = model_of(tiny_models.classifier(), tmp_path)
    configuration = Configuration.from_text("c", f"runtime={runtime}")
    own, other = open_session(model, configuration), open_isolated(model, configuration)
    assert (replace(other.facts, messages="", load_ms=None), other.delegation) == (own.facts, own.delegation)
    assert "Created TensorFlow Lite XNNPACK delegate" in other.facts.messages
    assert (other.inputs, other.outputs) == (own.inputs, own.outputs)
    for seed in range(3):
        inputs = [np.random.default_rng(seed).uniform(-1, 1, own.inputs[0].shape).astype(np.float32)]
        found = other.run(inputs, 2)
        np.testing.assert_array_equal(found.outputs[0], own.run(inputs, 2).outputs[0])
        assert len(found.invokes_us) == 2
    assert 5_000 < other.peak_memory_kb < 2_000_000
    other.close()


def test_times_are_those_of_the_child_and_outputs_stay_as_they_were() -> None:
    session = isolated(doubling, timeout_s=1e9)
    first = session.run([np.ones((2, 3), np.float32)], 3)
    session.run([np.zeros((2, 3), np.float32)])
    assert (first.invokes_us, first.read_us) == ((100, 200, 300), 7)
    assert first.outputs[0].tolist() == [[2.0] * 3] * 2
    session.close()
    with pytest.raises(InferenceError, match="^the session was closed$"):
        session.run([np.ones((2, 3), np.float32)])


def test_every_kind_of_array_arrives_also_larger_than_announced() -> None:
    session = isolated(answering)
    assert session.outputs == (TensorSpec("small", np.dtype("int8"), (1,)),)
    for sent, found in zip(ANSWERS, session.run([]).outputs, strict=True):
        assert (found.dtype, found.shape, found.tolist()) == (sent.dtype, sent.shape, sent.tolist())
    session.close()


def test_a_block_is_run_in_order_and_an_error_takes_the_place_of_its_run() -> None:
    session = isolated(failing_on_two)
    assert session.longest_block > 4
    found = session.run_block([[np.full((2, 3), value, np.float32)] for value in range(4)])
    values = [str(entry) if isinstance(entry, InferenceError) else float(entry.outputs[0][0, 0]) for entry in found]
    assert values == [0.0, 2.0, "node 7 failed", 6.0]
    with pytest.raises(InferenceError, match="^node 7 failed$"):
        session.run([np.full((2, 3), 2, np.float32)])
    session.close()


@pytest.mark.parametrize(
    ("end", "reason"), [("abort", "died during a run (SIGABRT)"), ("hang", "no answer within 1 s during a run")]
)
@pytest.mark.usefixtures("time_out_of_runs")
def test_an_end_of_the_child_takes_the_places_of_a_block(end: str, reason: str) -> None:
    session = isolated(ending_at_three, f"external_delegate_path={end}", timeout_s=1.0)
    for entry in session.run_block([[np.full((2, 3), value, np.float32)] for value in range(6)]):
        assert isinstance(entry, SessionEnded)
        assert reason in str(entry)
        assert entry.hung == (end == "hang")
    session.close()


@pytest.mark.parametrize("kind", [ConfigurationUnavailable, DelegateTookNothing, UsageError, ModelError])
def test_what_the_opening_raises_keeps_its_kind_and_text(kind: type[EvaltoolsError]) -> None:
    with pytest.raises(EvaltoolsError) as caught:
        isolated(refusing, f"external_delegate_path={kind.__name__}")
    assert (type(caught.value), str(caught.value)) == (kind, "not [here]")
    if isinstance(caught.value, ConfigurationUnavailable):
        assert caught.value.delegate == GPU.name


def test_nothing_that_is_printed_in_the_child_reaches_the_parents_streams() -> None:
    script = (
        "from tests.runtime.openers import isolated, printing\n"
        "session = isolated(printing)\nsession.run([])\nsession.close()\nprint('over')"
    )
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (completed.stdout, completed.stderr) == ("over\n", "")
    session = isolated(printing)
    assert " ".join(session.printed().split()) == "opened with print opened natively"
    session.close()


@pytest.mark.parametrize("start", ["", "from evaltools.runtime.process.server import start_server; start_server()\n"])
def test_a_child_reads_nothing_of_what_the_parent_can_read(start: str) -> None:
    script = (
        f"from tests.runtime.openers import isolated, reading\n{start}"
        "session = isolated(reading)\nprint(session.printed() + input())\nsession.close()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, input="typed\n")
    assert (done.stdout, done.stderr) == ("read: typed\n", "")


def test_ctrl_c_while_a_child_starts_ends_no_later_one() -> None:
    """A terminal sends SIGINT to the whole group, which the server of children is no part of."""
    script = (
        "import os, signal, threading\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from tests.runtime.openers import isolated, printing\n"
        "threading.Timer(0.1, os.killpg, (0, signal.SIGINT)).start()\n"
        "try:\n    while True: isolated(printing).close()\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
        "session = isolated(printing)\nsession.run([])\nsession.close()\nprint(repr(session.not_clean))"
    )
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, start_new_session=True
    )
    assert (completed.stdout, completed.stderr) == ("interrupted\n''\n", "")
