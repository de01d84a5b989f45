"""A model compared with another one on the same examples, such as the quantised with the float one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import evaltools as et
from evaltools.datasets import sample
from evaltools.result.metrics import of_task
from evaltools.result_file import read_result
from tests.command import evaltools_here
from tests.tiny_models import classifier

pytestmark = pytest.mark.once
PICTURES = 60
DATA = (
    f"--images={sample.images_dir()}",
    f"--ground_truth={sample.ground_truth_file()}",
    f"--labels={sample.labels_file()}",
)
WORDS = (*DATA, f"--num_images={PICTURES}", "--config=plain: kernels=builtin")


def figures_in(path: Path) -> dict[str, dict[str, float | None]]:
    """What the task found of each configuration."""
    entries = read_result(path).rows
    return {entry.name: {name: figure.value for name, figure in of_task(entry).items()} for entry in entries}


def test_each_model_answers_as_it_does_by_itself_and_both_are_named(tmp_path: Path) -> None:
    new, old = (str(sample.model_file(name)) for name in ("int8", "float32"))
    done = evaltools_here("imagenet", new, f"--reference_model={old}", *WORDS, "--output=two.json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "reference: float32.tflite, ai-edge-litert" in done.err
    for model, name, stored in ((old, "reference", "old.json"), (new, "plain", "new.json")):
        alone = evaltools_here("imagenet", model, *WORDS, f"--output={stored}", cwd=tmp_path)
        assert alone.code == 0, alone.err
        expected = figures_in(tmp_path / stored)["plain"]
        assert figures_in(tmp_path / "two.json")[name]["top1"] == expected["top1"]
    shown = evaltools_here("report", "two.json", "--output=two.html", cwd=tmp_path)
    assert shown.code == 0, shown.err
    assert "int8.tflite compared with float32.tflite: imagenet" in (tmp_path / "two.html").read_text()


def test_python_and_a_run_folder_know_the_other_model(tmp_path: Path) -> None:
    new, old = sample.model_file("int8"), sample.model_file("float32")
    found = et.imagenet(
        new,
        reference_model=old,
        images=sample.images_dir(),
        ground_truth=sample.ground_truth_file(),
        labels=sample.labels_file(),
        num_images=PICTURES,
        tests="kernels=builtin",
    )
    other = found["reference"].entry.other_model
    assert other is not None
    assert other.file == str(old)
    assert found["test"].entry.other_model is None
    assert found["test"].entry.verdict is not None
    run = ("imagenet", str(new), *WORDS, "--run_dir=run")
    assert evaltools_here(*run, f"--reference_model={old}", cwd=tmp_path).code == 0
    again = evaltools_here(*run, f"--reference_model={sample.model_file('dynamic_range')}", cwd=tmp_path)
    assert again.code == 2
    assert "the reference's model" in again.err


def test_models_with_other_classes_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "five.tflite").write_bytes(classifier(classes=5))
    done = evaltools_here(
        "imagenet", str(sample.model_file("int8")), "--reference_model=five.tflite", *WORDS, cwd=tmp_path
    )
    assert done.code == 2
    assert "five.tflite has 5 scores" in done.err
    assert "need the same classes" in done.err


DETECTION = (
    f"--images={sample.detection_images_dir()}",
    f"--ground_truth={sample.detection_annotations_file()}",
    "--config=plain: kernels=builtin",
    "--num_images=8",
)


def test_two_detectors_find_what_each_finds_by_itself(tmp_path: Path) -> None:
    new, old = (str(sample.detection_model_file(name)) for name in ("int8", "float32"))
    done = evaltools_here("coco", new, f"--reference_model={old}", *DETECTION, "--output=two.json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert f"reference: {Path(old).name}, ai-edge-litert" in done.err
    both = figures_in(tmp_path / "two.json")
    for model, name, stored in ((old, "reference", "old.json"), (new, "plain", "new.json")):
        assert evaltools_here("coco", model, *DETECTION, f"--output={stored}", cwd=tmp_path).code == 0
        alone = figures_in(tmp_path / stored)["plain"]
        assert {stat: both[name][stat] for stat in alone if stat.startswith("a")} == {
            stat: value for stat, value in alone.items() if stat.startswith("a")
        }
    merged = ("merge", *(f"shard{index}" for index in (0, 1)), "--output=merged.json")
    for index in (0, 1):
        flags = (f"--shard_index={index}", "--shard_count=2", f"--run_dir=shard{index}")
        part = evaltools_here("coco", new, f"--reference_model={old}", *DETECTION, *flags, cwd=tmp_path)
        assert part.code == 0, part.err
    assert evaltools_here(*merged, cwd=tmp_path).code == 0
    assert figures_in(tmp_path / "merged.json") == both


OWN_TASK = """
from pathlib import Path
from typing import Any
import evaltools as et

@et.task
def surest(images: Path) -> et.Task:
    'How sure the best class is.'
    return et.Task(
        examples=et.pairs(images, None, 12),
        prepare=et.image_input,
        score=lambda outputs, target: {"sure": float(outputs.real(0).max())},
        agree=lambda outputs, reference, target: {"same": float(outputs[0].argmax() == reference[0].argmax())},
        metrics=[et.mean("sure", bounds=(0, 1)), et.mean("same")],
    )
