"""What tasks say of results made by hand: native lines and every section of the first, and how others differ."""

from __future__ import annotations

import difflib
import io
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.cli.shared.terminal import make_console
from evaltools.gates.decide import LimitCheck
from evaltools.metrics.boxes import BoxAgreement, Detection
from evaltools.metrics.native_average_precision import NativeAveragePrecision
from evaltools.metrics.native_numbers import NativeError
from evaltools.metrics.output_difference import Quanta, Scores
from evaltools.native.lines.evaluation import native_lines
from evaltools.report.page.screens import print_sections
from evaltools.result.result import Result
from evaltools.tasks.coco.result import CategoryChange, OutputMap
from evaltools.tasks.framework.topk_report import ChangedAnswer, FirstAnswer
from evaltools.tasks.inference_diff.result import Repeatability, Variant
from tests.results import compared, configuration, result, row_with
from tests.tasks.coco.results import AGREEMENT, LEFT, MAPPING, RIGHT, detection_result, figures, picture
from tests.tasks.inference_diff import results as diff

Show = Callable[[Console], None]


def _lines(made: Result, width: int) -> list[str]:
    text = io.StringIO()
    console = make_console(text)
    console.width, console.soft_wrap = width, False
    for line in native_lines(made):
        console.print(line, markup=False, highlight=False)
    print_sections(made, console)
    return text.getvalue().splitlines()


def _first(made: Result, console: Console) -> None:
    console.out(*_lines(made, console.width), sep="\n", highlight=False)


def _other(made: Result, first: Result, console: Console) -> None:
    """The lines that are others than those of the first case."""
    before, now = (_lines(each, console.width - 2) for each in (first, made))
    differing = [line.rstrip() for line in difflib.ndiff(before, now) if line.startswith(("- ", "+ "))]
    console.out(*differing, sep="\n", highlight=False)


def _coco() -> Mapping[str, Result]:
    sure = replace(MAPPING, pairs=40, agreeing={"+1": 38, "0": 1})
    doubtful = {
        "few pairs": replace(sure, pairs=19),
        "a better one": replace(sure, better="0"),
        "half of the pairs": replace(sure, agreeing={"+1": 19}),
    }
    changes = [
        CategoryChange("person", 40, 30, 0.5, 0.4, 0.001, 0.01),
        CategoryChange("cow", 1, 1, 0.9, 0.0, 1.0, 1.0),
        CategoryChange("cat\n", 35, 30, 0.5, 0.7, 0.001, 0.01),
    ]
    no_class = replace(figures("test"), native=NativeAveragePrecision((), 0.0, 0, 0))
    unpaired = replace(AGREEMENT, matched=0, sum_iou=0.0)
    same, other, two = [Detection(1, 0.9, LEFT)], [Detection(2, 0.9, LEFT)], [Detection(1, 0.9, LEFT)]
    two.append(Detection(2, 0.8, RIGHT))
    pictures = [picture("class.png", r=same, t=other), picture("new.png", r=same, t=two)]
    made = partial(detection_result, "r", "t")
    return {
        "all figures": made(),
        "without ground truth": made(truth=None, data={"output_map": OutputMap(0, 1, 2, None, "recognised")}),
        "the same, for the native tool": made(truth=None, data={"native": True}),
        "no class occurs": made(found=[figures("r"), replace(no_class, configuration="t")]),
        "how outputs are read is sure": made(data={"class_mapping": sure}),
        **{f"in doubt: {why}": made(data={"class_mapping": mapping}) for why, mapping in doubtful.items()},
        "categories that changed, of one in a single picture by chance": detection_result(
            "r", "t", "u", categories={"t": changes}, example_count=50
        ),
        "boxes without a partner have no mean": made(boxes=unpaired),
        "pictures that differ": made(pictures=pictures),
    }


