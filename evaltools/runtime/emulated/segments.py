"""A compiled model as segments: what the NPU runs, and what the CPU runs between."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from msgspec import Struct

from evaltools.errors import ConfigurationUnavailable
from evaltools.model.compiled_for import DISPATCH
from evaltools.model.cut import CuttableModel, Form


class Segment(Struct, frozen=True):
    """A part of the graph that runs as one, from tensors to tensors, by their numbers in the compiled model.

    ``content`` is a model of its own for the CPU, or with ``on_npu`` the vendor's binary, whose graph is ``name``.
    """

    on_npu: bool
    content: bytes
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    name: str = ""


class CompiledGraph(Struct, frozen=True):
    """The segments of a compiled model in the order of execution, with the names and forms of its tensors."""

    segments: tuple[Segment, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    names: Mapping[int, str]
    forms: Mapping[int, Form]
    cpu_operators: tuple[str, ...]


def read_segments(content: bytes) -> CompiledGraph:
    """The segments of a compiled model.

    Raises :class:`~evaltools.errors.ModelError` where an operator of the CPU cannot be cut out, and
    :class:`ConfigurationUnavailable` where the file has no binary where it says that one is.
    """
    model = CuttableModel(content)
    segments: list[Segment] = []
    for is_cpu, group in groupby(
        range(len(model.operators)), key=lambda place: "" if model.operators[place] != DISPATCH else str(place)
    ):
        places = list(group)
        if is_cpu == "":
            cut = model.cut(places[0], places[-1], {})
            segments.append(Segment(False, cut.content, cut.inputs, cut.outputs))
        else:
            segments.append(_dispatched(model, content, places[0]))
    tensors = {*model.graph_inputs, *(tensor for each in segments for tensor in (*each.inputs, *each.outputs))}
    return CompiledGraph(
        tuple(segments),
        model.graph_inputs,
        model.graph_outputs,
        {tensor: model.name(tensor) for tensor in tensors},
        {tensor: model.form(tensor) for tensor in tensors},
        tuple(name for name in model.operators if name != DISPATCH),
    )


def _dispatched(model: CuttableModel, content: bytes, place: int) -> Segment:
    """The options of the operator say where in the file the vendor's binary lies."""
    from flatbuffers import flexbuffers

    option = flexbuffers.Loads(model.custom_options(place))
    start, size = int(option["bytecode_offset"]), int(option["bytecode_size"])
    binary = content[start : start + size]
    if len(binary) != size or not size:
        raise ConfigurationUnavailable(f"the compiled model has {len(binary)} bytes at {start}, not the {size} stated")
    return Segment(True, binary, model.fed_to(place), model.made_by(place), str(option["name"]))
