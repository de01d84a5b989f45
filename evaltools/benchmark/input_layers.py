"""Reads the flags of ``--input_layer``: names, shapes, ranges and files of all inputs, in the model's order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.parameter import did_you_mean

_WHOLE: Final = re.compile(r"\s*[+-]?[0-9]{1,10}\s*")
_INT32_LIMIT: Final = 1 << 31


class InputLayer(Struct, frozen=True):
    """One input as the flags describe it.

    ``limits`` are the lowest and the highest value, both included; ``file`` has its values.
    """

    name: str
    shape: tuple[int, ...]
    limits: tuple[int, int] | None = None
    file: str = ""


def read_layers(names: str, shapes: str, value_ranges: str, value_files: str) -> tuple[InputLayer, ...]:
    """Read the texts of ``--input_layer``, ``_shape``, ``_value_range`` and ``_value_files``; none where all are empty.

    ``::`` stands for a colon in a name or path. An empty shape is that of a scalar. Raises :class:`UsageError`, with
    the native tool's words first; unlike the native tool for a range or file given twice and for ``12abc``, too.

    >>> read_layers("image,size", "1,8,8,3:2", "size,1,9", "")[1]
    InputLayer(name='size', shape=(2,), limits=(1, 9), file='')
    """
    found_names, found_shapes = _split(names, ","), _split(shapes, ":")
    if len(found_names) != len(found_shapes):
        raise UsageError(
            f"The number of items in --input_layer_shape ({shapes}, with {len(found_shapes)} items) must match the "
            f"number of items in --input_layer ({names}, with {len(found_names)} items). For example "
            "--input_layer=input1,input2 --input_layer_shape=1,224,224,4:1,20"
        )
    sizes = [_shape(text) for text in found_shapes]
    limits = _ranges(value_ranges, found_names)
    files = _files(value_files, found_names)
    return tuple(
        InputLayer(name, shape, limits.get(place), files.get(place, ""))
        for place, (name, shape) in enumerate(zip(found_names, sizes, strict=True))
    )


def _split(text: str, separator: str) -> list[str]:
    return text.split(separator) if text else []


def _fields(text: str) -> list[str]:
    """The parts of a text between single colons; a double colon stands for a colon within a part."""
    fields = [""]
    for token in re.findall("::|:|[^:]+", text):
        if token == ":":
            fields.append("")
        else:
            fields[-1] += ":" if token == "::" else token
    return fields


def _shape(text: str) -> tuple[int, ...]:
    sizes = [_int32(size) for size in _split(text, ",")]
    known = tuple(size for size in sizes if size is not None)
    if len(known) != len(sizes):
        raise UsageError(
            f"Incorrect size string specified: {text}; --input_layer_shape takes whole numbers with commas between "
            "them, as in 1,224,224,3, and a colon between inputs"
        )
    if any(size < 0 for size in known):
        raise UsageError(
            "Any unknown sizes in the shapes (-1's) must be replaced with the size you want to benchmark with. "
            f"--input_layer_shape has {text}; write 1 or more for each size"
        )
    return known


def _int32(text: str) -> int | None:
    """The number in a text, None where there is no such number."""
    if not _WHOLE.fullmatch(text) or not -_INT32_LIMIT <= int(text) < _INT32_LIMIT:
        return None
    return int(text)


def _ranges(text: str, names: Sequence[str]) -> dict[int, tuple[int, int]]:
    """The limits of values by the position of the input."""
    found: dict[int, tuple[int, int]] = {}
    for item in _fields(text) if text else []:
        parts = item.split(",")
        if len(parts) != 3:
            raise UsageError(
                f"Wrong input value range item specified: {item}; --input_layer_value_range takes NAME,LOW,HIGH with "
                "a colon between inputs and :: for a colon in a name, as in ids,0,99"
            )
        place = _place(parts[0], names, "--input_layer_value_range", found)
        low, high = _int32(parts[1]), _int32(parts[2])
        if low is None or high is None or low > high:
            raise UsageError(
                f"Wrong low and high value of the input value range specified: {item}; both are reached, are whole "
                f"numbers in {-_INT32_LIMIT}..{_INT32_LIMIT - 1}, and the low one comes first, as in {parts[0]},0,99"
            )
        found[place] = (low, high)
    return found


def _files(text: str, names: Sequence[str]) -> dict[int, str]:
    """The files of values by the position of the input."""
    found: dict[int, str] = {}
    for item in _split(text, ","):
        parts = _fields(item)
        if len(parts) != 2 or not parts[1]:
            count = "contains more than one delimiter" if len(parts) > 2 else "doesn't contain any delimiter"
            raise UsageError(
                f"Wrong input value file item specified: {item}; {item} {count}. --input_layer_value_files takes "
                "NAME:FILE with commas between inputs; write :: for a colon in a name or path, and use no path with a "
                "comma"
            )
        found[_place(parts[0], names, "--input_layer_value_files", found)] = parts[1]
    return found


def _place(name: str, names: Sequence[str], flag: str, taken: dict[int, str] | dict[int, tuple[int, int]]) -> int:
    """The position of the input of that name."""
    places = [place for place, known in enumerate(names) if known == name]
    if not places:
        hint = did_you_mean(name, names) or " Name all inputs there, and their shapes with --input_layer_shape"
        raise UsageError(
            f"Cannot find the corresponding input_layer name({name}) in --input_layer as {','.join(names)}; {flag} "
            f"needs a name that --input_layer gives.{hint}"
        )
    if len(places) > 1:
        raise UsageError(f"{flag}: --input_layer gives {len(places)} inputs the name {name}; give each its own")
    if places[0] in taken:
        raise UsageError(f"{flag}: {name} is given twice; keep one")
    return places[0]
