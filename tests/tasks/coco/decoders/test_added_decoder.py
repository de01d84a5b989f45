"""A new decoder is a file and its name in a list: recognition, figures and the flag's values follow."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.runtime import open_session
from evaltools.tasks.coco import decoders
from evaltools.tasks.coco.evaluation import prepare
from evaltools.tasks.coco.options import OPTIONS
from evaltools.tasks.coco.task import CocoOptions
from evaltools.tasks.shared.evaluation import evaluate
from tests.detection_set import DetectionSet, make_detection_set
from tests.tasks.coco.fakes import asked, detection_of
from tests.tasks.observers import Silent
from tests.tiny_detectors import detector

FILE = '''
"""Six boxes that are ready, each of which is said to be of class 0 with the same score."""

import numpy as np

from evaltools.tasks.coco.decoders.kind import Boxes, Decoder, Head


def fits(shape, height, width):
    return Head("rows", 6, 4, 1, height, width) if tuple(shape) == (1, 6, 4) else None


def decode(rows, head, coordinates, threshold):
    return Boxes(rows, np.full(6, 0.5, np.float32), np.zeros(6, np.int64))


DECODER = Decoder("six_boxes", "[1,6,4]", fits, lambda rows, head: "shares", decode, 0.5, 0.25)
'''


@pytest.fixture
def made(tmp_path: Path) -> DetectionSet:
    """Pictures for a model with boxes alone."""
    return make_detection_set(tmp_path / "set", detector(("boxes",)), count=2)


@pytest.fixture(autouse=True)
def added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file, and the line."""
    path = tmp_path / "six_boxes.py"
    path.write_text(FILE)
    name = f"{decoders.__name__}.six_boxes"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(decoders, "NAMES", (*decoders.NAMES, "six_boxes"))


@pytest.mark.parametrize(("decoder", "source"), [("auto", "ground truth"), ("six_boxes", "stated")])
def test_a_model_is_read_with_it(made: DetectionSet, decoder: str, source: str) -> None:
    """The shape is also that of a YOLOv8 with four cells and two classes; its input has just as many."""
    request = asked(made, decoder=decoder, class_offset="1")
    detection = detection_of(evaluate(prepare, request, Silent(), open_session))
    assert detection.data.head is not None
    assert (detection.data.head.decoder, detection.data.head.source) == ("six_boxes", source)
    assert (detection.data.nms_iou, detection.data.score_threshold, detection.data.resize) == (0.5, 0.25, "letterbox")
    assert [figures.detections for figures in detection.figures] == [12, 12]


def test_a_threshold_that_is_stated_is_kept(made: DetectionSet) -> None:
    request = asked(made, class_offset="1")
    request = replace(request, options=replace(request.options, score_threshold=0.75, nms_iou=0.9))
    data = detection_of(evaluate(prepare, request, Silent(), open_session)).data
    assert (data.score_threshold, data.nms_iou) == (0.75, 0.9)


def test_the_flag_takes_every_name_of_the_list() -> None:
    flag = next(each for group in OPTIONS.values() for each in group if each.name == "decoder")
    assert flag.choices == ("auto", "ssd", "none", *(name for name in decoders.NAMES if name != "six_boxes"))
    assert CocoOptions(Path()).decoder == flag.default
