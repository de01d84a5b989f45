"""A task with its models, as steps of a pass: what its functions give is checked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

import evaltools as et
from evaltools.engine.steps import Prepared
from evaltools.errors import ImageError, ModelError, TaskError, UsageError
from evaltools.model import read_model
from evaltools.tasks.framework.definition import Example, Mean, Setting, Task, mean
from evaltools.tasks.framework.loading import Loaded, load_task
from evaltools.tasks.framework.steps import observe, prepared_for, recipe_of
from evaltools.tasks.framework.task import make_task, tensors_of_models
from evaltools.tasks.framework.tensors import ModelTensors, Outputs, Quantisation, TaskTensor
from tests import tiny_models
from tests.tasks.framework.task_files import write_task, write_values

FLOATS = TaskTensor("input", (1, 2), np.dtype("float32"))
BYTES = TaskTensor("input", (1, 2), np.dtype("uint8"), Quantisation(0.5, 3))


@dataclass(frozen=True)
class Photo(Example):
    """Examples may be extended."""

    taken_by: str = ""


def a_task(**changes: Any) -> Task:
    given: dict[str, Any] = {
        "examples": [Photo("a", 1.0, 2.0), Example("b", 2.0, 2.0)],
        "prepare": lambda value, tensors: [np.full((1, 2), value, np.float32)],
        "score": lambda outputs, target: {"error": abs(float(outputs[0].max()) - target)},
        "metrics": [mean("error", better="lower")],
    }
    return Task(**(given | changes))


def made(task: Any) -> Task:
    def function() -> Any:
        return task

    return make_task(Loaded(function, None), {})


class OnTensors:
    """A task with the tensors of its models."""

    def __init__(self, task: Task, models: Sequence[ModelTensors]) -> None:
        self.task, self.models = task, models

    def prepare(self, example: int) -> Prepared:
        return prepared_for(self.task, self.models, example)

    def observe(self, made: Prepared, outputs: Sequence[Any], reference: Sequence[Any] | None = None) -> Any:
        return observe(self.task, self.models, made, outputs, reference)


def own_task(*tensors: TaskTensor, **changes: Any) -> OnTensors:
    return OnTensors(made(a_task(**changes)), [ModelTensors(tensors or (FLOATS,), (FLOATS,))])


class Unprintable(Mean):
    def __repr__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"examples": []}, "the task has no examples; check what its options point at"),
        ({"examples": ["a"]}, "example 0 is a str; give evaltools.Example(id, input, target)"),
        ({"examples": [Example("", 1)]}, "the id of example 0 is ''; give a text that is not empty"),
        (
            {"examples": [Example("a\ud800", 1)]},
            r"the id of example 0 is 'a\ud800'; give a text that is not empty, of whole",
        ),
        ({"examples": [Example(7, 1)]}, "the id of example 0 is 7; give a text"),  # type: ignore[arg-type]
        (
            {"examples": [Example("a", 1), Example("b", 1), Example("a", 2)]},
            "the examples 0 and 2 have the same id 'a'",
        ),
        ({"metrics": []}, 'metrics is []; give such as [evaltools.mean("iou", better="higher")]'),
        ({"metrics": [Unprintable("a"), 3]}, "metrics is [<Unprintable instance at "),
        ({"metrics": [mean("a"), mean("a")]}, "two metrics are named 'a'"),
        ({"metrics": [mean("a b")]}, "'a b' is not a name of a metric; use letters, digits and _"),
        ({"metrics": [mean("a", better="more")]}, "better='more' of a: write 'higher' or 'lower'"),  # type: ignore[arg-type]
        ({"metrics": [mean("failed_examples")]}, "every result has a failed_examples already; give the metric another"),
        ({"metrics": [mean("a", margin=0.0)]}, "margin=0.0 of a: give a number above 0"),
        ({"score": None}, "score is nothing; give a function"),
        ({"examples": (sys.exit() for _ in range(3))}, "its examples cannot be listed: SystemExit"),
        ({"examples": (Example(str(1 // n), n) for n in (1, 0))}, "its examples cannot be listed: ZeroDivisionError"),
    ],
)
def test_a_task_that_cannot_be_used_is_refused_with_its_place(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        made(a_task(**changes))
    assert "test_task.py, line " in str(error.value)
    assert message in str(error.value)


def test_a_function_that_makes_no_task_is_refused() -> None:
    with pytest.raises(UsageError, match="gives nothing; return an evaltools"):
        made(None)


def test_an_exception_of_the_function_is_told_with_its_line() -> None:
    def broken() -> Task:
        raise KeyError("masks")

    with pytest.raises(UsageError) as error:
        make_task(Loaded(broken, None), {})
    line = broken.__code__.co_firstlineno + 1
    assert str(error.value) == f"{__file__}, line {line}: the task broken cannot be made: KeyError: 'masks'"


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda _value, _tensors: [np.zeros((1, 3), np.float32)], "gave float32[1, 3]; the input 'input' takes"),
        (lambda _value, _tensors: [], "prepare gave 0 arrays for 'a'; the model has 1 inputs"),
        (lambda value, _tensors: [value["x"]], "prepare failed for 'a': TypeError: 'float' object is not"),
        (lambda _value, _tensors: None, "prepare gave nothing for 'a'; return one array for each input of the model"),
        (lambda _value, _tensors: [np.array([["a", "b"]])], "prepare gave <U1[1, 2]; the input 'input' takes float32"),
    ],
)
def test_inputs_that_do_not_fit_fail_their_example(prepare: Callable[..., Any], message: str) -> None:
    task = own_task(prepare=prepare)
    with pytest.raises(TaskError) as error:
        task.prepare(0)
    assert f"{__file__}, line " in str(error.value)
    assert message in str(error.value)


def test_arrays_take_the_type_of_the_tensor_where_that_loses_nothing() -> None:
    for values, message in (([[1, 256]], "with values outside of uint8"), ([[0.5, 1.0]], r"np.rint\(real / scale\)")):
        task = own_task(BYTES, prepare=lambda value, tensors: [np.array(values)])  # noqa: B023
        with pytest.raises(TaskError, match=message):
            task.prepare(0)
    whole = own_task(BYTES, prepare=lambda value, tensors: [np.array([[1, 255]])])
    assert whole.prepare(0).inputs[0].dtype == np.uint8
    real = own_task(prepare=lambda value, tensors: np.array([[1.5, 2.5]]))
    assert real.prepare(0).inputs[0].dtype == np.float32


class Speechless(Exception):
    def __str__(self) -> str:
        raise ValueError


def raising(error: BaseException) -> NoReturn:
    raise error


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda _outputs, _target: {}, "score gave no 'error' for 'a', but nothing"),
        (lambda _outputs, _target: {"eror": 1.0}, "score gave no 'error' for 'a', but eror"),
        (lambda _outputs, _target: {"error": float("nan")}, "score gave error=nan for 'a'; give a finite number"),
        (lambda _outputs, _target: {"error": -1.7e308}, "score gave error=-1.7e+308 for 'a'; give a finite number, at"),
        (lambda _outputs, _target: {"error": "0.5"}, "score gave error='0.5' for 'a'; give a number"),
        (lambda _outputs, _target: {"error": None}, "score gave error=None for 'a'; give a number"),
        (lambda _outputs, _target: {"error": [[1, 2]]}, "gave error an array of the shape [1, 2] for 'a'"),
        (lambda _outputs, _target: {"error": []}, "score gave error an array of the shape [0] for 'a'"),
        (lambda _outputs, _target: 0.5, """score gave a float for 'a'; return a mapping such as {"error": 0.8}"""),
        (lambda _outputs, _target: None, "score gave nothing for 'a'; return a mapping such as"),
        (lambda _outputs, _target: raising(GeneratorExit()), "score failed for 'a': GeneratorExit"),
        (lambda _outputs, _target: raising(Speechless()), "score failed for 'a': Speechless: its text cannot be made"),
        (lambda _outputs, target: {"error": 1 / (target - target)}, "score failed for 'a': ZeroDivisionError"),
    ],
)
def test_scores_that_cannot_be_used_fail_their_example(score: Callable[..., Any], message: str) -> None:
    task = own_task(score=score)
    prepared = task.prepare(0)
    with pytest.raises(TaskError) as error:
        task.observe(prepared, [np.zeros((1, 2))])
    assert f"{__file__}, line " in str(error.value)
    assert message in str(error.value)


def setting(folder: Path, **given: Any) -> Setting:
    model = folder / "model.tflite"
    model.write_bytes(tiny_models.vector_input())
    return Setting([read_model(model)], **given)


def of_file(loaded: Loaded, options: dict[str, Any], folder: Path, **given: Any) -> OnTensors:
    stated = setting(folder, **given)
    return OnTensors(make_task(loaded, options, stated), tensors_of_models(stated.models, stated))


def recipe_at(loaded: Loaded, options: dict[str, Any], task: OnTensors, example: int) -> Callable[[], Prepared]:
    recipe = recipe_of(loaded, options, task.task, task.models)
    assert recipe is not None
    return recipe(example)


def test_examples_that_are_others_each_time_are_told(tmp_path: Path) -> None:
    loaded = load_task(f"{write_task(tmp_path)}:brightness")
    values = write_values(tmp_path)
    options = {"values": values}
    task = of_file(loaded, options, tmp_path)
    values.write_text("another 1 2\n")
    with pytest.raises(TaskError, match="gives other examples each time: number 3 was 'example03', then None"):
        recipe_at(loaded, options, task, 3)()


def test_image_input_refuses_what_is_no_picture(tmp_path: Path) -> None:
    picture = TaskTensor("input", (1, 8, 8, 3), np.dtype("uint8"))
    with pytest.raises(TaskError, match="image_input makes one input, and the model has 2"):
        et.image_input("a.png", [picture, picture])
    with pytest.raises(TaskError, match=r"the model's input 'input' is float32\[1, 2\]"):
        et.image_input("a.png", [FLOATS])
    with pytest.raises(TaskError, match="the example's input is of type int"):
        et.image_input(3, [picture])  # type: ignore[arg-type]
    with pytest.raises(ImageError):
        et.image_input(tmp_path / "missing.png", [picture])


def test_image_input_has_the_layout_and_the_colours_of_the_input(tmp_path: Path) -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    planes = TaskTensor("input", (1, 3, 2, 3), np.dtype("uint8"), stated_layout="nchw", channel_order="bgr")
    found = et.image_input(tmp_path / "a.png", [planes])
    np.testing.assert_array_equal(found[0][0], pixels[..., ::-1].transpose(2, 0, 1))
    as_stated_by_nothing = TaskTensor("input", (1, 3, 2, 3), np.dtype("uint8"))
    assert (as_stated_by_nothing.layout, as_stated_by_nothing.picture_size) == ("nhwc", (3, 2))
    with pytest.raises(TaskError, match="the model leaves height and width of its input 'input' open"):
        et.image_input(tmp_path / "a.png", [TaskTensor("input", (1, 1, 1, 3), np.dtype("uint8"), free_size=True)])


def test_image_input_crops_the_square_in_the_middle_as_classifiers_are_fed(tmp_path: Path) -> None:
    pixels = np.arange(8 * 12 * 3, dtype=np.uint16).astype(np.uint8).reshape(8, 12, 3)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    tensor = TaskTensor("input", (1, 4, 4, 3), np.dtype("uint8"))
    found = et.image_input(tmp_path / "a.png", [tensor], crop=0.5)
    np.testing.assert_array_equal(found[0][0], pixels[2:6, 4:8])
    with pytest.raises(TaskError, match="image_input got crop=87.5; use a share above 0 and at most 1"):
        et.image_input(tmp_path / "a.png", [tensor], crop=87.5)


def test_a_layout_or_an_order_needs_an_input_that_takes_pictures(tmp_path: Path) -> None:
    loaded = load_task(f"{write_task(tmp_path)}:brightness")
    for given, flag in (
        ({"input_layout": "nchw"}, "--input_layout=nchw"),
        ({"channel_order": "bgr"}, "--channel_order=bgr"),
    ):
        with pytest.raises(ModelError, match=f"{flag} needs an input"):
            of_file(loaded, {"values": write_values(tmp_path)}, tmp_path, **given)


def test_real_outputs_are_what_quantised_ones_stand_for() -> None:
    assert Outputs([np.array([3, 5], np.uint8)], [BYTES]).real(0).tolist() == [0.0, 1.0]


def observed(draw: Callable[..., Any], outputs: float, reference: float | None) -> et.Drawing | None:
    task = own_task(draw=draw)
    given = None if reference is None else [np.full((1, 2), reference)]
    drawing: et.Drawing | None = task.observe(task.prepare(0), [np.full((1, 2), outputs)], given).drawing
    return drawing


def test_equal_numbers_of_two_models_with_other_scales_are_drawn() -> None:
    models = [ModelTensors((FLOATS,), (replace(BYTES, quantisation=Quantisation(scale, 0)),)) for scale in (0.5, 0.25)]
    changed = et.Drawing(1.0, "a", "a.png", [])
    task = OnTensors(made(a_task(draw=lambda *_: changed)), models)
    outputs = np.array([[4, 2]], np.uint8)
    assert task.observe(task.prepare(0), [outputs], [outputs.copy()]).drawing == changed


def test_what_changed_is_drawn_where_outputs_are_not_those_of_the_reference() -> None:
    def draw(outputs: Outputs, reference: Outputs, example: Example) -> et.Drawing:
        return et.Drawing(
            float(outputs.real(0).max() - reference.real(0).max()), example.id, "a.png", [et.Panel("test", b"png")]
        )

    assert observed(draw, 3.0, 1.0) == et.Drawing(2.0, "a", "a.png", [et.Panel("test", b"png")])
    assert observed(draw, 3.0, 3.0) is None
    assert observed(draw, 3.0, None) is None
    assert observed(lambda *_: None, 3.0, 1.0) is None


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda *_: "a", "draw gave no evaltools.Drawing for 'a': Expected `object`, got `str`; return one, or None"),
        (lambda *_: et.Drawing(float("inf"), "", "", []), "draw gave changed=inf for 'a'; give a number that is 0 or"),
        (lambda *_: et.Drawing(-1.0, "", "", []), "draw gave changed=-1.0 for 'a'"),
        (lambda *_: et.Drawing(1.0, "", "", None), "draw gave no evaltools.Drawing for 'a': Expected `array`, got"),  # type: ignore[arg-type]
        (lambda *_: 1 / 0, "draw failed for 'a': ZeroDivisionError"),
    ],
)  # fmt: skip
def test_drawings_that_cannot_be_used_fail_their_example(draw: Callable[..., Any], message: str) -> None:
    with pytest.raises(TaskError) as error:
        observed(draw, 3.0, 1.0)
    assert f"{__file__}, line " in str(error.value)
    assert message in str(error.value)
