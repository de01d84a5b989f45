"""Faults that only show where many operators run together: a bench that is made up stands for such a delegate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evaltools.configuration import Configuration
from evaltools.locate.parts.part import WHOLE, Outcome, Part, TensorRuns
from evaltools.locate.search.assemble import verdict
from evaltools.locate.search.findings import Findings
from evaltools.locate.search.search import search
from evaltools.model import read_model
from evaltools.model.contents import read_contents
from evaltools.model.cut import CuttableModel
from tests import locate_models

RUNS = 4


class MadeUpBench:
    """Every part is right but those of which ``spoil`` says what comes of a tensor in them."""

    def __init__(self, model: CuttableModel, spoil: Callable[[Part, int], float], dies: Callable[[Part], bool]) -> None:
        self._model = model
        self._spoil = spoil
        self._dies = dies

    def measure(self, part: Part) -> Outcome:
        last = len(self._model.operators) - 1
        whole = Part(0, last, part.configuration, part.exposed, part.taps) if part.is_whole else part
        is_tested = bool(part.configuration.delegates.requested) and part.configuration.name == "tested"
        if is_tested and self._dies(whole):
            return Outcome(died="SIGABRT")
        tensors = [*self._model.cut(whole.first, whole.last, {}).outputs, *part.exposed, *part.taps]
        outputs = tuple(self._runs(whole, tensor, is_tested) for tensor in tensors)
        return Outcome(outputs, nodes=1, delegated=1, delegates=("EXTERNAL",), runs=RUNS)

    def _runs(self, part: Part, tensor: int, is_tested: bool) -> TensorRuns:
        error = self._spoil(part, tensor) if is_tested else 0.0
        name = self._model.name(tensor)
        return TensorRuns(tensor, name, "absolute", (error,) * RUNS, error, 1.0, floors={"float32": 1e-7})


def searched(
    tmp_path: Path,
    method: str = "auto",
    spoil: Callable[[Part, int], float] = lambda _part, _tensor: 0.0,
    dies: Callable[[Part], bool] = lambda _part: False,
) -> tuple[Findings, CuttableModel]:
    path = tmp_path / "net.tflite"
    path.write_bytes(locate_models.net())
    file, model = read_model(path), CuttableModel(locate_models.net())
    tested = Configuration.from_text("tested", "external_delegate_path=npu.so")
    bench = MadeUpBench(model, spoil, dies)
    part = Part(WHOLE, WHOLE, tested, runs=RUNS)
    graph = read_contents(file).main
    return search(bench, model, part, range(8), graph, method), model  # type: ignore[arg-type]


def length(part: Part) -> int:
    return part.last - part.first + 1


@pytest.mark.parametrize("least", [2, 3, 8])
def test_a_crash_of_several_operators_is_the_smallest_part_that_dies(tmp_path: Path, least: int) -> None:
    found, model = searched(tmp_path, dies=lambda part: length(part) >= least)
    (culprit,) = found.culprits
    assert (culprit.last - culprit.first + 1, culprit.status) == (least, "crashes in context")
    assert verdict(found, model).kind == "crash"


@pytest.mark.parametrize("place", [0, 3, 5])
def test_a_fault_in_long_parts_is_named_where_copies_show_it_first(tmp_path: Path, place: int) -> None:
    """The operator is wrong in parts of six and more, and so is what comes behind it."""
    made_by = CuttableModel(locate_models.net()).makers

    def spoil(part: Part, tensor: int) -> float:
        spoilt = length(part) >= 6 and part.first <= place <= part.last
        return 0.1 if spoilt and made_by[tensor] >= place else 0.0

    found, model = searched(tmp_path, spoil=spoil)
    assert verdict(found, model).kind == "fault in context"
    assert verdict(found, model).operators == (place,)


def test_errors_that_one_method_shows_are_never_an_acquittal(tmp_path: Path) -> None:
    def spoil(part: Part, tensor: int) -> float:
        return 0.1

    for method in ("single", "taps", "range", "island"):
        found, model = searched(tmp_path, method, spoil)
        assert verdict(found, model, method).kind in ("suspected", "not decided"), method
