"""Tasks of YAML files: the figures of the tasks that come with evaltools, and figures worked out by hand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

import evaltools as et
from evaltools.configuration import Configuration
from evaltools.errors import DataError, ImageError, TaskError, UsageError
from evaltools.model import read_model
from evaltools.preprocess import ImageToTensor, Letterbox, parse_normalization
from evaltools.runtime import open_session
from evaltools.task_kind import recorded_kind
from evaltools.tasks.own import kind_named
from evaltools.tasks.own.loading import load_task
from evaltools.tasks.own.tensors import Outputs, TaskTensor
from evaltools.tasks.task_file import schema
from evaltools.tasks.task_file.answers import Scoring, answer_of
from evaltools.tasks.task_file.examples import Stored, listed, preparation
from tests import tiny_models
from tests.cli.evaluate.sample_runs import figures_here
from tests.command import evaltools_here
from tests.locate_models import svdf
from tests.tasks.declared import OPTIONS, SAMPLE, run_sample

STATED: dict[str, dict[str, Any]] = {
    "segmentation": {
        "inputs": {"kind": "pictures", "path": "images"},
        "truth": {"kind": "files", "path": "masks"},
        "output": {"kind": "classes"},
    },
    "audio": {
        "inputs": {"kind": "recordings", "path": "recordings"},
        "truth": {"kind": "folders", "labels": "labels.txt"},
        "output": {"kind": "scores"},
    },
    "text": {
        "inputs": {"kind": "rows", "path": "texts.csv"},
        "truth": {"kind": "column", "name": "label"},
        "output": {"kind": "scores"},
    },
    "image_to_image": {
        "inputs": {"kind": "pictures", "path": "images"},
        "truth": {"kind": "files", "path": "targets"},
        "output": {"kind": "picture", "values": "native"},
    },
}
"""What a task.yaml states instead of the options of a task that comes with evaltools."""


def stated(folder: Path, sample: Path, task: dict[str, Any]) -> Path:
    """A task.yaml about a folder; JSON is YAML."""
    for part in ("inputs", "truth"):
        for name in {"path", "labels"} & set(task[part]):
            task[part][name] = str(sample / task[part][name])
    file = folder / "task.yaml"
    file.write_text(json.dumps(task))
    return file


@pytest.mark.parametrize("task", STATED)
def test_figures_are_those_of_the_task_that_comes_with_evaltools(task: str, tmp_path: Path) -> None:
    expected = run_sample(task).result
    folder = SAMPLE / OPTIONS[task][0]
    file = stated(tmp_path, folder, STATED[task])
    found = et.run(str(file), folder / "model.tflite", tests={"xnnpack": "use_xnnpack=true"}).result
    assert found.part.means == expected.part.means
    assert found.part.comparisons == expected.part.comparisons
    assert (found.task, found.part.name, found.part.source) == ("own", "task", str(file))


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """A model that adds two inputs, and three examples of which the second and third have another right answer."""
    (tmp_path / "model.tflite").write_bytes(tiny_models.two_inputs((1, 4), (1, 4)))
    (tmp_path / "arrays").mkdir()
    for number, off in enumerate(([0, 0, 0, 0], [1, 0, 0, 0], [1, 2, 3, 2])):
        left, right = np.full((1, 4), number, np.float32), np.arange(4, dtype=np.float32)[np.newaxis]
        np.savez(tmp_path / "arrays" / f"{number}.npz", left=left, right=right, expected=left + right + off)
    (tmp_path / "sums.yaml").write_text("""
