"""Decides which steps are taken for a method: every operator alone, the whole model, what confirms a suspect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from evaltools.locate.parts.bench import Bench, GivenUp
from evaltools.locate.parts.part import Part
from evaltools.locate.search import methods
from evaltools.locate.search.alone import measure_alone
from evaltools.locate.search.context import look_in_context
from evaltools.locate.search.findings import Findings
from evaltools.locate.search.judge import FP32, stated_precision
from evaltools.locate.search.subject import Subject
from evaltools.locate.search.suspects import confirm_suspects
from evaltools.model.contents import Graph
from evaltools.model.cut import CuttableModel


def search(
    bench: Bench, model: CuttableModel, whole: Part, places: Sequence[int], graph: Graph, method: str
) -> Findings:
    """Look for the operators at fault with a method of ``--method``; what was found until a limit was reached.

    ``whole`` is the model as it is, with the configuration that is tested and how often and how long parts are run.
    ``places`` are the operators that are looked at. ``graph`` is the model's main one.
    """
    stated = stated_precision(whole.configuration)
    computed = tuple(place for place in places if place not in model.folded)
    subject = Subject(bench, model, whole, computed, graph, stated, Findings(precision=stated or FP32))
    try:
        subject.found.whole = bench.measure(whole)
        _STEPS[method](subject)
    except GivenUp as error:
        subject.found.stopped = str(error)
    return subject.found


def _auto(subject: Subject) -> None:
    measure_alone(subject)
    methods.tap(subject)
    confirm_suspects(subject)
    look_in_context(subject)


_STEPS: Final[dict[str, Callable[[Subject], None]]] = {
    "auto": _auto,
    "single": methods.single,
    "taps": methods.tap,
    "prefix": methods.prefix,
    "suffix": methods.suffix,
    "range": methods.equal_ranges,
    "island": methods.islands,
}
