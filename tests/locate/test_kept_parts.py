"""Bundles of parts that were cut out of a model and kept by the process that ran them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.locate.bundle import write_bundle
from evaltools.model import read_model
from evaltools.operators.child import PartsSession, capture
from evaltools.operators.measurement import measure
from evaltools.operators.part import Case, Part
from tests.locate.bundle_cases import CPU, result_of
from tests.tflite_writer import Graph


def two_outputs() -> bytes:
    """(x + y) is used twice: it is doubled, and its parts are split, of which both are given."""
    graph = Graph()
    x, y = graph.tensor("x", (2, 4)), graph.tensor("y", (2, 4))
    total, doubled = graph.tensor("total", (2, 4)), graph.tensor("doubled", (2, 4))
    graph.node("ADD", [x, y], total, "AddOptions")
    graph.node("MUL", [total, graph.constant("two", np.array([2.0], np.float32))], doubled, "MulOptions")
    axis = graph.constant("axis", np.array(1, np.int32))
    halves = [graph.tensor("left half", (2, 2)), graph.tensor("right half", (2, 2))]
    graph.node("SPLIT", [axis, doubled], halves, "SplitOptions", NumSplits=2)
    return graph.to_bytes([x, y], [total, *halves])


@pytest.mark.parametrize(("first", "last"), [(1, 1), (0, 2)])
def test_a_part_that_was_kept_is_reproduced(first: int, last: int, faulty_delegate: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(two_outputs())
    session = PartsSession(read_model(path), Configuration.from_text("cpu", CPU), tmp_path)
    for run in range(2):
        values = np.random.default_rng(run).normal(size=(2, 4)).astype(np.float32)
        for tensor in session.model.graph_inputs:
            session.write("values", run, tensor, values + tensor)
        capture(session, run)
    options = "external_delegate_options=fault:offset;amount:5;channel:1"
    tested = Configuration.from_text("tested", f"runtime=litert external_delegate_path={faulty_delegate} {options}")
    outcome = measure(session, Part(first, last, tested, keep="worst.npz"), 2)
    worst = max(outcome.outputs, key=lambda each: each.worst)
    assert worst.worst > 1
    case = Case(
        0, session.model.operators[first], worst.name, worst.unit, 1e-4,
        tmp_path / "worst.tflite", tmp_path / "worst.npz", tested,
    )  # fmt: skip
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case)
    assert bundle.reproduced, bundle.printed
    with np.load(tmp_path / "bundle" / "inputs.npz", allow_pickle=False) as archive:
        inputs = [name for name in archive.files if name.startswith("input_")]
        assert inputs == [f"input_{place}" for place in range(len(case.inputs))]
        assert np.abs(archive["given"] - archive["expected"]).max() == pytest.approx(worst.worst, rel=1e-5)