def _diff() -> Mapping[str, Result]:
    of, one, judged, far = diff.result, diff.comparison, diff.judged, diff.DIFFERENCE
    other_floor = replace(diff.FLOOR, mean=0.00005, max=0.0004, snr_db=139.0, cosine=0.9999999)
    both, alone = (judged(compared_with=names) for names in (("floor 0", "floor 1"), ("floor 0",)))
    whole = replace(far, dtype="int8", quanta=Quanta(300, 60, 30, 10, 5, 0.9), max_relative=0.25)
    farther = replace(whole, quanta=Quanta(100, 100, 100, 100, 9, 2.0))
    scored = replace(far, output="best", scores=Scores(8, 6, 0.85))
    text = replace(
        far,
        output="text",
        dtype="string",
        mean=None,
        max=None,
        relative_rms=None,
        snr_db=None,
        cosine=None,
        native=None,
    )
    damaged = replace(far, output="damaged", native=NativeError(None, None, None, None))
    many = [replace(far, output=f"o{place}", relative_rms=place / 100) for place in range(14)]
    checks = [
        LimitCheck("--max_avg_error=0.001", "scores", 0.00123456, False),
        LimitCheck("--min_snr_db=9", "scores", None, False),
        LimitCheck("--max_quanta=9", "o", 1.0, True),
    ]
    boxes = BoxAgreement(matched=4, lost=2, new=1, class_changes=3, sum_iou=3.0, moved=0.4, score_shift=0.0123)
    xnnpack = Variant("XNNPACK", [], None, [diff.FLOOR], BoxAgreement.nothing())
    variants = [xnnpack, Variant("broken", [], "failed", [], None), replace(xnnpack, name="other")]
    in_boxes = judged(in_boxes=True, compared_with=("XNNPACK",))
    alike = of(one("test", judged()))
    loaded = row_with(alike.rows[0], latency=None, delegation=None, examples=0)
    return {
        "a single output": alike,
        "texts and damaged outputs": of(one("test", judged(), judged(text), judged(damaged))),
        "a loaded reference has no times": replace(alike, rows=[loaded, alike.rows[1]]),
        "the worst of the noise floor below each": of(one("a", both), one("b", both), floor=(diff.FLOOR, other_floor)),
        "each has the noise floor that it is compared with": of(
            one("a", both),
            one("b", alone),
            one("c", judged()),
            floor=(replace(diff.FLOOR, runs=2), replace(diff.FLOOR, relative_rms=0.5, runs=2)),
        ),
        "quanta and scores": of(one("test", judged(whole), judged(scored)), one("far", judged(farther))),
        "the worst of many outputs": of(one("test", *map(judged, many))),
        "broken limits, outputs that come again": of(
            one("test", judged(), limits=checks, repeatability=Repeatability(2, True, 0.0, None))
        ),
        "could not be run again": of(one("test", judged(), repeatability=Repeatability(0, None, None, "gone [away]"))),
        "boxes stand in for their outputs": of(one("test", in_boxes, boxes=boxes), noise_floor=variants),
        "no relative size": of(one("gpu", judged(replace(far, relative_rms=None, snr_db=None))), floor=(diff.FLOOR,)),
    }


def changed_answers(changed: list[ChangedAnswer], count: int = 50) -> Result:
    """Of so many pictures these have another first answer."""
    found = compared("reference", "a", count, count - len(changed), lost=2, gained=1)
    found.changed, found.ties = changed, 1
    return result(configuration("reference", "reference"), configuration("a"), comparisons=[found])


def _imagenet() -> Mapping[str, Result]:
    cat, dog, owl = FirstAnswer("cat, tabby", 0.75), FirstAnswer("dog", 0.5), FirstAnswer("owl", None)
    return {
        "changed answers, the worst first": changed_answers(
            [
                ChangedAnswer("1.png", "owl", cat, dog, "neither", tie=False),
                ChangedAnswer("2.png", "dog", cat, dog, "gained", tie=False),
                ChangedAnswer("3.png", "cat, tabby", replace(cat, equal="dog"), dog, "lost", tie=True),
                ChangedAnswer("4.png", "cat, tabby", cat, owl, "lost", tie=False),
            ]
        ),
        "none changed": changed_answers([]),
        "more than are shown": changed_answers([ChangedAnswer("1.png", "dog", cat, dog, "gained", tie=False)] * 50),
    }


def _shown(made: Mapping[str, Result]) -> Mapping[str, Show]:
    (title, first), *others = made.items()
    return {title: partial(_first, first), **{name: partial(_other, each, first) for name, each in others}}


TASK_CASES: Final[Mapping[str, Mapping[str, Show]]] = {
    "coco-cases": _shown(_coco()),
    "diff-cases": _shown(_diff()),
    "imagenet-cases": _shown(_imagenet()),
}
