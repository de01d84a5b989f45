"""What is wrong with a task.yaml is one sentence: line and key, what was got, what would be right."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from evaltools.errors import UsageError
from evaltools.model import read_model
from evaltools.tasks.own.loading import load_task
from evaltools.tasks.own.task import build
from evaltools.tasks.task_file import schema
from evaltools.tasks.task_file.function import task_in
from evaltools.tasks.task_file.reading import read_task_file
from tests import tiny_models

ROOT = Path(__file__).resolve().parents[3]
TASK = """\
summary: How well they are told apart.
inputs:
  kind: pictures
  path: images
  preprocess:
    crop: 0.875
truth:
  kind: lines
  path: truth.txt
output:
  kind: scores
metrics: [accuracy]
"""


def written(folder: Path, content: str) -> Path:
    file = folder / "task.yaml"
    file.write_text(content)
    return file


def test_a_file_is_read_as_its_types(tmp_path: Path) -> None:
    assert read_task_file(written(tmp_path, TASK)) == schema.TaskFile(
        summary="How well they are told apart.",
        inputs=schema.Pictures("images", schema.Preprocess(crop=0.875)),
        truth=schema.Lines("truth.txt"),
        output=schema.Scores(),
        metrics=["accuracy"],
    )


@pytest.mark.parametrize("old", ["pictures", "[accuracy]", "How well they are told apart.", "images"])
def test_a_few_lines_that_stand_for_very_much_are_told_in_a_few(old: str, tmp_path: Path) -> None:
    levels = ", ".join(f"&a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, 10))
    bomb = f"[&a0 [{', '.join('x' * 9)}], {levels}]"
    with pytest.raises(UsageError, match="line [0-9]+") as caught:
        read_task_file(written(tmp_path, TASK.replace(old, bomb)))
    assert len(str(caught.value)) < 2000


def test_a_model_without_the_output_is_refused_at_its_line_before_any_example_is_made(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(tiny_models.vector_input(length=4))
    task = written(tmp_path, TASK.replace("kind: scores", "kind: scores\n  index: 1"))
    with pytest.raises(UsageError, match=r"task\.yaml, line 12: output\.index: there is no output 1; the model"):
        build(load_task(str(task)), {}, [read_model(tmp_path / "model.tflite")])


def test_editors_take_the_file_for_right_by_its_schema_and_one_with_another_key_for_wrong() -> None:
    content = json.loads((ROOT / "tasks" / "task_file" / "task.schema.json").read_text())
    jsonschema.validate(yaml.safe_load(TASK), content)
    for wrong in (TASK.replace("crop", "crp"), TASK.replace("pictures", "rows"), TASK.replace("0.875", "2")):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(yaml.safe_load(wrong), content)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("pictures", "pictres", "line 3: inputs.kind: there is no 'pictres'. Did you mean pictures? There are p"),
        ("  kind: pictures\n", "", "line 2: inputs: 'kind' is missing, one of pictures, recordings, rows, arrays"),
        ("  path: images\n", "", "line 2: inputs: 'path' is missing; its keys are kind, path, preprocess"),
        ("path: images", "pth: images", "line 4: inputs.pth: there is no such key. Did you mean path? There are k"),
        ("crop: 0.875", "crp: 1", "line 6: inputs.preprocess.crp: there is no such key. Did you mean crop? There are"),
        ("crop: 0.875", "crop: most", "line 6: inputs.preprocess.crop: expected `float | null`, got `str`, not 'most'"),
        ("crop: 0.875", "crop: 1.5", "line 6: inputs.preprocess.crop: expected `float` <= 1.0, not 1.5; docs/tas"),
        ("crop: 0.875", "channels: gbr", "preprocess.channels: there is no 'gbr'. Did you mean rgb? There are rgb"),
        ("crop: 0.875", "normalization: units", "preprocess.normalization: normalization 'units' is not understood"),
        ("crop: 0.875", "crop: 0.5\n    letterbox: center", "line 7: inputs.preprocess.letterbox: a picture is crop"),
        ("  kind: scores", "  scores", "line 10: output: expected `object`, got `str`, not 'scores'"),
        ("path: images", 'path: "im\\0ages"', "line 4: inputs.path: 'im\\x00ages' holds a null byte, which no path"),
        ("path: images", "7: images", "line 2: inputs: the key 7 is not a text; write a key that docs/tasks.md"),
        ("summary:", "true:", "line 1: the key True is not a text"),
        ("kind: scores", "kind: scores\n  index: -1", "line 12: output.index: expected `int` >= 0, not -1"),
        ("output:\n  kind: scores\n", "", "line 1: 'output' is missing; its keys are inputs, output, truth, metrics"),
        ("metrics", "metric", "line 12: metric: there is no such key. Did you mean metrics?"),
        ("[accuracy]", "accuracy", "line 12: metrics: expected `array`, got `str`, not 'accuracy'"),
        ("[accuracy]", "[accuracy, acuracy]", "line 12: metrics.1: 'acuracy' is not a metric of this output. Did"),
        ("[accuracy]", "[accuracy, accuracy]", "line 12: metrics.1: 'accuracy' is there twice; name each metric once"),
        ("truth:\n  kind: lines\n  path: truth.txt\n", "", "metrics.0: 'accuracy' needs a truth. There are same_a"),
        ("kind: lines", "kind: files", "line 8: truth.kind: files does not fit inputs of kind pictures and an output"),
        ("kind: scores", "kind: values", "an output of kind values; there fit files"),
        (TASK, "", "line 1: expected `object`, got `null`"),
        (TASK, "1: 2", "line 1: "),
        (TASK, "inputs: [", "is not valid YAML"),
        (TASK, "x: !!python/object:os.system {}", "could not determine a constructor for the tag"),
        (TASK, TASK + TASK, "the key 'summary' stands twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_line_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = written(tmp_path, TASK.replace(old, new))
    with pytest.raises(UsageError) as error:
        task_in(file)
    assert str(error.value).startswith(str(file))
    assert message in str(error.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"task\.yaml cannot be read: No such file"):
        task_in(tmp_path / "task.yaml")
