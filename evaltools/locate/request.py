"""What a search is asked for, read and checked before anything runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.errors import ModelError, UsageError
from evaltools.locate.sides import SavedArrays, Side, other_model, saved_tensors
from evaltools.model import ModelFile, read_model
from evaltools.model.cut import CuttableModel
from evaltools.operators.state import expected_parts
from evaltools.parameter import did_you_mean
from evaltools.request import Options, Request
from evaltools.runs.at_devices import on_devices
from evaltools.runtime.session import Array
from evaltools.tasks.framework.image_input import StatedLayout
from evaltools.tasks.inference_diff.input_options import SAVED, InputOptions
from evaltools.tasks.inference_diff.inputs import InputPlan, Provider, RunInputs, plan_inputs, saying
from evaltools.tasks.inference_diff.material import shaped
from evaltools.tasks.inference_diff.output_comparison import check_types

_BY_NAME_OPTIONS: Final = ("reference_model_file", "reference_tensors")
_INPUT_OPTIONS: Final = (
    "input_files", "input_images", "input_range", "inputs", "normalization", "input_layout", "channel_order",
)  # fmt: skip
_RANGE: Final = re.compile(r"(?P<first>[0-9]+)-(?P<last>[0-9]+)|(?P<only>[0-9]+)")


class LocateRequest(Struct, frozen=True):
    """A search: the model, the configuration that is tested, and how to look.

    ``places`` are the operators that are looked at, by number. ``inputs`` gives those of run 0 to ``num_inputs`` - 1;
    where the ``side`` that the model is compared with is another model, in the types that fit both.
    """

    asked: Request
    model: ModelFile
    parts: CuttableModel
    reference: Configuration
    tested: Configuration
    places: range
    inputs: InputPlan
    num_inputs: int
    side: Side | None = None
    warnings: tuple[str, ...] = ()

    @property
    def options(self) -> Options:
        """What was asked for."""
        return self.asked.options

    @property
    def expected_parts(self) -> int:
        """How many parts are measured at least."""
        return expected_parts(self.parts, self.places)

    @property
    def expected_starts(self) -> tuple[int, int]:
        """Of a program that is started for each run: how often at least and at most, beside what confirms a suspect.

        One opens each part, and it is run with each input as the reference had it and as the parts before gave it.
        """
        least = 1 + 2 * self.num_inputs
        more = max(0, self.options.number("num_runs") - self.num_inputs)
        return self.expected_parts * least, self.expected_parts * (least + more)

    def drawn(self) -> list[tuple[Array, ...]]:
        """The inputs of all runs."""
        return [self.inputs.source.inputs(run) for run in range(self.num_inputs)]


def read_request(request: Request) -> LocateRequest:
    """Check the options, read the model, plan the inputs; raises :class:`UsageError` and its kinds."""
    request = on_devices(request)
    options = request.options
    model = shaped(read_model(_model_path(options), options.text("signature")), tuple(options.texts("input_shape")))
    check_types(model, native=False)
    parts = CuttableModel(model.read())
    _require_operators(model, parts)
    num_inputs = _positive(options, "num_inputs")
    _positive(options, "num_runs")
    for name in ("part_secs", "max_compiles", "max_secs"):
        if options.real(name) < 0:
            raise UsageError(f"--{name}={options.text(name)}: use 0 or more")
    side = _side(options, model, parts)
    plan, warnings = _planned(options, model, side, num_inputs)
    assert request.reference is not None
    return LocateRequest(
        asked=request,
        model=model,
        parts=parts,
        reference=request.reference,
        tested=request.tests[0],
        places=_places(options.text("operators"), parts),
        inputs=plan,
        num_inputs=min(num_inputs, len(plan.example_ids)),
        side=side,
        warnings=warnings,
    )


def _side(options: Options, model: ModelFile, parts: CuttableModel) -> Side | None:
    """What the tensors of the model are compared with by their names, None for a search."""
    asked = [name for name in _BY_NAME_OPTIONS if options.path(name) is not None]
    if len(asked) > 1:
        raise UsageError(f"--{asked[0]} and --{asked[1]} both state the other side; keep one")
    if not asked:
        return None
    other = options.path("reference_model_file")
    if other is None:
        return saved_tensors(model, parts, Path(options.text("reference_tensors")))
    found = read_model(other)
    if options.text("signature") in found.signatures:
        found = read_model(other, options.text("signature"))
    check_types(found, native=False)
    return other_model(model, parts, found, _input_options(options, 1))


def _planned(
    options: Options, model: ModelFile, side: Side | None, num_inputs: int
) -> tuple[InputPlan, tuple[str, ...]]:
    """The inputs, and what there is to say of them."""
    if side is not None and side.saved is not None:
        return _inputs_of_saved(options, model, side.saved)
    taken = side.model.pair.inputs if side is not None and side.model is not None else model.inputs
    return plan_inputs(model, taken, _input_options(options, num_inputs)), ()


def _inputs_of_saved(options: Options, model: ModelFile, saved: SavedArrays) -> tuple[InputPlan, tuple[str, ...]]:
    """The one input that the saved tensors were made from."""
    warnings = (saved.unused,) if saved.unused else ()
    if "num_inputs" in options and options.number("num_inputs") != 1:
        raise UsageError("--reference_tensors holds the tensors of one input; leave --num_inputs out")
    given = [name for name in _INPUT_OPTIONS if name in options]
    if saved.inputs is None:
        if given != ["input_files"]:
            raise UsageError(
                f"--reference_tensors={saved.path} has none of the model's inputs ("
                f"{', '.join(map(str, model.inputs))}), but its tensors belong to one input; save that under its name, "
                "too, or give it as --input_files=FILE.npy"
            )
        return plan_inputs(model, model.inputs, _input_options(options, 1)), warnings
    if given:
        raise UsageError(f"--reference_tensors={saved.path} has the inputs, too; leave --{given[0]} out")
    stored = {position: _always(values) for position, values in enumerate(saved.inputs)}
    words = tuple(saying(f"saved in {saved.path.name}") for _ in saved.inputs)
    source = RunInputs(len(saved.inputs), stored, {}, {})
    return InputPlan(source, ("run 0",), (SAVED,), model.inputs, words), warnings


def _always(values: Array) -> Provider:
    return lambda _run, _ranges: values


def _model_path(options: Options) -> Path:
    path = options.path("model_file")
    if path is None:
        raise UsageError("missing: the model; give one, as in evaltools locate MODEL.tflite --use_gpu")
    return path


def _require_operators(model: ModelFile, parts: CuttableModel) -> None:
    if not parts.graph_outputs:
        raise ModelError(f"{model.path} has no outputs, so that there is nothing to compare; convert it with outputs")
    if not parts.operators:
        raise ModelError(f"{model.path} has no operators, so that none can make a difference")
    text = [tensor for tensor in (*parts.graph_inputs, *parts.graph_outputs) if not parts.holds_numbers(tensor)]
    if text:
        raise ModelError(f"{model.path}: {parts.name(text[0])!r} holds no numbers, and only numbers can be compared")


def _positive(options: Options, name: str) -> int:
    number = options.number(name)
    if number < 1:
        raise UsageError(f"--{name}={number}: use 1 or more")
    return number


def _input_options(options: Options, num_inputs: int) -> InputOptions:
    seed = options.number("seed")
    if seed < 1:
        raise UsageError(f"--seed={seed}: use a whole number of 1 or more")
    return InputOptions(
        num_runs=num_inputs,
        seed=seed,
        ranges=tuple(options.texts("input_range")),
        files=tuple(options.texts("input_files")),
        images=options.path("input_images"),
        normalization=options.text("normalization"),
        kind=options.text("inputs"),
        input_layout=cast(StatedLayout, options.text("input_layout")),
        channel_order=options.text("channel_order"),
    )


def _places(text: str, parts: CuttableModel) -> range:
    """The operators that ``--operators`` names, all without it."""
    count = len(parts.operators)
    if not text:
        return range(count)
    match = _RANGE.fullmatch(text)
    if match is None:
        return _between(text, parts)
    first = int(match["first"] or match["only"])
    last = int(match["last"] or match["only"])
    if not first <= last < count:
        raise UsageError(f"--operators={text}: the model has the operators 0 to {count - 1}; use FIRST-LAST")
    return range(first, last + 1)


def _between(text: str, parts: CuttableModel) -> range:
    """The operators between two tensors, by their names."""
    made = {parts.name(tensor): place for tensor, place in parts.makers.items()}
    readers: dict[str, int] = {}
    for place in range(len(parts.operators)):
        for tensor in parts.fed_to(place):
            readers.setdefault(parts.name(tensor), place)
    for colon in (place for place, letter in enumerate(text) if letter == ":"):
        first, last = text[:colon], text[colon + 1 :]
        if first in readers and last in made and readers[first] <= made[last]:
            return range(readers[first], made[last] + 1)
    hint = did_you_mean(text.partition(":")[0], readers)
    raise UsageError(f"--operators={text}: expected FIRST-LAST, or TENSOR:TENSOR by the names of tensors.{hint}")
