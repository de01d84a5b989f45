"""Faults that only show where operators run together, and suspects behind others, by a bench that is made up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evaltools.configuration import Configuration
from evaltools.model import read_model
from evaltools.model.contents import read_contents
from evaltools.model.cut import CuttableModel
from evaltools.operators.answer import answer as answer_of
from evaltools.operators.answer import status_of
from evaltools.operators.judge import FP32
from evaltools.operators.part import WHOLE, Outcome, Part, TensorRuns
from evaltools.operators.search import search
from evaltools.operators.state import Found, SearchState, Subject
from tests import locate_models

RUNS = 4
NET = locate_models.net()


class MadeUpBench:
    """Every part is right but those of which ``spoil`` says what comes of a tensor in them."""

    changes_outputs = False

    def __init__(
        self,
        model: CuttableModel,
        spoil: Callable[[Part, int], float],
        dies: Callable[[Part], bool],
        refuses: Callable[[Part], bool],
        taken: tuple[int, ...],
    ) -> None:
        self._taken = taken
        self._model = model
        self._spoil = spoil
        self._dies = dies
        self._refuses = refuses

    def measure(self, part: Part) -> Outcome:
        last = len(self._model.operators) - 1
        whole = Part(0, last, part.configuration, part.exposed, part.taps) if part.is_whole else part
        is_tested = bool(part.configuration.delegates.requested) and part.configuration.name == "tested"
        if is_tested and self._dies(whole):
            return Outcome(died="SIGABRT")
        if is_tested and self._refuses(whole):
            return Outcome(refused="no inputs")
        tensors = [*self._model.cut(whole.first, whole.last, {}).outputs, *part.exposed, *part.taps]
        outputs = tuple(self._runs(whole, tensor, is_tested) for tensor in tensors)
        taken = self._taken if part.is_whole else ()
        return Outcome(outputs, nodes=1, delegated=1, taken=taken, delegates=("EXTERNAL",), runs=RUNS)

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
    refuses: Callable[[Part], bool] = lambda _part: False,
    content: bytes = NET,
    precision: str = "",
    taken: tuple[int, ...] = (),
) -> tuple[SearchState, CuttableModel]:
    path = tmp_path / "net.tflite"
    path.write_bytes(content)
    file, model = read_model(path), CuttableModel(content)
    tested = Configuration.from_text("tested", "external_delegate_path=npu.so")
    bench = MadeUpBench(model, spoil, dies, refuses, taken)
    part = Part(WHOLE, WHOLE, tested, runs=RUNS)
    graphs = read_contents(file).graphs
    places = tuple(place for place in range(len(model.operators)) if place not in model.folded)
    subject = Subject(bench, model, part, places, graphs, SearchState(precision, precision or FP32))  # type: ignore[arg-type]
    search(subject)
    return subject.state, model


PLACES = CuttableModel(NET).makers


def last_suspect(tmp_path: Path, behind: float, fed: float = 0.1) -> Found:
    """Operators 6 and 7 are wrong alone by 0.1; ``behind`` is the error of 7 on what 6 gave, off by ``fed``."""

    def spoil(part: Part, tensor: int) -> float:
        if part.as_fed:
            return behind if PLACES[tensor] == part.last else fed
        return 0.1 if PLACES[tensor] >= 6 else 0.0

    found, _ = searched(tmp_path, spoil=spoil)
    first, last = found.suspects if found.suspects[0].place == 6 else found.suspects[::-1]
    assert (first.place, first.status, last.place) == (6, "confirmed", 7)
    return last


def test_it_is_confirmed_where_it_is_wrong_for_what_it_was_fed(tmp_path: Path) -> None:
    found = last_suspect(tmp_path, 0.1)
    assert found.status == "confirmed"
    assert [(each.method, each.part, each.beyond) for each in found.evidence] == [
        ("single", "7", RUNS), ("as fed", "4-7", RUNS),
    ]  # fmt: skip


def test_it_is_neither_confirmed_nor_cleared_where_it_is_right_for_that(tmp_path: Path) -> None:
    found = last_suspect(tmp_path, 0.0)
    assert found.status == "not confirmed"
    assert [each.method for each in found.evidence] == ["single"]


@pytest.mark.parametrize(
    ("precision", "times", "kind", "status"),
    [
        ("fp16", 1.5, "suspected", "unclear"),
        ("fp16", 2.5, "operator at fault", "wrong"),
        ("", 1.5, "operator at fault", "wrong"),
    ],
)
def test_in_a_lower_precision_an_operator_is_at_fault_where_it_is_clearly_beyond_its_tolerance(
    precision: str, times: float, kind: str, status: str, tmp_path: Path
) -> None:
    right, _ = searched(tmp_path, precision=precision)
    (tensor,) = right.limits[6]
    error = times * right.limits[6][tensor].size
    state, model = searched(tmp_path, lambda _part, other: error * (other == tensor), precision=precision)
    assert (answer_of(state, model).kind, status_of(6, state, model)) == (kind, status)


def length(part: Part) -> int:
    return part.last - part.first + 1


@pytest.mark.parametrize("least", [2, 3, 8])
def test_a_crash_of_several_operators_is_the_smallest_part_that_dies(tmp_path: Path, least: int) -> None:
    found, model = searched(tmp_path, dies=lambda part: length(part) >= least)
    (suspect,) = found.suspects
    assert (suspect.last - suspect.first + 1, suspect.status) == (least, "crashes in context")
    assert answer_of(found, model).kind == "crash"


def test_a_delegate_that_dies_of_everything_blames_no_operator(tmp_path: Path) -> None:
    found, model = searched(tmp_path, dies=lambda _part: True)
    answer = answer_of(found, model)
    assert (answer.kind, answer.operators) == ("crash", ())
    assert answer.text.endswith("SIGABRT")
    assert found.suspects == []


@pytest.mark.parametrize("exact", [True, False])
def test_a_tensor_that_is_off_in_the_model_on_exact_inputs_is_a_suspect(exact: bool, tmp_path: Path) -> None:
    """No part shows it, and one by one the operators give 0."""

    def spoil(part: Part, tensor: int) -> float:
        if length(part) < 8 or PLACES[tensor] < 3:
            return 0.0 if exact or length(part) < 8 else 1e-9
        return 0.1

    found, model = searched(tmp_path, spoil=lambda part, tensor: spoil(part, tensor) if part.taps else 0.0)
    answer = answer_of(found, model)
    assert (answer.kind, answer.operators) == (("suspected", (3,)) if exact else ("no difference", ()))


@pytest.mark.parametrize("least", [2, 3])
def test_a_fault_in_parts_of_two_or_three_alone_is_found_around_that_tensor(least: int, tmp_path: Path) -> None:
    def spoil(part: Part, tensor: int) -> float:
        spoilt = part.taps or length(part) == least
        return 0.1 if spoilt and part.first <= 3 <= part.last and PLACES[tensor] >= 3 else 0.0

    found, model = searched(tmp_path, spoil=spoil)
    (suspect,) = found.suspects
    assert (suspect.place, suspect.last - suspect.first + 1, suspect.status) == (3, least, "only in context")
    assert answer_of(found, model).kind == "fault in context"


def test_nothing_adds_up_where_operators_one_by_one_give_0(tmp_path: Path) -> None:
    """The outputs are off, and neither copies nor parts show it."""
    found, model = searched(tmp_path, spoil=lambda part, _: 0.1 if length(part) == 8 and not part.taps else 0.0)
    assert found.whole.worst
    assert answer_of(found, model).kind in ("not decided", "fault in context")


@pytest.mark.parametrize("place", [0, 3, 5])
def test_a_fault_in_long_parts_is_named_where_copies_show_it_first(tmp_path: Path, place: int) -> None:
    """The operator is wrong in parts of six and more, and so is what comes behind it."""
    made_by = CuttableModel(locate_models.net()).makers

    def spoil(part: Part, tensor: int) -> float:
        spoilt = length(part) >= 6 and part.first <= place <= part.last
        return 0.1 if spoilt and made_by[tensor] >= place else 0.0

    found, model = searched(tmp_path, spoil=spoil)
    assert answer_of(found, model).kind == "fault in context"
    assert answer_of(found, model).operators == (place,)


@pytest.mark.parametrize(("amount", "suspects"), [(1.4e-6, ()), (2.5e-6, (3,))])
def test_what_copies_show_counts_from_twice_the_tolerance_on(
    amount: float, suspects: tuple[int, ...], tmp_path: Path
) -> None:
    """Twice the tolerance of operator 3, whose outputs are of the size 1, is 1.8e-6; rounding makes less."""
    made_by = CuttableModel(locate_models.net()).makers

    def spoil(part: Part, tensor: int) -> float:
        spoilt = length(part) >= 6 and part.first <= 3 <= part.last
        return amount if spoilt and made_by[tensor] >= 3 else 0.0

    found, model = searched(tmp_path, spoil=spoil)
    assert answer_of(found, model).operators == suspects


@pytest.mark.parametrize(("behind_it", "reaches"), [(0.0, True), (0.04, True), (0.06, None), (0.2, None)])
def test_an_error_reaches_the_outputs_where_they_are_twice_as_far_off_with_it(
    behind_it: float, reaches: bool | None, tmp_path: Path
) -> None:
    """Operator 3 is off by 0.1, alone and at the outputs; from the next one on these are off by ``behind_it``."""

    def spoil(part: Part, tensor: int) -> float:
        if part.last == 7 and part.first in (3, 4) and PLACES[tensor] == 7:
            return 0.1 if part.first == 3 else behind_it
        return 0.1 if PLACES[tensor] == 3 else 0.0

    found, _ = searched(tmp_path, spoil=spoil)
    (suspect,) = [each for each in found.suspects if each.place == 3]
    assert suspect.reaches_output is reaches


@pytest.mark.parametrize("refused", [False, True])
def test_an_operator_on_a_constant_is_looked_at_by_itself_and_who_reads_it_is_innocent(
    refused: bool, tmp_path: Path
) -> None:
    """The first of two operators, of which a delegate may refuse a model of its own, as it has no inputs."""

    def spoil(part: Part, _tensor: int) -> float:
        return 0.1 if part.first == 0 else 0.0

    found, model = searched(
        tmp_path, spoil, refuses=lambda part: refused and part.last == 0, content=locate_models.on_a_constant()
    )
    answer = answer_of(found, model)
    assert answer.operators == (0,)
    assert answer.kind == ("fault in context" if refused else "operator at fault")
    assert [each.place for each in found.suspects] == [0]


def test_only_operators_that_the_delegate_runs_in_the_model_are_at_fault(tmp_path: Path) -> None:
    """By themselves it takes and spoils all of them; where nothing says which it takes, each may be it."""

    def spoil(part: Part, tensor: int) -> float:
        return 0.1 if PLACES[tensor] in (5, 7) else 0.0

    state, model = searched(tmp_path, spoil=spoil, taken=(7,))
    found = answer_of(state, model)
    assert (found.text, found.operators) == ("operator at fault: #7 SOFTMAX", (7,))
    assert status_of(5, state, model) == "stays on the CPU"
    assert answer_of(*searched(tmp_path, spoil=spoil)).operators == (5, 7)


def test_an_operator_that_kills_the_delegate_by_itself_does_no_harm_on_the_cpu(tmp_path: Path) -> None:
    def dies(part: Part) -> bool:
        return part.first == part.last == 3

    assert answer_of(*searched(tmp_path, dies=dies, taken=(0, 1, 2))).kind == "no difference"
    assert answer_of(*searched(tmp_path, dies=dies, taken=(2, 3))).operators == (3,)
