"""Files with several graphs on the GPU: what is said of one of them proves nothing of another."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable
from evaltools.model import ModelFile, read_model
from evaltools.runtime import Delegation
from evaltools.runtime.compiled.source import source_of
from evaltools.runtime.process.isolated import open_isolated
from tests import tiny_models
from tests.runtime.openers import gpu_or_skip, model_of, outputs
from tests.tflite_writer import Graph, Signature

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")

Kinds = Literal["A", "NA", "NN", "NNN", "NNNA"]
"""A graph by its nodes: N for ADD, which the GPU takes, A for L2_NORMALIZATION, which it does not."""
SHAPE = (1, 4)


def two_graphs(folder: Path, first: Kinds, second: Kinds) -> Path:
    graph = Graph()
    ends: list[tuple[int, int]] = []
    for kinds in (first, second):
        if ends:
            graph.next_graph([ends[0][0]], [ends[0][1]])
        values = graph.tensor("values", SHAPE)
        total = values
        for kind in kinds:
            end = graph.tensor("sum", SHAPE)
            if kind == "N":
                total = graph.node("ADD", [total, values], end, "AddOptions")
            else:
                total = graph.node("L2_NORMALIZATION", [total], end, "L2NormOptions")
        ends.append((values, total))
    signatures = [
        Signature(key, number, {"values": ends[number][0]}, {"total": ends[number][1]})
        for number, key in enumerate(("first", "second"))
    ]
    path = folder / "two.tflite"
    path.write_bytes(graph.to_bytes([ends[1][0]], [ends[1][1]], signatures))
    return path


def delegation(model: ModelFile, text: str) -> Delegation:
    session = open_isolated(model, Configuration.from_text("c", text))
    session.close()
    return session.delegation


@pytest.fixture(scope="module")
def gpu(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the GPU here is; CI says that there must be one."""
    return gpu_or_skip(model_of(tiny_models.conv((1, 16, 16, 4), 8), tmp_path_factory.mktemp("gpu")))


@pytest.mark.usefixtures("gpu")
def test_a_gpu_that_takes_all_graphs_is_believed_and_one_that_takes_some_is_not(tmp_path: Path) -> None:
    """The GPU says how many operations it takes, and not of which graph."""
    path = two_graphs(tmp_path, "NN", "NNN")
    (entry,) = delegation(read_model(path, "second"), "use_gpu=true").delegates
    assert (entry.nodes, entry.evidence.partition(",")[0]) == (3, "took the model alone")
    path = two_graphs(tmp_path, "NNN", "NA")
    with pytest.raises(ConfigurationUnavailable, match=r"number 0 of 2 in the file\); convert the function"):
        delegation(read_model(path, "first"), "use_gpu=true")


def loop_that_ends_at_ten() -> bytes:
    """WHILE value < 10: value + step. With a step of zero it never ends."""
    graph = Graph()
    value, step = graph.tensor("value", (1,)), graph.tensor("step", (1,))
    graph.node(
        "WHILE",
        [value, step],
        [graph.tensor("end", (1,)), graph.tensor("same", (1,))],
        "WhileOptions",
        CondSubgraphIndex=1,
        BodySubgraphIndex=2,
    )
    graph.next_graph([value, step], [2])
    graph.tensor("value", (1,))
    graph.tensor("step", (1,))
    goes_on = graph.tensor("goes on", (1,), "bool")
    graph.node("LESS", [0, graph.constant("ten", np.array([10], np.float32))], goes_on, "LessOptions")
    graph.next_graph([0, 1], [goes_on])
    graph.tensor("value", (1,))
    graph.tensor("step", (1,))
    return graph.to_bytes([0, 1], [graph.node("ADD", [0, 1], graph.tensor("next", (1,)), "AddOptions"), 1])


@pytest.mark.usefixtures("gpu")
def test_a_loop_is_not_run_on_zeros_which_might_never_end(tmp_path: Path) -> None:
    model = model_of(loop_that_ends_at_ten(), tmp_path)
    with pytest.raises(ConfigurationUnavailable, match="convert the function that is to run alone"):
        open_isolated(model, Configuration.from_text("c", "use_gpu=true"), timeout_s=30)


def test_a_model_with_changed_constants_still_runs_the_graph_of_its_signature(tmp_path: Path) -> None:
    second = read_model(two_graphs(tmp_path, "A", "NN"), "second")
    for model in (second, second.with_content(second.read() + b"\0")):
        for found, right in zip(outputs(model, "runtime=compiled"), outputs(model, "runtime=litert"), strict=True):
            np.testing.assert_array_equal(found, right)


def test_what_is_loaded_and_which_graph_is_run(tmp_path: Path) -> None:
    path = two_graphs(tmp_path, "NNNA", "A")
    for key, run in (("first", 0), ("second", 1)):
        source = source_of(replace(read_model(path, key), held=None))
        assert (source.loaded, source.graph, source.graphs, source.nodes) == (str(path), run, 2, (4, 1)[run])
        assert not source.loops
    second = read_model(path, "second")
    changed = source_of(second.with_content(second.read() + b"\0"))
    assert changed.loaded == path.read_bytes() + b"\0", "signatures name graphs by their number in the file"
    assert (changed.graph, changed.nodes) == (1, 1)
    (tmp_path / "loop").mkdir()
    loop = source_of(model_of(loop_that_ends_at_ten(), tmp_path / "loop"))
    assert (loop.graphs, loop.loops) == (3, True)
