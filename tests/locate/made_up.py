"""A bench that is made up: it says what comes of each part of the net of eight operators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evaltools.configuration import Configuration
from evaltools.locate.findings import Findings, Subject
from evaltools.locate.part import WHOLE, Outcome, Part, TensorRuns
from evaltools.locate.search import search
from evaltools.model import read_model
from evaltools.model.contents import read_contents
from evaltools.model.cut import CuttableModel
from tests import locate_models

RUNS = 4


class MadeUpBench:
    """Every part is right but those of which ``spoil`` says what comes of a tensor in them."""

    changes_outputs = False

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
        return TensorRuns(
            tensor, name, "absolute", (error,) * RUNS, (error,) * RUNS, magnitude=1.0,
            chained=(0.0, 0.0) if part.variants else None,
        )  # fmt: skip


def searched(
    tmp_path: Path,
    spoil: Callable[[Part, int], float] = lambda _part, _tensor: 0.0,
    dies: Callable[[Part], bool] = lambda _part: False,
) -> tuple[Findings, CuttableModel]:
    path = tmp_path / "net.tflite"
    path.write_bytes(locate_models.net())
    file, model = read_model(path), CuttableModel(locate_models.net())
    tested = Configuration.from_text("tested", "external_delegate_path=npu.so")
    bench = MadeUpBench(model, spoil, dies)
    part = Part(WHOLE, WHOLE, tested, runs=RUNS)
    graphs = read_contents(file).graphs
    places = tuple(place for place in range(8) if place not in model.folded)
    subject = Subject(bench, model, part, places, graphs, Findings())  # type: ignore[arg-type]
    search(subject)
    return subject.found, model
