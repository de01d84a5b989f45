"""A model compared with another one on the same labelled pictures, such as the quantised with the float one."""

from __future__ import annotations

from pathlib import Path

import pytest

import evaltools as et
from evaltools.datasets import sample
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


def test_each_model_answers_as_it_does_by_itself_and_both_are_named(tmp_path: Path) -> None:
    new, old = (str(sample.model_file(name)) for name in ("int8", "float32"))
    done = evaltools_here("imagenet", new, f"--reference_model={old}", *WORDS, "--output=two.json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "reference  float32.tflite, ai-edge-litert" in done.err
    both = read_result(tmp_path / "two.json")
    for model, name, stored in ((old, "reference", "old.json"), (new, "plain", "new.json")):
        alone = evaltools_here("imagenet", model, *WORDS, f"--output={stored}", cwd=tmp_path)
        assert alone.code == 0, alone.err
        expected = read_result(tmp_path / stored).part.classified["plain"]
        assert both.part.classified[name].metrics.topk == expected.metrics.topk
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
