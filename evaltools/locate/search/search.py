"""The search: every operator alone, the whole model, what confirms or clears a suspect, what is wrong only together."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from evaltools.locate.parts.bench import Bench, GivenUp
from evaltools.locate.parts.part import Part
from evaltools.locate.search.alone import measure_alone
from evaltools.locate.search.context import look_in_context
from evaltools.locate.search.findings import Findings
from evaltools.locate.search.judge import FP32, stated_precision
from evaltools.locate.search.subject import Subject
from evaltools.locate.search.suspects import confirm_suspects
from evaltools.model.contents import Graph
from evaltools.model.cut import CuttableModel


def search(bench: Bench, model: CuttableModel, whole: Part, places: Sequence[int], graph: Graph) -> Findings:
    """Look for the operators at fault; what was found until a limit was reached.

    ``whole`` is the model as it is, with the configuration that is tested and how often and how long parts are run.
    ``places`` are the operators that are looked at. ``graph`` is the model's main one.
    """
    stated = stated_precision(whole.configuration)
    computed = tuple(place for place in places if place not in model.folded)
    subject = Subject(bench, model, whole, computed, graph, stated, Findings(precision=stated or FP32))
    try:
        subject.found.whole = bench.measure(whole)
        measure_alone(subject)
        _copy_all_tensors(subject)
        confirm_suspects(subject)
        look_in_context(subject)
    except GivenUp as error:
        subject.found.stopped = str(error)
    return subject.found


def _copy_all_tensors(subject: Subject) -> None:
    """A copy of every tensor, in one compile, where the model as it is can be run."""
    if not subject.found.whole.ran:
        return
    model = subject.model
    tensors = [
        tensor
        for place in subject.places
        for tensor in model.made_by(place)
        if model.holds_numbers(tensor) and tensor not in model.graph_outputs
    ]
    if tensors:
        subject.found.taps = subject.bench.measure(replace(subject.part(0, subject.last), taps=tuple(tensors)))
