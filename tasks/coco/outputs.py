"""Finds out which output of a detector holds boxes, classes, scores and the count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from evaltools.errors import ModelError, UsageError
from evaltools.model import ModelFile, TensorInfo
from evaltools.runtime.session import Array
from evaltools.tasks.coco.result import OutputMap

ROLES: Final = ("boxes", "classes", "scores", "count")
_SCORE_WORDS: Final = ("score", "prob", "conf")
_CLASS_WORDS: Final = ("class", "label", "categor")
_HINT: Final = (
    "State which output is which, as in --output_map=boxes=1,classes=3,scores=0,count=2 "
    "(numbers or names; count may be left out)"
)


NATIVE_ORDER: Final = OutputMap(0, 1, 2, 3, "the order that the native tool expects")


def stated_output_map(text: str, model: ModelFile) -> OutputMap:
    """Read ``boxes=1,classes=3,scores=0,count=2``; outputs are named by number or by name.

    Raises :class:`UsageError`, or :class:`ModelError` for an output that the model does not have.
    """
    found: dict[str, int] = {}
    for part in text.split(","):
        role, equals, name = part.strip().partition("=")
        if not equals or role not in ROLES or role in found:
            raise UsageError(
                f"--output_map={text}: {part!r} is not understood; expected are {', '.join(ROLES)}, each once. {_HINT}"
            )
        found[role] = model.named("output", name, model.outputs)
    missing = [role for role in ROLES[:3] if role not in found]
    if missing:
        raise UsageError(f"--output_map={text} does not say which output holds the {missing[0]}. {_HINT}")
    if len(set(found.values())) < len(found):
        raise UsageError(f"--output_map={text} gives one output two meanings. {_HINT}")
    return OutputMap(found["boxes"], found["classes"], found["scores"], found.get("count"), "stated")


def operator_output_map(model: ModelFile) -> OutputMap | None:
    """The positions of the outputs of one ``TFLite_Detection_PostProcess``, which need not be guessed.

    None where the outputs are not those of this operator.
    """
    if model.detection is None:
        return None
    places = model.detection
    return OutputMap(
        places.boxes, places.classes, places.scores, places.count, "from the operator TFLite_Detection_PostProcess"
    )


def require_fitting(model: ModelFile, places: OutputMap, outputs: Sequence[Array]) -> None:
    """Refuse a map that contradicts the shapes of real outputs; raises :class:`ModelError`."""
    sizes = [int(np.asarray(output).size) for output in outputs]
    rows = sizes[places.scores]
    fits = sizes[places.boxes] == 4 * rows and sizes[places.classes] == rows
    if fits and (places.count is None or sizes[places.count] == 1):
        return
    shapes = ", ".join(f"{place} {list(np.asarray(output).shape)}" for place, output in enumerate(outputs))
    known = operator_output_map(model)
    advice = f"The operator TFLite_Detection_PostProcess says --output_map={known}" if known else _HINT
    raise ModelError(
        f"{model.path}: the outputs cannot be {places} ({places.source}), which needs 4 N boxes, N classes, N scores "
        f"and one count; their shapes are {shapes}. {advice}"
    )


Column = Literal["scores", "classes"]


def recognised_output_map(model: ModelFile, probes: Sequence[Sequence[Array]]) -> OutputMap:
    """Tell the outputs apart by shape, name and range of values; ``probes`` are the outputs for a few pictures.

    Boxes have a last size of 4, the count is one number, classes are whole numbers, scores lie in 0..1. Where names and
    values contradict each other, or leave a choice, that is a :class:`ModelError`: nothing is guessed.
    """
    values = [np.concatenate([np.ravel(probe[place]) for probe in probes]) for place in range(len(probes[0]))]
    shapes = [np.shape(output) for output in probes[0]]
    sizes = [math.prod(shape) for shape in shapes]

    def refusal(why: str) -> ModelError:
        described = "; ".join(_described(model, place, shapes[place], values[place]) for place in range(len(shapes)))
        return ModelError(f"{model.path}: {why}. Outputs: {described}. {_HINT}")

    boxes = [
        place
        for place, shape in enumerate(shapes)
        if len(shape) >= 2 and shape[-1] == 4 and sum(4 * size == sizes[place] for size in sizes) >= 2
    ]
    if len(boxes) != 1:
        found = "several do" if boxes else "none does"
        raise refusal(f"one output must hold the boxes, [1,N,4] beside two outputs of N values, but {found}")
    rows = sizes[boxes[0]] // 4
    columns = [place for place, size in enumerate(sizes) if place != boxes[0] and size == rows]
    counts = [place for place, size in enumerate(sizes) if size == 1]
    if len(columns) != 2 or len(counts) > 1 or rows == 1:
        raise refusal(f"boxes are output {boxes[0]}, but which outputs are scores, classes and count is not known")
    by_name = _scores_place([(place, column_by_name(model.outputs[place])) for place in columns])
    by_value = _scores_place([(place, column_by_values(values[place])) for place in columns])
    if by_name is not None and by_value is not None and by_name != by_value:
        raise refusal(f"by their names output {by_name} holds the scores, by their values output {by_value}")
    scores = by_value if by_name is None else by_name
    if scores is None:
        raise refusal(f"outputs {columns[0]} and {columns[1]} are scores and classes, but which is which is not known")
    known = " and ".join(word for word, place in (("names", by_name), ("values", by_value)) if place is not None)
    classes = next(place for place in columns if place != scores)
    return OutputMap(boxes[0], classes, scores, counts[0] if counts else None, f"recognised by shapes and {known}")


def column_by_name(output: TensorInfo) -> Column | None:
    """What an output holds by its name: scores, classes, or None where the name does not say it."""
    name = f"{output.name} {output.signature_name}".lower()
    if any(word in name for word in _SCORE_WORDS):
        return "scores"
    return "classes" if any(word in name for word in _CLASS_WORDS) else None


def column_by_values(values: npt.NDArray[np.generic]) -> Column | None:
    """What values show: whole numbers from 0 on are classes, others in 0..1 scores; others still say nothing.

    >>> column_by_values(np.array([0.9, 0.2])), column_by_values(np.array([17.0, 0.0]))
    ('scores', 'classes')
    """
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all() or (numbers < 0).any():
        return None
    if (numbers == np.rint(numbers)).all():
        return "classes"
    return "scores" if (numbers <= 1).all() else None


def _scores_place(known: Sequence[tuple[int, Column | None]]) -> int | None:
    """The place of the scores, if the two columns can be distinguished; one that is known gives the other."""
    (first, is_first), (second, is_second) = known
    if is_first == is_second:
        return None
    return first if is_first == "scores" or is_second == "classes" else second


def _described(model: ModelFile, place: int, shape: tuple[int, ...], values: npt.NDArray[np.generic]) -> str:
    numbers = values.astype(np.float64)
    spread = f"{np.min(numbers):g} to {np.max(numbers):g}" if numbers.size else "empty"
    name = model.outputs[place].name or "unnamed"
    return f"{place} {name!r} [{','.join(map(str, shape))}]: {spread}"
