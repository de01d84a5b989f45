"""Files of labels, boxes, limits and tasks, and command lines: what is damaged is read or refused with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltools.datasets.coco_instances import parse_instances
from evaltools.datasets.labels import read_labels
from evaltools.datasets.yolo import parse_line
from evaltools.errors import EvaltoolsError
from evaltools.gates.gate_file import read_gate_file
from evaltools.request.yaml_file import read_yaml
from evaltools.result.json_file import encode_json
from evaltools.result_file import read_result
from tests.hostile.examples import damaged, tried
from tests.results import configuration, result

COCO = (
    b'{"categories": [{"id": 1, "name": "cat"}], "images": [{"id": 7, "file_name": "a.jpg", "width": 80, "height": 40}]'
    b', "annotations": [{"id": 1, "image_id": 7, "category_id": 1, "bbox": [1, 2.5, 30, 20], "area": 6, "iscrowd": 0}]}'
)
GATES = (
    b'[runs.a]\nresult = "a.json"\n[[gates]]\nrun = "a"\nlimits = ["top1 >= 85 % at 95 %", "top1 drop <= 1 points"]\n'
)
YAML = b"gpu:\n  use_gpu: true\n  num_threads: 4\nother: use_xnnpack=true\n"
RESULT = encode_json(result(configuration("reference", "reference"), configuration("test")))


def line_of_yolo(path: Path) -> object:
    return parse_line(path.read_bytes().decode("utf-8", "replace"), 80, 40, (1, 2), "a.txt")


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (COCO, lambda path: parse_instances(path.read_bytes(), "a.json")),
        (b"1 0.5 0.5 0.25 0.5 0.1 0.1", line_of_yolo),
        (b"cat\r\ndog\n", lambda path: read_labels(path, "--labels")),
        (GATES, read_gate_file),
        (YAML, lambda path: read_yaml(path, "--configs")),
        (RESULT, read_result),
    ],
    ids=["coco", "yolo", "labels", "gates", "yaml", "result"],
)
def test_a_damaged_file_is_read_or_refused(content: bytes, read: Callable[[Path], object], tmp_path: Path) -> None:
    @tried
    @given(damaged(st.just(content)))
    def is_read_or_refused(other: bytes) -> None:
        (tmp_path / "file").write_bytes(other)
        with suppress(EvaltoolsError):
            read(tmp_path / "file")

    is_read_or_refused()
