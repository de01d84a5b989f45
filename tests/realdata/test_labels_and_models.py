"""Label lists that do not fit, and models that are no classifiers, on real photos and real files."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest

from evaltools.errors import ModelError
from evaltools.model import read_model
from tests.command import evaltools_here
from tests.realdata.conftest import CLASSIFIERS
from tests.realdata.test_native_imagenet import run_imagenet

QUANTISED = CLASSIFIERS[0]


def run_with_labels(zoo: Path, photos: Path, labels: Path, truths: str, *flags: str) -> tuple[int, str]:
    completed = evaltools_here(
        "imagenet",
        f"--model_file={zoo / QUANTISED}.tflite",
        f"--ground_truth_images_path={photos / 'images'}",
        f"--ground_truth_labels={photos / truths}",
        f"--model_output_labels={labels}",
        *flags,
    )
    return completed.code, completed.out + completed.err


def test_a_list_without_background_is_named_and_an_offset_mends_it(zoo: Path, photos: Path) -> None:
    labels = photos / "model_labels_1000_wnid.txt"
    code, text = run_with_labels(zoo, photos, labels, "validation_labels_wnid.txt")
    assert code == 2
    assert "has 1000 lines, the model's output has 1001" in text
    assert "0 are right as given" in text
    assert "--label_offset=1" in text
    code, text = run_with_labels(
        zoo, photos, labels, "validation_labels_wnid.txt", "--label_offset=1", "--runtime=litert"
    )
    assert code == 0
    assert "Top-1 Accuracy: 0.545\n" in text


@pytest.mark.parametrize(
    ("labels", "truths", "code", "said"),
    [
        ("model_labels_1001_wnid.txt", "validation_labels_wnid.txt", 2, "with the lines sorted as text"),
        ("model_labels_1001.txt", "validation_labels.txt", 0, "the labels are those of this model"),
    ],
)
def test_a_shuffled_list_is_named_where_another_order_is_known(
    zoo: Path, photos: Path, tmp_path: Path, labels: str, truths: str, code: int, said: str
) -> None:
    lines = (photos / labels).read_text().splitlines()
    shuffled = tmp_path / "labels.txt"
    shuffled.write_text("\n".join(random.Random(0).sample(lines, len(lines))) + "\n")
    ended, text = run_with_labels(zoo, photos, shuffled, truths)
    assert ended == code
    assert said in text


def test_every_model_of_the_zoo_is_read_or_refused_as_a_runtime_does(shared: Path, zoo: Path) -> None:
    """Only the file with a wrong identifier is not a model; the others load at least as far as their operators."""
    refused = []
    for path in sorted(zoo.glob("*.tflite")):
        try:
            model = read_model(path)
        except ModelError:
            refused.append(path.name)
            continue
        assert len(model.sha256) == 64
    assert refused == ["litert_test_model_broken.tflite"]


def test_inputs_and_sha256_equal_the_manifest(shared: Path, zoo: Path) -> None:
    rows = list(csv.DictReader((shared / "realdata" / "MANIFEST.csv").open()))
    checked = 0
    for row in rows:
        if not row["file"].startswith("zoo/") or not row["inputs"]:
            continue
        model = read_model(shared / "realdata" / row["file"])
        assert model.sha256 == row["sha256"]
        stated = [text.replace("bytes", "string") for text in row["inputs"].split(";")]
        ours = [f"{tensor.dtype}[{','.join(map(str, tensor.shape_signature))}]" for tensor in model.inputs]
        assert ours == stated, row["file"]
        checked += 1
    assert checked >= 40


@pytest.mark.parametrize(
    "name",
    [
        "deeplabv3_257_float",
        "litert_double_flex",
        "litert_string_input_model",
        "litert_test_model_broken",
        "model_invoking_error",
    ],
)
def test_a_model_that_is_no_classifier_is_refused(zoo: Path, photos: Path, name: str) -> None:
    completed = run_imagenet(zoo, photos, name)
    assert completed.code == 2
    assert completed.out == ""
    assert f"{name}.tflite" in completed.err
    assert "Traceback" not in completed.err