inputs: {kind: arrays, path: arrays}
truth: {kind: array, name: expected}
output: {kind: values}
metrics: [largest_error, mean_error, mean_shift]
""")
    return tmp_path


def test_values_of_a_model_with_several_inputs_are_compared_with_arrays(sums: Path) -> None:
    result = et.run(sums / "sums.yaml", sums / "model.tflite", tests={"xnnpack": "use_xnnpack=true"})
    for entry in result:
        assert (entry.largest_error, entry.mean_error, entry.mean_shift) == (4 / 3, (0.25 + 2) / 3, 0.0)
    assert [metric.name for metric in result.result.part.metrics] == ["largest_error", "mean_error", "mean_shift"]


def test_a_run_of_a_file_goes_on_from_elsewhere_but_not_with_another_task(
    sums: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["run", "sums.yaml", "model.tflite", "--workers=2", f"--run_dir={sums / 'run'}"]
    begun = evaltools_here(*words, cwd=sums)
    assert begun.code == 0, begun.err
    assert "found with the model" not in begun.err
    assert "INFO: mean_error: 0.75" in begun.out
    (sums / "elsewhere").mkdir()
    resumed = evaltools_here("resume", str(sums / "run"), cwd=sums / "elsewhere")
    assert resumed.code == 0, resumed.err
    assert "INFO: mean_error: 0.75" in resumed.out
    (sums / "sums.yaml").write_text((sums / "sums.yaml").read_text() + "summary: Another.\n")
    changed = evaltools_here(*words, cwd=sums)
    assert changed.code == 2
    assert "the task's file" in changed.err


def test_paths_of_the_file_are_options(sums: Path) -> None:
    (sums / "arrays").rename(sums / "others")
    done = evaltools_here(
        "run", "sums.yaml", "model.tflite", f"--arrays={sums / 'others'}", "--num_examples=2", cwd=sums
    )
    assert done.code == 0, done.err
    assert "INFO: mean_error: 0.125" in done.out
    missing = evaltools_here("run", "sums.yaml", "model.tflite", cwd=sums)
    assert missing.code == 2
    assert "arrays has no .npz or .npy files; give the folder with one for each example" in missing.err


def test_a_file_is_a_task_on_another_machine_under_its_path_there(sums: Path) -> None:
    kind = kind_named(str(sums / "sums.yaml"))
    assert kind.moved("", lambda file: f"/there/{file.name}") == "/there/sums.yaml"
    assert kind.files_beside() == ()


def test_no_result_names_a_file_with_a_task() -> None:
    with pytest.raises(UsageError, match=r"'task\.yaml' names a file of a task"):
        recorded_kind("task.yaml")


def tensor(shape: tuple[int, ...], name: str = "x") -> TaskTensor:
    return TaskTensor(name, shape, np.dtype("float32"))


@pytest.mark.parametrize(
    ("steps", "changed", "is_blue_first"),
    [
        (schema.Preprocess(crop=0.5, normalization="unit"), {"crop_fraction": 0.5}, False),
        (
            schema.Preprocess(letterbox="top_left", fill=7, normalization="unit"),
            {"letterbox": Letterbox("top_left", 7)},
            False,
        ),
        (schema.Preprocess(channels="bgr", normalization="unit"), {}, True),
    ],
)
def test_steps_are_those_of_every_picture(
    steps: schema.Preprocess, changed: dict[str, Any], is_blue_first: bool, tmp_path: Path
) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (20, 30, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    [found] = preparation(schema.Pictures("", steps))(tmp_path / "a.png", [tensor((1, 8, 8, 3))])
    plain = ImageToTensor(8, 8, np.dtype("float32"), parse_normalization("unit"), crop_fraction=None)
    expected = replace(plain, **changed)(pixels)
    assert np.array_equal(found, expected[..., ::-1] if is_blue_first else expected)


def test_lines_are_labels_by_name_or_numbers(tmp_path: Path) -> None:
    (tmp_path / "arrays").mkdir()
    for name in ("a", "b"):
        np.save(tmp_path / "arrays" / f"{name}.npy", np.zeros(3))
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    lines = tmp_path / "lines.txt"
    task = schema.TaskFile(schema.Arrays("arrays"), schema.Scores(), schema.Lines("lines.txt"))

    def targets(content: str, wanted: Any, labels: str | None = None) -> list[Any]:
        lines.write_text(content)
        names = tmp_path / labels if labels else None
        return [each.target for each in listed(task, tmp_path / "arrays", wanted, lines, names)]

    assert targets("dog\ncat\n", "label", "names.txt") == [1, 0]
    assert targets("3\n0\n", "label") == [3, 0]
    assert targets("3\n0.5\n", "number") == [3.0, 0.5]
    for content, wanted, labels, message in (
        ("dog\ncow\n", "label", "names.txt", "line 2: the label 'cow' is not a line of --labels"),
        ("dog\ncat\n", "label", None, "line 1: 'dog' is not a number; give one, or for the names of labels the file"),
        ("1\n-1\n", "label", None, "line 2: the label is -1; the first label is 0"),
        ("1\nnan\n", "number", None, "line 2: 'nan' is not a finite number; give one"),
        ("1\n", "label", None, "has 1 lines, and there are 2 examples; line i is right for example i"),
    ):
        with pytest.raises(DataError, match=message):
            targets(content, wanted, labels)


def test_arrays_that_are_not_there_are_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(2), label=np.array(1), several=np.zeros(2))
    (tmp_path / "b.npz").write_bytes(b"PK no archive")
    np.save(tmp_path / "c.npy", np.array([np.nan]))
    prepare = preparation(schema.Arrays(""))
    assert prepare(tmp_path / "a.npz", [tensor((2,))])[0].tolist() == [0, 0]
    with pytest.raises(ImageError, match="has no array 'y'; it has x, label, several"):
        prepare(tmp_path / "a.npz", [tensor((2,), "y")])
    with pytest.raises(ImageError, match=r"b\.npz: no array that can be read"):
        prepare(tmp_path / "b.npz", [tensor((2,))])
    with pytest.raises(TaskError, match="the model has 2 inputs; give them by name in .npz files"):
        prepare(tmp_path / "c.npy", [tensor((1,)), tensor((1,))])
    outputs = Outputs([np.array([0.5, 0.25], np.float32)], [tensor((2,))])
    scores = Scoring(answer_of(schema.Scores()), 0, ["accuracy"])
    assert scores.score(outputs, Stored(tmp_path / "a.npz", "label")) == {"accuracy": 0.0}
    with pytest.raises(TaskError, match=r"several is float64\[2\]; give the number of a label, from 0"):
        scores.score(outputs, Stored(tmp_path / "a.npz", "several"))
    values = Scoring(answer_of(schema.Values()), 0, ["mean_error"])
    with pytest.raises(TaskError, match="the array has values that are no finite numbers"):
        values.score(outputs, Stored(tmp_path / "c.npy"))
    with pytest.raises(TaskError, match=r"the output has the shape \[2\], what is right \[\]"):
        values.score(outputs, Stored(tmp_path / "a.npz", "label"))


def test_without_a_truth_agreement_alone_is_counted(sums: Path) -> None:
    (sums / "sums.yaml").write_text("inputs: {kind: arrays, path: arrays}\noutput: {kind: embedding}\n")
    made = load_task(str(sums / "sums.yaml")).function(arrays=sums / "arrays", num_examples=0, order="native", seed=1)
    assert made.score is None
    assert [metric.name for metric in made.metrics] == ["cosine"]


def test_a_model_that_keeps_a_state_gets_all_examples_in_order(tmp_path: Path) -> None:
    (tmp_path / "model.tflite").write_bytes(svdf())
    (tmp_path / "frames").mkdir()
    frames = np.random.default_rng(2).uniform(-1, 1, (40, 1, 6)).astype(np.float32)
    for number, frame in enumerate(frames):
        np.savez(tmp_path / "frames" / f"{number:02d}.npz", frame=frame, right=np.zeros((1, 5)))
    (tmp_path / "task.yaml").write_text(
        "inputs: {kind: arrays, path: frames}\ntruth: {kind: array, name: right}\noutput: {kind: values}\n"
    )
    session = open_session(read_model(tmp_path / "model.tflite"), Configuration("a", kernels="builtin"))
    expected = [np.abs(session.run((frame,)).outputs[0]).astype(np.float64) for frame in frames]
    session.close()
    words = ("run", str(tmp_path / "task.yaml"), str(tmp_path / "model.tflite"), "--kernels=builtin")
    found = figures_here([*words], tmp_path / "result.json")
    means = {each["metric"]: each["mean"] for each in found["part"]["means"] if each["configuration"] == "test"}
    assert means["mean_error"] == pytest.approx(np.mean([each.mean() for each in expected]), rel=1e-6)
    assert means["largest_error"] == pytest.approx(np.mean([each.max() for each in expected]), rel=1e-6)
    for more, message in (
        (("--workers=2",), "so one worker must do them; leave the flag out"),
        (("--order=random",), "--order=random: .* keeps a state from example to example, so that all must run in"),
        (
            (f"--run_dir={tmp_path / 'run'}", "--shard_index=0", "--shard_count=2"),
            "--shard_count=2: .* keeps a state from example to example, so that one host must do all",
        ),
    ):
        done = evaltools_here(*words, *more)
        assert done.code == 2
        assert re.search(message, done.err)
