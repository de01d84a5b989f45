"""Texts that a user may write and that are refused, each with the whole message below it.

Behind ``=>`` stands what is said; ``(nothing)`` is a text without a character. ``python -m tests.refusals.record``
writes the messages anew, to be looked at and committed.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec.yaml
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.datasets.coco_instances import parse_instances
from evaltools.datasets.sample import detection_model_file
from evaltools.datasets.yolo import names_in_yaml, parse_line
from evaltools.delegates import parse_external_options
from evaltools.errors import UsageError
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.gate_file import read_gate_file
from evaltools.model import read_model
from evaltools.request.flags import parse_flags
from evaltools.tasks.coco.classes import stated_mapping
from evaltools.tasks.coco.outputs import stated_output_map
from evaltools.tasks.framework.common_options import EXECUTION, MAX_FAILED_EXAMPLES
from evaltools.tasks.framework.request import read_execution

FOLDER: Final = Path(__file__).parent
DETECTOR: Final = detection_model_file("int8")
_SAYS: Final = "=> "
_NOTHING: Final = "(nothing)"


def _gate_file(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gates.toml"
        path.write_text(text, encoding="utf-8")
        try:
            read_gate_file(path)
        except UsageError as error:
            raise UsageError(str(error).replace(f"{folder}/", "")) from error


def _execution(text: str) -> None:
    groups = {"execution": (*EXECUTION, MAX_FAILED_EXAMPLES)}
    read_execution(parse_flags("imagenet", "", "", groups, text.split()).options())


def _coco_instances(text: str) -> None:
    """A document in which these parts are others."""
    document = {
        "images": [{"id": 7, "file_name": "a.jpg", "width": 80, "height": 40}],
        "annotations": [{"image_id": 7, "category_id": 3, "bbox": [1, 2.5, 30, 4], "area": 99.5, "iscrowd": 0}],
        "categories": [{"id": 3, "name": "dog"}],
    }
    parse_instances(json.dumps(document | json.loads(text)).encode(), "x.json")


READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "limits": parse_criterion,
    "gates": _gate_file,
    "configurations": lambda text: Configuration.from_text("test", text),
    "external_options": parse_external_options,
    "output_maps": lambda text: stated_output_map(text, replace(read_model(DETECTOR), path=Path("model.tflite"))),
    "coco_instances": _coco_instances,
    "class_offsets": lambda text: stated_mapping(text, (1, 2, 5, 90)),
    "execution": _execution,
    "yolo_names": lambda text: names_in_yaml(msgspec.yaml.decode(text), "data.yaml"),
    "yolo_lines": lambda text: parse_line(text, 80, 40, (1, 2, 3), "a.txt, line 2"),
}
"""What reads the texts of the file of that name."""


def refused(name: str) -> Iterator[tuple[str, str]]:
    """The texts of a file, and what is said of each."""
    for block in (FOLDER / f"{name}.txt").read_text(encoding="utf-8").strip("\n").split("\n\n"):
        text, _, said = block.partition(f"\n{_SAYS}")
        yield ("" if text == _NOTHING else text), said


def said_of(name: str, text: str) -> str:
    """The message; none where the text is taken."""
    try:
        READERS[name](text)
    except UsageError as error:
        return str(error)
    return ""


def main() -> None:
    """Write all messages anew."""
    for name in READERS:
        blocks = [f"{text or _NOTHING}\n{_SAYS}{said_of(name, text)}\n" for text, _ in refused(name)]
        (FOLDER / f"{name}.txt").write_text("\n".join(blocks), encoding="utf-8")


if __name__ == "__main__":
    main()
