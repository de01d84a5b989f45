"""What is typed wrong is named with what would be right, whichever command it is: ``refusals.txt`` lists both."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from evaltools.datasets import sample
from tests import tiny_yolo
from tests.command import evaltools_here
from tests.datasets.test_ilsvrc import devkit, struct_array
from tests.report.page.samples import STORED

LIST: Final = Path(__file__).with_name("refusals.txt")
RESULT: Final = (STORED / "imagenet.json").read_text()
TEXTS: Final = {
    "gates.toml": '[[gates]]\nlimits = ["top1 >= 1 %"]\n',
    "damaged.json": "{}",
    "nightly.json": RESULT,
    "older.json": re.sub('"started_at": *"[^"]*"', '"started_at":"2020-01-01T00:00:00+00:00"', RESULT),
    "of_version_1.json": '{"rows": [], "schema_version": "1"}',
    "of_version_9.json": '{"suspects": [], "schema_version": "9"}',
    "suite_of_version_1.json": '{"entries": [], "suite_version": "1"}',
    "command.json": '{"command": "imagenet"}',
    "own.py": "import nothing_of_that_name\n",
}


class Refusal(NamedTuple):
    """Words of a command, and parts of what it says."""

    words: str
    said: list[str]


def refusals() -> list[Refusal]:
    """All that are listed, with names of words replaced."""
    names: dict[str, str] = {}
    found: list[Refusal] = []
    for line in LIST.read_text().splitlines():
        if line.startswith("$ "):
            found.append(Refusal(re.sub(r"\$(\w+)", lambda match: names[match[1]], line[2:]), []))
        elif found and line:
            found[-1].said.append(line)
        elif " = " in line and not line.startswith("#"):
            name, _, names[name] = line.partition(" = ")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the commands name."""
    made = tmp_path_factory.mktemp("refused")
    for name, content in TEXTS.items():
        (made / name).write_text(content)
    for name, source in {
        "model.tflite": sample.model_file("float32"),
        "int8.tflite": sample.model_file("int8"),
        "truths.txt": sample.ground_truth_file(),
        "labels.txt": sample.labels_file(),
        "detector.tflite": sample.detection_model_file("int8"),
        "instances.json": sample.detection_annotations_file(),
    }.items():
        shutil.copy(source, made / name)
    (made / "head.tflite").write_bytes(tiny_yolo.yolov5())
    (made / "images").symlink_to(sample.images_dir())
    (made / "pictures").symlink_to(sample.detection_images_dir())
    for name in ("b", "kit", "run"):
        (made / name).mkdir()
    devkit(made / "kit", struct_array())
    return made


def contents(folder: Path) -> dict[Path, bytes]:
    """Of its files, but for what Python keeps of a task's file that it has read."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in files if path.parent.name != "__pycache__"}


@pytest.mark.parametrize("refusal", refusals(), ids=lambda refusal: refusal.words[-60:])
def test_what_is_wrong_is_named_and_nothing_is_done(
    refusal: Refusal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a device looked for, which there is no adb for."""
    monkeypatch.setenv("ADB", "/none")
    before = contents(folder)
    done = evaltools_here(*shlex.split(refusal.words), cwd=folder)
    said = " ".join(done.err.split())
    assert [text for text in refusal.said if " ".join(text.split()) not in said] == [], done.err
    assert refusal.said
    assert all(said.endswith(text) for text in refusal.said if text.startswith("Did you mean")), "it stands last"
    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)
    assert contents(folder) == before
