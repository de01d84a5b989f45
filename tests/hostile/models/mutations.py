"""Damage to one thing of a model: a shape, a type, an index, a length, an offset. The number of a case is its seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from evaltools.model.cut import aligned_builder, schema_package
from tests.hostile.models.seeds import sound_models

_SIZES: Final = (-(2**31), -2, -1, 0, 1, 2, 3, 255, 65536, 2**30, 2**31 - 1)
_INDICES: Final = (-(2**31), -2, -1, 0, 1, 2, 5, 127, 2**31 - 1)
_UNSIGNED: Final = (0, 1, 2, 3, 4, 7, 127, 128, 65535, 2**31 - 1, 2**31, 2**32 - 1)
_REALS: Final = (0.0, -1.0, 1e-45, 1e-8, 1.0, 3e38, float("inf"), float("-inf"), float("nan"))
_ZERO_POINTS: Final = (-(2**63), -129, -128, 0, 127, 128, 255, 256, 2**31, 2**63 - 1)
_ROOM: Final = 1 << 14
_MOST_DIMENSIONS: Final = 9
_KINDS_OF_TENSORS: Final = 20
_KINDS_OF_OPERATORS: Final = 210
_SHARE_OF_BYTES: Final = 0.25
"""Of the cases; in the others the file is whole, and what it says is wrong."""


class Case(Struct, frozen=True):
    """A damaged model, and the names of what it was and of what was done to it."""

    number: int
    seed: str
    damage: str
    content: bytes


def case(number: int) -> Case:
    """The case of that number, the same each time."""
    chance = random.Random(number)
    models = sound_models()
    seed = chance.choice(sorted(models))
    if chance.random() < _SHARE_OF_BYTES:
        of_bytes = chance.choice(BYTES)
        return Case(number, seed, of_bytes.__name__, of_bytes(models[seed], chance))
    done = [chance.choice(FIELDS) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    return Case(number, seed, "+".join(each.__name__ for each in done), _rewritten(models[seed], done, chance))


def _rewritten(content: bytes, damages: Sequence[Callable[[Any, random.Random], None]], chance: random.Random) -> bytes:
    schema = schema_package()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    for damage in damages:
        damage(model, chance)
    builder = aligned_builder(len(content) + _ROOM)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _graph(model: Any, chance: random.Random) -> Any:
    return chance.choice(model.subgraphs)


def _tensor(model: Any, chance: random.Random) -> Any:
    return chance.choice(_graph(model, chance).tensors)


def _operator(model: Any, chance: random.Random) -> Any:
    return chance.choice(_graph(model, chance).operators or [_NO_OPERATOR])


class _NoOperator:
    """Takes the damage where all operators are gone already."""

    opcodeIndex = builtinOptionsType = 0  # noqa: N815 - names of the schema
    inputs = outputs = builtinOptions = None  # noqa: N815


_NO_OPERATOR: Final = _NoOperator()


def _changed(values: Any, choices: Sequence[int], chance: random.Random, dtype: Any = np.int32) -> Any:
    """A vector with one value that is another, is gone, or comes on top."""
    found = [] if values is None else [int(value) for value in values]
    how = chance.choice(("replace", "replace", "remove", "add", "empty"))
    place = chance.randrange(len(found) + 1)
    if how == "empty":
        return np.array([], dtype)
    if how == "remove" or (how == "replace" and found):
        del found[place : place + 1]
    if how != "remove" and len(found) < _MOST_DIMENSIONS:
        found.insert(place, chance.choice(choices))
    return np.array(found, dtype)


# ----- what the file says


def shape(model: Any, chance: random.Random) -> None:
    """Sizes of a tensor."""
    tensor = _tensor(model, chance)
    tensor.shape = _changed(tensor.shape, _SIZES, chance)


def free_sizes(model: Any, chance: random.Random) -> None:
    """Sizes that are said to be free."""
    tensor = _tensor(model, chance)
    tensor.shapeSignature = _changed(tensor.shape, _SIZES, chance)


def tensor_type(model: Any, chance: random.Random) -> None:
    """The type of a tensor, perhaps none of the schema."""
    _tensor(model, chance).type = chance.choice((*range(_KINDS_OF_TENSORS), 127, -1))


def tensor_name(model: Any, chance: random.Random) -> None:
    """The name of a tensor: none, control characters, a long one, no Unicode."""
    _tensor(model, chance).name = chance.choice((None, b"", b"\x1b[2J\n", b"x" * 5000, b"\xff\xfe", b"a/../../b"))


def is_variable(model: Any, chance: random.Random) -> None:
    """A tensor that keeps its values."""
    _tensor(model, chance).isVariable = True


def buffer_of_tensor(model: Any, chance: random.Random) -> None:
    """Which constant a tensor has."""
    _tensor(model, chance).buffer = chance.choice((*range(len(model.buffers) + 1), 2**32 - 1))


def buffer_size(model: Any, chance: random.Random) -> None:
    """A constant that is too short, too long, or gone."""
    buffer = chance.choice(model.buffers)
    data = np.zeros(0, np.uint8) if buffer.data is None else np.array(buffer.data, np.uint8)
    sizes = (0, 1, 3, len(data) // 2, max(len(data) - 1, 0), len(data) + 1, 2 * len(data) + 16)
    buffer.data = np.resize(data, chance.choice(sizes)) if len(data) else np.zeros(chance.choice(sizes), np.uint8)


def buffer_behind(model: Any, chance: random.Random) -> None:
    """A constant that is said to lie behind the tables."""
    buffer = chance.choice(model.buffers)
    buffer.offset, buffer.size = chance.choice((0, 1, 2, 64, 2**40, 2**64 - 1)), chance.choice((0, 1, 64, 2**64 - 1))


def constant_values(model: Any, chance: random.Random) -> None:
    """Values of a constant, which may be the sizes that an operator makes."""
    buffer = chance.choice([each for each in model.buffers if each.data is not None] or model.buffers)
    if buffer.data is not None and len(buffer.data) % 4 == 0 and len(buffer.data):
        values = np.array(buffer.data, np.uint8).view(np.int32)
        values[chance.randrange(len(values))] = chance.choice(_SIZES)
        buffer.data = values.view(np.uint8)


def operator_inputs(model: Any, chance: random.Random) -> None:
    """Which tensors an operator reads."""
    operator = _operator(model, chance)
    operator.inputs = _changed(operator.inputs, _INDICES, chance)


def operator_outputs(model: Any, chance: random.Random) -> None:
    """Which tensors an operator writes."""
    operator = _operator(model, chance)
    operator.outputs = _changed(operator.outputs, _INDICES, chance)


def operator_of_node(model: Any, chance: random.Random) -> None:
    """Which operator a node is."""
    _operator(model, chance).opcodeIndex = chance.choice(_UNSIGNED)


def operator_kind(model: Any, chance: random.Random) -> None:
    """Another operator with the same inputs and options."""
    code = chance.choice(model.operatorCodes)
    code.builtinCode = chance.randrange(_KINDS_OF_OPERATORS)
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)
    code.customCode = chance.choice((None, b"Custom\x1b[2J"))


def operator_version(model: Any, chance: random.Random) -> None:
    """The version of an operator."""
    chance.choice(model.operatorCodes).version = chance.choice((*_SIZES, *range(1, 8)))


def options(model: Any, chance: random.Random) -> None:
    """One option of an operator: strides, axes, an activation."""
    found = _operator(model, chance).builtinOptions
    names = [name for name, value in vars(found).items() if isinstance(value, int)] if found is not None else []
    if names:
        name = chance.choice(names)
        values = (True, False) if isinstance(getattr(found, name), bool) else (-1, 0, 1, 2, 5, 100, 127)
        setattr(found, name, chance.choice(values))


def options_kind(model: Any, chance: random.Random) -> None:
    """Options that are read as those of another operator."""
    operator = _operator(model, chance)
    if operator.builtinOptions is not None:
        operator.builtinOptionsType = chance.randrange(1, 127)


def no_options(model: Any, chance: random.Random) -> None:
    """An operator without its options."""
    operator = _operator(model, chance)
    operator.builtinOptions, operator.builtinOptionsType = None, 0


def quantization(model: Any, chance: random.Random) -> None:
    """Scales and zero points: their number, their values, their axis."""
    tensor = _tensor(model, chance)
    found = tensor.quantization or schema_package().QuantizationParametersT()
    scales, zeros = chance.choice(((1, 1), (1, 0), (0, 1), (2, 2), (2, 1), (3, 3), (64, 64)))
    found.scale = np.array([chance.choice(_REALS) for _ in range(scales)], np.float32)
    found.zeroPoint = np.array([chance.choice(_ZERO_POINTS) for _ in range(zeros)], np.int64)
    found.quantizedDimension = chance.choice((0, 0, 1, 3, 4, -1, 2**31 - 1))
    tensor.quantization = found


def graph_inputs(model: Any, chance: random.Random) -> None:
    """What is fed."""
    graph = _graph(model, chance)
    graph.inputs = _changed(graph.inputs, _INDICES, chance)


def graph_outputs(model: Any, chance: random.Random) -> None:
    """What is read."""
    graph = _graph(model, chance)
    graph.outputs = _changed(graph.outputs, _INDICES, chance)


def nodes(model: Any, chance: random.Random) -> None:
    """Operators in another order, twice, or gone."""
    graph = _graph(model, chance)
    change = chance.choice(("reverse", "twice", "one less", "none"))
    if change == "reverse":
        graph.operators = graph.operators[::-1]
    elif change == "twice":
        graph.operators = graph.operators * 2
    else:
        graph.operators = graph.operators[1:] if change == "one less" else []


def graphs(model: Any, chance: random.Random) -> None:
    """A graph twice, or none."""
    model.subgraphs = model.subgraphs * 2 if chance.random() < 0.5 or len(model.subgraphs) == 1 else model.subgraphs[1:]


def signatures(model: Any, chance: random.Random) -> None:
    """A signature of another graph, or with other tensors."""
    for signature in model.signatureDefs or ():
        signature.subgraphIndex = chance.choice(_UNSIGNED)
        for entry in signature.inputs or ():
            entry.tensorIndex = chance.choice(_UNSIGNED)


def schema_version(model: Any, chance: random.Random) -> None:
    """The version of the schema."""
    model.version = chance.choice(_UNSIGNED)


FIELDS: Final[tuple[Callable[[Any, random.Random], None], ...]] = (
    shape, shape, free_sizes, tensor_type, tensor_name, is_variable, buffer_of_tensor, buffer_size, buffer_behind,
    constant_values, operator_inputs, operator_outputs, operator_of_node, operator_kind, operator_version, options,
    options, options_kind, no_options, quantization, quantization, graph_inputs, graph_outputs, nodes, graphs,
    signatures, schema_version,
)  # fmt: skip


# ----- what the file is


def cut_short(content: bytes, chance: random.Random) -> bytes:
    """The beginning of the file."""
    return content[: chance.randrange(len(content))]


def longer(content: bytes, chance: random.Random) -> bytes:
    """The file with more behind it."""
    return content + chance.randbytes(chance.choice((1, 3, 4096)))


def number_in_file(content: bytes, chance: random.Random) -> bytes:
    """One number of four bytes, which may be an offset, a length or a weight."""
    place = chance.randrange(len(content) // 4) * 4
    return content[:place] + chance.choice(_UNSIGNED).to_bytes(4, "little") + content[place + 4 :]


def near_offset(content: bytes, chance: random.Random) -> bytes:
    """One small number that is a little more or less, as offsets of tables and fields are."""
    small = [place for place in range(0, len(content) - 1, 2) if 0 < content[place] < 128 and not content[place + 1]]
    place = chance.choice(small)
    return content[:place] + bytes([content[place] ^ chance.choice((1, 2, 4, 8, 64))]) + content[place + 1 :]


def zeros(content: bytes, chance: random.Random) -> bytes:
    """A piece of zeros."""
    place, length = chance.randrange(len(content)), chance.choice((1, 4, 16, 256))
    return content[:place] + bytes(len(content[place : place + length])) + content[place + length :]


BYTES: Final = (cut_short, longer, number_in_file, near_offset, near_offset, zeros)
