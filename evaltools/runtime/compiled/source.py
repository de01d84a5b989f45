"""What ``CompiledModel`` loads of a model, and which of its graphs and signatures is run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.model import ModelFile, read_model
from evaltools.model.contents import read_graphs
from evaltools.model.flatbuffer import Table
from evaltools.model.metadata import signature_graph, signature_keys, with_main_graph

_LOOPS: Final = frozenset({"WHILE", "STABLEHLO_WHILE"})


class Source(Struct, frozen=True):
    """A model as it is loaded: its path or content, and the number of the graph of each signature.

    ``graph`` is the number of that which is run, of so many ``graphs``; it has so many ``nodes``. A model with
    ``loops`` may run for ever on some inputs.
    """

    loaded: str | bytes
    graph: int
    graphs: int
    nodes: int
    signatures: Mapping[str, int]
    loops: bool


class Signature(Struct, frozen=True):
    """A signature with its tensors, by index in the file, in the order of its buffers."""

    number: int
    key: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def signature_to_run(signatures: Iterable[Signature], model: ModelFile, source: Source) -> Signature | None:
    """The signature of the graph that is run with the model's tensors; where there are several, that asked for."""
    wanted = [{tensor.index for tensor in tensors} for tensors in (model.inputs, model.outputs)]
    for signature in signatures:
        is_of_graph = source.signatures.get(signature.key, source.graph) == source.graph
        is_another = model.signature in source.signatures and signature.key != model.signature
        if is_of_graph and not is_another and [set(signature.inputs), set(signature.outputs)] == wanted:
            return signature
    return None


def source_of(model: ModelFile) -> Source:
    """The model with its graphs in the file's order: signatures, which name graphs by number, are named here."""
    source = _in_file_order(model)
    content = memoryview(source.read())
    root = Table.root(content)
    signatures = {key: signature_graph(root, key) for key in signature_keys(root)}
    nodes = [graph.nodes for graph in read_graphs(content)]
    run = signatures.get(model.signature, 0)
    return Source(
        source.source(),
        run,
        len(nodes),
        len(nodes[run]),
        signatures,
        loops=any(node.operator in _LOOPS for graph in nodes for node in graph),
    )


def _in_file_order(model: ModelFile) -> ModelFile:
    """The file itself where that is what is run, else its changed content, with the graph of a signature moved back."""
    if model.content is None or not model.signature:
        return model
    if model.content == read_model(model.path, model.signature).content:
        return replace(model, content=None)
    graph = signature_graph(Table.root(memoryview(model.content)), model.signature)
    if graph == 0:
        return model
    return model.with_content(with_main_graph(model.content, graph, f"{model.path}: its signature {model.signature!r}"))
