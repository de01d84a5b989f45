"""Files with labels, boxes and limits: what is written reads back, and what is damaged is refused with a sentence."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from xml.sax.saxutils import escape

from hypothesis import given
from hypothesis import strategies as st

from evaltools.datasets.coco_instances import instances_json, parse_instances
from evaltools.datasets.labels import read_labels
from evaltools.datasets.object_annotations import AnnotatedImage, AnnotatedImages, Category, ObjectAnnotation
from evaltools.datasets.voc import parse_annotation
from evaltools.datasets.yolo import parse_line
from evaltools.errors import EvaltoolsError
from evaltools.gates.gate_file import read_gate_file
from evaltools.request.yaml_file import read_yaml
from evaltools.result_file import read_result
from evaltools.tasks.task_file.function import task_in
from tests.hostile.examples import damaged, tried

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)
SIDES = st.integers(1, 4000)
PIXELS = st.floats(0, 4000, allow_subnormal=False)
SHARES = st.floats(0, 1, allow_subnormal=False)


@st.composite
def annotated_images(draw: st.DrawFn) -> AnnotatedImages:
    categories = draw(st.lists(st.integers(0, 90), min_size=1, max_size=4, unique=True))
    boxes = st.tuples(PIXELS, PIXELS, PIXELS, PIXELS)
    found = st.builds(ObjectAnnotation, st.sampled_from(categories), boxes, PIXELS, st.booleans())
    objects = st.lists(found, max_size=3).map(tuple)
    numbers = draw(st.lists(st.integers(0, 2**53), max_size=3, unique=True))
    images = [AnnotatedImage(number, draw(NAMES), draw(SIDES), draw(SIDES), draw(objects)) for number in numbers]
    return AnnotatedImages(tuple(Category(number, draw(NAMES)) for number in categories), tuple(images))


@tried
@given(annotated_images())
def test_instances_of_coco_read_back(images: AnnotatedImages) -> None:
    assert parse_instances(instances_json(images), "a.json") == images


@tried
@given(damaged(annotated_images().map(instances_json)))
def test_damaged_instances_of_coco_are_read_or_refused(content: bytes) -> None:
    with suppress(EvaltoolsError):
        parse_instances(content, "a.json")


@st.composite
def voc_files(draw: st.DrawFn) -> tuple[bytes, tuple[str, float, float, float, float]]:
    """A file with one object, whose name and corners come with it."""
    name = draw(NAMES.filter(str.strip)).strip()
    (left, right), (top, bottom) = (sorted(draw(st.tuples(PIXELS, PIXELS))) for _ in range(2))
    box = f"<xmin>{left!r}</xmin><ymin>{top!r}</ymin><xmax>{right!r}</xmax><ymax>{bottom!r}</ymax>"
    text = f"<annotation><object><name>{escape(name)}</name><bndbox>{box}</bndbox></object></annotation>"
    return text.encode(), (name, left, top, right, bottom)


@tried
@given(voc_files())
def test_objects_of_voc_read_back(file: tuple[bytes, tuple[str, float, float, float, float]]) -> None:
    content, expected = file
    (found,) = parse_annotation(content, "a.xml").objects
    assert (found.name, found.xmin, found.ymin, found.xmax, found.ymax) == expected


@tried
@given(damaged(voc_files().map(lambda file: file[0])))
def test_damaged_files_of_voc_are_read_or_refused(content: bytes) -> None:
    with suppress(EvaltoolsError):
        parse_annotation(content, "a.xml")


@tried
@given(st.integers(0, 3), st.tuples(SHARES, SHARES, SHARES, SHARES), SIDES, SIDES)
def test_boxes_of_yolo_have_their_size_and_lie_in_the_picture(
    number: int, shares: tuple[float, float, float, float], width: int, height: int
) -> None:
    left, top, across, down = shares
    across, down = across * (1 - left), down * (1 - top)
    line = f"{number} {left + across / 2!r} {top + down / 2!r} {across!r} {down!r}"
    found = parse_line(line, width, height, (1, 2, 3, 4), "a.txt")
    expected = (left * width, top * height, across * width, down * height)
    assert found.category_id == number + 1
    assert all(abs(one - other) <= 1e-6 * 4000 for one, other in zip(found.bbox, expected, strict=True))


@tried
@given(damaged(st.just(b"1 0.5 0.5 0.25 0.5 0.1 0.1")))
def test_damaged_lines_of_yolo_are_read_or_refused(content: bytes) -> None:
    with suppress(EvaltoolsError):
        parse_line(content.decode("utf-8", "replace"), 80, 40, (1, 2), "a.txt")


@tried
@given(st.lists(NAMES, min_size=1, max_size=5))
def test_labels_read_back(tmp_path: Path, names: list[str]) -> None:
    (tmp_path / "labels.txt").write_bytes("\n".join(names).encode() + b"\n")
    without_mark = [names[0].removeprefix("\ufeff"), *names[1:]]
    assert list(read_labels(tmp_path / "labels.txt", "--labels").lines) == without_mark


GATES = (
    b'[runs.a]\nresult = "a.json"\n[[gates]]\nrun = "a"\nlimits = ["top1 >= 85 % at 95 %", "top1 drop <= 1 points"]\n'
)
YAML = b"gpu:\n  use_gpu: true\n  num_threads: 4\nother: use_xnnpack=true\n"
TASK = (
    b"inputs: {kind: arrays, path: x}\ntruth:\n  kind: lines\n  path: y\noutput: {kind: scores}\nmetrics: [accuracy]\n"
)
RESULT = b'{"schema_version": "4", "task": "imagenet", "complete": true, "configurations": [{"name": "test"}]}'


@tried
@given(
    damaged(st.just(GATES)),
    damaged(st.just(YAML)),
    damaged(st.just(TASK)),
    damaged(st.just(RESULT)),
    damaged(st.just(b"cat\r\ndog\n")),
)
def test_other_damaged_files_are_read_or_refused(
    tmp_path: Path, gates: bytes, yaml: bytes, task: bytes, result: bytes, labels: bytes
) -> None:
    path = tmp_path / "file"
    for content, read in [
        (gates, read_gate_file),
        (yaml, lambda path: read_yaml(path, "--configs")),
        (task, task_in),
        (result, read_result),
        (labels, lambda path: read_labels(path, "--labels")),
    ]:
        path.write_bytes(content)
        with suppress(EvaltoolsError):
            read(path)
