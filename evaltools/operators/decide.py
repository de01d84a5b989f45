"""Whether the operators one by one explain how far a configuration is from the reference, or which of them is wrong.

Where a model amplifies rounding, the size of a difference at its outputs shows nothing. Each operator by itself, fed
with exact inputs, amplifies nothing: all of them right, and together equal to the whole model, is a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.run_folder import run_folder, run_journal
from evaltools.errors import EvaltoolsError
from evaltools.gates.verdict import DIVERGED, EQUIVALENT, NOT_DECIDED, Grade
from evaltools.metrics.words import two_digits
from evaltools.model import ModelFile
from evaltools.model.cut import CuttableModel
from evaltools.operators.answer import FAULTS, answer, named, status_of
from evaltools.operators.bench import Bench, GivenUp
from evaltools.operators.child import CHAIN
from evaltools.operators.judge import FP32, Limit
from evaltools.operators.part import Part
from evaltools.operators.search import measure_alone, search
from evaltools.operators.state import Subject, expected_parts, subject_of
from evaltools.runtime.session import Array

_SHOWN: Final = ("right", "precision", "stays on the CPU", "computes from constants")
"""What says of an operator that it is right."""
_GRADES: Final[Mapping[str, Grade]] = {"fp16": "fp16", "bf16": "bf16"}
_SAME: Final = 1e-3
"""So little the whole model may be from its operators one by one, in relative RMS: no fault hides in it."""


class ByOperators(Struct, frozen=True):
    """What the operators show: a grade, ``not decided`` where they show nothing, and the sentence."""

    grade: Grade
    text: str
    operators: tuple[int, ...] = ()


def cuttable(model: ModelFile) -> CuttableModel | None:
    """A model with operators between inputs and outputs that hold numbers, and without a state; None for others."""
    if model.stateful:
        return None
    parts = CuttableModel(model.read())
    tensors = (*parts.graph_inputs, *parts.graph_outputs)
    is_so = bool(parts.operators and parts.graph_outputs) and all(map(parts.holds_numbers, tensors))
    return parts if is_so else None


def decide(
    model: ModelFile,
    parts: CuttableModel,
    reference: Configuration,
    tested: Configuration,
    inputs: Sequence[Sequence[Array]],
    seconds: float,
    on_part: Callable[[], None] = lambda: None,
) -> ByOperators:
    """Run the operators of a :func:`cuttable` model one by one for at most so many ``seconds``, and say what they show.

    ``inputs`` are sets of the model's inputs, in its order. ``on_part`` is called after each of
    :func:`~evaltools.operators.state.expected_parts`.
    """
    known = iter(range(expected_parts(parts)))

    def count(_part: Part) -> None:
        if next(known, None) is not None:  # what a suspect costs comes on top
            on_part()

    with run_journal(None) as journal, run_folder(None) as folder:
        bench = Bench(model, reference, folder, journal, timeout_s=seconds, max_secs=seconds, on_part=count)
        try:
            bench.capture(inputs, parts.graph_inputs)
            subject = subject_of(bench, model, parts, tested, runs=len(inputs))
            found = _explained(subject) or _searched(subject)
            return _late(seconds) if subject.state.stopped and found.grade == NOT_DECIDED else found
        except GivenUp:
            return _late(seconds)
        except EvaltoolsError as error:
            return ByOperators(NOT_DECIDED, f"the operators one by one were not looked at: {error}")
        finally:
            bench.close()


def _late(seconds: float) -> ByOperators:
    return ByOperators(
        NOT_DECIDED, f"the operators one by one take more than {seconds:.0f} s; evaltools locate has time"
    )


def _explained(subject: Subject) -> ByOperators | None:
    """That the operators one by one explain the whole model, None where they do not."""
    state = subject.state
    state.whole = subject.bench.measure(subject.whole)
    measure_alone(subject)
    if not state.whole.ran or _unsure(subject):
        return None
    precision = "" if state.precision == FP32 else f" of {state.precision}"
    moved = max(runs.relative for runs in state.whole.outputs)
    text = (
        f"each of {len(subject.places)} operators by itself is within rounding{precision}, and together they give what "
        f"the model gives: a relative RMS of up to {two_digits(moved)}"
    )
    return ByOperators(_GRADES.get(state.precision, EQUIVALENT), text)


def _searched(subject: Subject) -> ByOperators:
    """Which operator is wrong, or why nothing shows that."""
    search(subject)
    found = answer(subject.state, subject.model)
    if found.kind in FAULTS:
        return ByOperators(DIVERGED, found.text, found.operators)
    return ByOperators(NOT_DECIDED, found.text if found.tone != "good" else _unsure(subject))


def _unsure(subject: Subject) -> str:
    """Why the operators do not explain the whole model, empty where they do."""
    state, model = subject.state, subject.model
    statuses = {place: status_of(place, state, model) for place in subject.places}
    unknown = [place for place, status in statuses.items() if status not in _SHOWN]
    if unknown:
        return f"nothing shows whether {named(unknown, model)} is right: {statuses[unknown[0]]}"
    alone = sum(outcome.delegated for outcome in state.singles.values())
    if alone < state.whole.delegated:
        return f"by themselves {alone} operators run on the delegate, in the whole model {state.whole.delegated}"
    chained = subject.bench.measure(replace(subject.whole, against=CHAIN))
    apart = max((Limit(_SAME, 1.0 if runs.unit == "steps" else 0.0).share(runs) for runs in chained.outputs), default=0)
    if not chained.ran or apart > 1:
        return "the whole model gives something else than its operators one by one"
    return ""
