"""``evaltools coco``: the native lines, how pictures and outputs are read, how it ends."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from evaltools.configuration import Configuration
from evaltools.metrics.coco_stats import CocoStats
from evaltools.model import ModelFile
from evaltools.result_file import read_result
from evaltools.runtime import Session
from tests.command import Completed, evaltools_here
from tests.detection_set import (
    DetectionSet,
    draw_cells,
    make_detection_set,
)
from tests.tasks.coco.fakes import Finding, Found, everything, sessions
from tests.tiny_detectors import BOXES, ROLES, detector


@contextlib.contextmanager
def answered_by(open_with: Callable[[ModelFile, Configuration], Session]) -> Iterator[None]:
    """Sessions that are opened like this, in this process, in place of real ones."""

    def opened(model: ModelFile, configuration: Configuration, timeout_s: float, timeout_flag: str) -> Session:
        assert (timeout_s, timeout_flag) == (300, "--example_timeout"), "the default of --example_timeout"
        return open_with(model, configuration)

    with pytest.MonkeyPatch.context() as patch:
        for place in ("runs.evaluate", "runtime.process.ahead"):
            patch.setattr(f"evaltools.{place}.open_isolated", opened)
        yield


CONFIGS = ("--config=first: kernels=builtin", "--config=the other: kernels=reference")


@pytest.fixture
def made(tmp_path: Path) -> DetectionSet:
    """Five pictures, to be changed."""
    return make_detection_set(tmp_path / "set")


def overall_of(completed: Completed) -> float:
    """The native tool's mAP, which is the last line."""
    found = re.search(r"INFO: Overall mAP: ([0-9.e+-]+)\n$", completed.out)
    assert found, completed.out
    return float(found[1])


def native(made: DetectionSet, *flags: str) -> list[str]:
    return made.bare_flags("--compat=native", "--reference=none", f"--model_output_labels={made.labels}", *flags)


def test_the_native_tools_order_offset_and_ground_truth(made: DetectionSet) -> None:
    draw_cells(made.images / "000001.png", {0: (0, 255)})
    completed = evaltools_here(*native(made, f"--ground_truth_proto={made.proto}", "--verbose"))
    assert completed.code == 0, completed.err
    assert "INFO: Num evaluation runs: 6\n" in completed.out, "the picture without objects is one of them"
    red_with_a_false_alarm_first = 6 * (10 / 11) / 10
    assert overall_of(completed) == pytest.approx((red_with_a_false_alarm_first + 1) / 3, abs=2e-6)
    assert "count=3 (the order that the native tool expects)" in completed.err
    assert "category = class + 1 (stated; confident detections on an object: 20" in completed.err
    made.model.write_bytes(detector(ROLES, first_class=1))
    completed = evaltools_here(*native(made, f"--ground_truth_annotations={made.annotations}"))
    assert "INFO: Overall mAP: 0\n" in completed.out
    assert "class as it is fits 20: --class_offset=0" in completed.err


def test_outputs_that_are_no_numbers_are_exit_code_4(made: DetectionSet) -> None:
    def one_nan(index: int) -> list[Found]:
        return [*everything(index)[:5], (1, np.nan, BOXES[5].tolist())]

    with answered_by(sessions(test=Finding(one_nan))):
        completed = evaltools_here(*made.flags("--reference=none"))
    assert completed.code == 4
    assert "warning: test: 5 detections have a NaN or infinite score, class or box" in completed.err


def test_objects_that_are_annotated_twice_are_told(made: DetectionSet) -> None:
    """Each a second time under another number: half of them cannot be found, so mAP is about halved."""
    document = made.document()
    once = document["annotations"]
    made.annotations.write_text(json.dumps({**document, "annotations": [{**each, "id": -each["id"]} for each in once]}))
    with answered_by(sessions(test=Finding(everything))):
        assert "repeat the class and the box" not in evaltools_here(*made.flags("--reference=none")).err
    twice = [*once, *({**each, "id": -each["id"]} for each in once)]
    made.annotations.write_text(json.dumps({**document, "annotations": twice}))
    with answered_by(sessions(test=Finding(everything))):
        completed = evaltools_here(*made.flags("--reference=none"))
    assert f"{len(once)} annotations of {made.annotations} repeat the class and the box of another" in completed.err


def less(index: int) -> list[Found]:
    """Against ``everything``: the last boxes of the first two pictures are missing."""
    return everything(index)[: 5 if index < 2 else 6]


def with_two_tests(made: DetectionSet, *flags: str) -> Completed:
    """A reference and ``first`` that find everything, ``the other`` that finds less."""
    opened = {"reference": Finding(everything), "first": Finding(everything), "the other": Finding(less)}
    with answered_by(sessions(**opened)):
        return evaltools_here(*made.flags(*CONFIGS, *flags))


def by_hand(annotations: Path, detections: Path, image_ids: list[int]) -> list[float]:
    """The twelve figures of pycocotools."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(annotations))
        run = COCOeval(truth, truth.loadRes(str(detections)), "bbox")
        run.params.imgIds = image_ids
        run.evaluate()
        run.accumulate()
        run.summarize()
    return [float(value) for value in run.stats]


def test_detections_give_the_figures_of_the_result_in_pycocotools(made: DetectionSet) -> None:
    """One object is a crowd, one picture is not there, one is not listed."""
    document = made.document()
    document["annotations"][4]["iscrowd"] = 1
    document["images"].append({"id": 99, "file_name": "gone.png", "width": 24, "height": 16})
    document["annotations"].append({**document["annotations"][0], "id": 77, "image_id": 99})
    document["annotations"][1].update(area=5000)
    made.annotations.write_text(json.dumps(document))
    (made.images / "000015.png").rename(made.images / "unlisted.png")
    output, found = made.folder / "result.json", made.folder / "found.json"
    completed = with_two_tests(made, f"--output_file_path={output}", f"--detections_path={found}")
    assert completed.code == 0, completed.err
    result = read_result(output)
    paths = {"first": found, "the other": made.folder / "found.the_other.json"}
    paths["reference"] = made.folder / "found.reference.json"
    for name, path in paths.items():
        entry = next(each for each in result.rows if each.name == name)
        ours = [-1 if (value := entry.value(stat)) is None else value for stat in CocoStats.__struct_fields__]
        assert ours == by_hand(made.annotations, path, [11, 12, 13, 14]), name
        assert {each["image_id"] for each in json.loads(path.read_text())} == {11, 12, 13, 14}
    assert len({path.read_bytes() for path in paths.values()}) == 2
