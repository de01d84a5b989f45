"""What a terminal shows of a search for an operator, and which command each result suggests next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.cli.locate import print_answer, print_operators
from evaltools.locate.rows import ACCUMULATED, cause_row, figures, operator_row
from evaltools.locate.words import suspect_lines
from evaltools.metrics.interval import Interval
from evaltools.metrics.output_difference import KindFigures, Scores
from evaltools.operators.answer import Answer
from evaltools.report.words.next_steps import after_evaluation
from evaltools.result.facts import Model, Tensor
from evaltools.result.result import Result, Row
from evaltools.result.verdict import Verdict
from tests.locate import found
from tests.results import configuration, result, row_with
from tests.tasks.inference_diff.results import DIFFERENCE, comparison
from tests.tasks.inference_diff.results import judged as output
from tests.tasks.inference_diff.results import result as diff_result

Show = Callable[[Console], None]
LONG: Final = "functional_1/block_13_expand/Conv2D;" * 3 + "functional_1/block_13_expand_relu/Relu6"


def _search(
    *operators: Row,
    answer: Answer | None = None,
    parts: Sequence[Row] = (),
    warning: str = "",
    is_in_a_file: bool = False,
) -> Show:
    made = result(configuration("reference", "reference"), configuration("gpu"))
    entry = replace(made.rows[1], rows=list(parts), verdicts=[], figures={})
    warnings = [warning] if warning else []
    searched = found.search(entry, made.models[0], made.environment, operators, answer, warnings=warnings)

    def show(console: Console) -> None:
        print_operators(found.concluded(searched), console)
        print_answer(found.concluded(searched), console)
        if is_in_a_file:
            console.print("\n".join(suspect_lines(searched)), markup=False)

    return show


def _steps(worst: float) -> Show:
    row = found.operator(1, "MUL", "product", "right", (worst, 0.5), unit="steps", size=0.5, tolerance=1.0)
    errors = found.errors(ACCUMULATED, worst, 0.5, "steps") | figures(explained=worst)
    return _search(row, parts=[Row("total", "output", figures=errors)])


def _two_models(is_alone: bool, warning: str = "", kept: int = 7) -> Show:
    """Of 9 layers ``kept`` are worth keeping in float; one could not be tried."""
    pair = (0.5, 0.1)
    rows = [
        found.operator(number, "CONV_2D", f"tensor {number}", "compared", pair if is_alone else None, pair)
        for number in range(9)
    ]
    for place in range(8 if is_alone else 0):
        rank, known = place + 1 if place < kept else 0, Interval(0.5, 10.25)
        rows[place] = found.in_float(rows[place], 30.0 - place, 10.0 - place, rank, known)
    parts = [found.tried_in_float("'logits', 'boxes'", 20.0, 30, 9)] if is_alone else []
    return _search(*rows, answer=found.by_name("9 of 9 operators"), parts=parts, warning=warning)


def _searches() -> Mapping[str, Show]:
    causes = [cause_row(name, f"as {name} shows", "calibrate again") for name in ("scale", "scale", *["clipped"] * 3)]
    wrong = [found.operator(number, "ADD", "sum", "wrong", (2.0, 0.5)) for number in range(9)]
    said = "the delegate found no GPU"
    return {
        "a long name, whole in a file": _search(
            found.suspected(found.operator(0, "ADD", LONG, "wrong", (2.0, 0.5)), []), is_in_a_file=True
        ),
        "many suspects": _search(*(found.suspected(row, ["seen"]) for row in wrong)),
        **{f"off by {worst:g}": _steps(worst) for worst in (0.0, 1.0, 2.0)},
        "what the answer says is not said again": _search(
            operator_row(0, "ADD", "sum", "refused by itself", said),
            operator_row(1, "MUL", "product", "refused by itself", "the delegate does not take it"),
            answer=found.not_decided(said),
        ),
        "two models": _two_models(is_alone=True),
        "one layer more than are listed": _two_models(is_alone=True, kept=6),
        "layers of few causes": _search(answer=found.by_name("9 of 9 operators"), parts=causes),
        "without single operators, with a warning": _two_models(is_alone=False, warning="coarse"),
    }


REFERENCE: Final = configuration("reference", "reference")
SCORES: Final = Scores(4, 3, None)
RESHAPE: Final = (
    "reshape_utils.h num_input_elements != num_output_elements (1568 != 196). Node number 1 (RESHAPE) failed"
)
COUNTS: Final = dict.fromkeys(("points", "confident", "lost", "new", "displaced"), 1.0)
KEYPOINTS: Final = KindFigures(
    "keypoints", {**COUNTS, "mean_move": None, "largest_move": None, "largest_move_of_others": None}, {}
)
PICTURE: Final = Tensor("in", "float32", [1, 192, 192, 3], None, None)
DIVERGED: Final = replace(configuration("gpu"), verdicts=[Verdict("diverged", "outputs", "reference")])


def _next(made: Result, *command: str, entry: Row | None = None) -> Show:
    typed = replace(made, environment=replace(made.environment, command=["evaltools", *command]))

    def show(console: Console) -> None:
        for step in after_evaluation(typed, entry or typed.rows[-1]):
            console.print(step.line, markup=False)

    return show


def _of_model(fed: Tensor, given: Sequence[Tensor] = (), **known: Any) -> Result:
    """Outputs of another kind, which diverged."""
    made = diff_result(comparison("gpu", output(replace(DIFFERENCE, **known))))
    model: Model = replace(made.model, inputs=[fed], outputs=given or made.model.outputs[:1])
    return replace(made, models=[model])


def _steps_after() -> Mapping[str, Show]:
    def lost(reason: str) -> Row:
        return row_with(configuration("gpu"), status="not measured", runtime=None, reason=reason)

    worse = Verdict("worse", "top1", "reference", change=-0.03, low=-0.05, high=-0.01, margin=0.005)
    changed = result(REFERENCE, replace(configuration("gpu"), verdicts=[worse], flags=["--use_gpu=true"]))
    on_phone = ("device", "run", "imagenet", "m.tflite", "--serials=R58")
    inputs = ("--input_shape=image:8,16,16,3", "--seed=4", "--normalization=unit", "--num_runs=3")
    refused, died = "failed to delegate CONV", "the process of this configuration died (SIGSEGV)"
    shape = replace(REFERENCE, status="not measured", reason=RESHAPE)
    landmarks = Tensor("landmarks", "float32", [1, 1404], None, None)
    beside = [landmarks, replace(landmarks, name="score", shape=[1, 1])]
    models = {
        "pictures": _of_model(replace(PICTURE, shape=[1, 224, 224, 3]), scores=SCORES),
        "sound": _of_model(replace(PICTURE, shape=[1, 16000]), scores=SCORES),
        "words": _of_model(replace(PICTURE, dtype="int32", shape=[1, 128]), scores=SCORES),
        "keypoints": _of_model(PICTURE, of_kind=KEYPOINTS),
        "landmarks beside their scores, which are no classes": _of_model(PICTURE, beside, scores=SCORES),
    }
    return {
        "worse": _next(changed, "imagenet", "m.tflite", "--images=val", "--channel_order", "bgr"),
        "worse on a phone": _next(changed, *on_phone),
        "refused": _next(result(REFERENCE, lost(refused)), "imagenet", "m.tflite"),
        "refused on a phone": _next(result(REFERENCE, lost(refused)), *on_phone),
        "crashed": _next(result(REFERENCE, row_with(configuration("gpu"), crashes=2)), "imagenet", "m.tflite"),
        "died": _next(result(REFERENCE, lost(died)), "imagenet", "m.tflite"),
        "refused, with inputs that were stated": _next(result(REFERENCE, lost(refused)), "diff", "m.tflite", *inputs),
        "died, with inputs that were stated": _next(result(REFERENCE, lost(died)), "diff", "m.tflite", *inputs),
        "a shape that meets fixed sizes": _next(result(shape, lost("failed to prepare")), "diff", "m.tflite"),
        **{f"a model of {title}": _next(made, entry=DIVERGED) for title, made in models.items()},
    }


SEARCH_CASES: Final = {"search-cases": _searches(), "next-cases": _steps_after()}