"""


def test_a_task_of_ones_own_makes_the_inputs_of_each_model(tmp_path: Path) -> None:
    """The model under test takes bytes, the reference's real numbers."""
    (tmp_path / "own.py").write_text(OWN_TASK)
    task, new, old = f"{tmp_path / 'own.py'}:surest", sample.model_file("int8"), sample.model_file("float32")

    def run(model: Path, **more: Any) -> et.Result:
        return et.run(task, model, images=sample.images_dir(), tests="kernels=builtin", **more)

    found = run(new, reference_model=old, workers=2)
    assert found["reference"].sure == run(old)["test"].sure
    assert found["test"].sure == run(new)["test"].sure
    assert found["test"].same > 0.9
    other = found["reference"].entry.other_model
    assert other is not None
    assert other.file == str(old)


def test_where_the_reference_cannot_run_the_other_models_outputs_are_read_by_its_own_scale(tmp_path: Path) -> None:
    """Bytes taken for scores would be beyond the bounds."""
    (tmp_path / "own.py").write_text(OWN_TASK)
    (tmp_path / "broken.so").write_bytes(b"no library")
    found = et.run(
        f"{tmp_path / 'own.py'}:surest",
        sample.model_file("int8"),
        reference_model=sample.model_file("float32"),
        images=sample.images_dir(),
        reference=f"external_delegate_path={tmp_path / 'broken.so'}",
        tests="kernels=builtin",
    )
    assert 0.2 < found["test"].sure <= 1


SHIFT_TASK = """
from pathlib import Path
from typing import Any
import evaltools as et

@et.task
def shift(images: Path) -> et.Task:
    'How far scores are from the reference.'
    return et.Task(
        examples=et.pairs(images, None, 12),
        prepare=et.image_input,
        agree=lambda outputs, reference, target: {"shift": float(abs(outputs.real(0) - reference.real(0)).max())},
        metrics=[et.mean("shift", better="lower", bounds=(0, 1))],
    )
"""


@pytest.mark.parametrize(("new", "old"), [("int8", "float32"), ("float32", "int8")])
def test_what_other_kernels_of_the_reference_give_is_read_as_the_references_own_model_gives_it(
    tmp_path: Path, new: str, old: str
) -> None:
    """The two are right to some roundings, of floats or of 8 bits; a score in the other's scale is off by a half."""
    (tmp_path / "own.py").write_text(SHIFT_TASK)
    found = et.run(
        f"{tmp_path / 'own.py'}:shift",
        sample.model_file(new),
        reference_model=sample.model_file(old),
        images=sample.images_dir(),
        tests="kernels=builtin",
    )
    found.save(tmp_path / "found.json")
    said = re.search(r"plain C\+\+ kernels change it by ([-+.e\d]+) on", str(found.result.blocks))
    assert said is None or 0 <= float(said[1]) < (0.05 if old == "int8" else 1e-4)


def test_the_first_of_several_models_is_the_reference_of_the_others(tmp_path: Path) -> None:
    names = ("float32", "int8", "dynamic_range")
    models = [sample.model_file(name) for name in names]
    found = et.imagenet(
        models,
        images=sample.images_dir(),
        ground_truth=sample.ground_truth_file(),
        labels=sample.labels_file(),
        num_images=20,
        tests="kernels=default",
    )
    assert list(found) == list(names)
    assert [entry.name for entry in found["int8"]] == ["reference", "own reference", "test"]
    assert found["float32"]["reference"].entry.other_model is None
    for name in names[1:]:
        other = found[name]["reference"].entry.other_model
        assert other is not None
        assert other.file == str(models[0])
    frame = found.to_dataframe()
    assert frame.loc[("int8", "test"), "top1"] == found["int8"]["test"].top1
    assert "dynamic_range: <reference (float32.tflite): top1=" in repr(found)
    found.save(tmp_path)
    loaded = et.load(tmp_path / "int8.json")
    assert isinstance(loaded, et.Result)
    assert loaded["test"].top1 == found["int8"]["test"].top1
    found.report(tmp_path / "all.md")
    page = (tmp_path / "all.md").read_text().replace("\\", "")
    assert "int8, dynamic_range: compared with float32.tflite" in page


def test_a_stated_reference_model_is_there_once(tmp_path: Path) -> None:
    models = [str(sample.model_file(name)) for name in ("int8", "dynamic_range")]
    stated = f"--reference_model={sample.model_file('float32')}"
    done = evaltools_here("imagenet", *models, stated, *WORDS, cwd=tmp_path)
    assert done.code == 0, done.err
    rows = [
        line.split()[:2] for line in done.err.splitlines() if line.startswith(("float32 ", "int8 ", "dynamic_range "))
    ]
    assert rows[-3:] == [["float32", "reference"], ["int8", "plain"], ["dynamic_range", "plain"]]
    assert "int8, dynamic_range: compared with float32.tflite on the same examples" in done.err
