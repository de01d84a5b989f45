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
PICTURES = "--num_images=20"
DATA = (
    f"--images={sample.images_dir()}",
    f"--ground_truth={sample.ground_truth_file()}",
    f"--labels={sample.labels_file()}",
)
WORDS = (*DATA, PICTURES, "--config=plain: kernels=builtin")
CLASSIFIERS = {name: str(sample.model_file(name)) for name in ("int8", "float32", "dynamic_range")}
DETECTORS = {name: str(sample.detection_model_file(name)) for name in ("int8", "float32")}
DETECTION = (
    f"--images={sample.detection_images_dir()}",
    f"--ground_truth={sample.detection_annotations_file()}",
    "--config=plain: kernels=builtin",
    "--num_images=8",
)


def run_in(folder: Path, *words: str) -> str:
    """What a command that ends well says."""
    done = evaltools_here(*words, cwd=folder)
    assert done.code == 0, done.err
    return done.err


def figures_in(path: Path) -> dict[str, dict[str, float | None]]:
    """What the task found of each configuration."""
    entries = read_result(path).rows
    return {entry.name: {name: figure.value for name, figure in of_task(entry).items()} for entry in entries}


def assert_each_answers_as_by_itself(folder: Path, task: str, models: dict[str, str], *words: str) -> None:
    """``two.json`` has the figures of the reference's model, and of the tested one, that each has alone."""
    for model, name in (("float32", "reference"), ("int8", "plain")):
        run_in(folder, task, models[model], *words, "--output=alone.json")
        found, alone = figures_in(folder / "two.json")[name], figures_in(folder / "alone.json")["plain"]
        assert {"top1", "ap"} & alone.keys()
        shared = [figure for figure in alone if figure.startswith(("top", "a")) and figure != "agreement"]
        assert {figure: found[figure] for figure in shared} == {figure: alone[figure] for figure in shared}


def test_each_model_answers_as_it_does_by_itself_and_both_are_named(tmp_path: Path) -> None:
    run = ("imagenet", CLASSIFIERS["int8"], *WORDS, "--run_dir=run")
    reference = f"--reference_model={CLASSIFIERS['float32']}"
    assert "reference: float32.tflite, ai-edge-litert" in run_in(tmp_path, *run, reference, "--output=two.json")
    assert_each_answers_as_by_itself(tmp_path, "imagenet", CLASSIFIERS, *WORDS)
    run_in(tmp_path, "report", "two.json", "--output=two.html")
    assert "int8.tflite compared with float32.tflite: imagenet" in (tmp_path / "two.html").read_text()
    other, own = (row.other_model for row in read_result(tmp_path / "two.json").rows)
    assert (other and other.file, own) == (CLASSIFIERS["float32"], None)
    for model, said in (
        (CLASSIFIERS["dynamic_range"], "the reference's model"),
        ("five.tflite", "need the same classes"),
    ):
        (tmp_path / "five.tflite").write_bytes(classifier(classes=5))
        again = evaltools_here(*run, f"--reference_model={model}", cwd=tmp_path)
        assert (again.code, said in again.err) == (2, True), again.err


def test_two_detectors_find_what_each_finds_by_itself_in_shards_too(tmp_path: Path) -> None:
    for index in (0, 1):
        flags = (f"--shard_index={index}", "--shard_count=2", f"--run_dir=shard{index}")
        run_in(tmp_path, "coco", DETECTORS["int8"], f"--reference_model={DETECTORS['float32']}", *DETECTION, *flags)
    run_in(tmp_path, "merge", "shard0", "shard1", "--output=two.json")
    assert_each_answers_as_by_itself(tmp_path, "coco", DETECTORS, *DETECTION)


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
    found = et.imagenet(
        [CLASSIFIERS[name] for name in names],
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
        assert other.file == CLASSIFIERS[names[0]]
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
    models = [CLASSIFIERS[name] for name in ("int8", "dynamic_range")]
    said = run_in(tmp_path, "imagenet", *models, f"--reference_model={CLASSIFIERS['float32']}", *WORDS)
    rows = [line.split()[:2] for line in said.splitlines() if line.startswith(("float32 ", "int8 ", "dynamic_range "))]
    assert rows[-3:] == [["float32", "reference"], ["int8", "plain"], ["dynamic_range", "plain"]]
    assert "int8, dynamic_range: compared with float32.tflite on the same examples" in said
