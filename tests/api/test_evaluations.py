"""Evaluations, results and limits from Python."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evaltools as et
from evaltools.datasets import sample
from tests import tiny_models
from tests.cli.evaluate.sample_runs import figures
from tests.command import evaltools_here
from tests.report.page.reading import PageRead
from tests.tasks.framework.task_files import write_task, write_values

PICTURES = 30
ALL_PICTURES = 200
ONE = "kernels=default"
"""The configuration ``test``, where evaltools would try what the machine has."""
FITTING = np.zeros((1, 8, 8, 3), np.float32)
DATA: dict[str, Any] = {
    "images": sample.images_dir(),
    "ground_truth": sample.ground_truth_file(),
    "labels": sample.labels_file(),
}


def imagenet(**more: Any) -> et.Result:
    asked = {"num_images": PICTURES, "label_check": False, "tests": ONE, **more}
    return et.imagenet(sample.model_file("int8"), **DATA, **asked)


@pytest.fixture(scope="module")
def result() -> et.Result:
    tests = {"<fast>": et.Configuration(use_xnnpack=True), "nowhere": "use_hexagon=true"}
    return imagenet(tests=tests)


def test_figures_are_there_by_name(result: et.Result) -> None:
    fast = result["<fast>"]
    assert 0.5 < fast.top1 <= 1.0
    assert fast.agreement <= 1.0
    assert fast.figures["top1"] == fast.top1
    assert fast.delegation is not None
    assert fast.delegation.delegated_nodes == fast.delegation.total_nodes - 1
    assert fast.latency is not None
    assert fast.latency.min_us - 1 <= 1000 * fast.latency_ms <= fast.latency.max_us + 1
    assert [entry.name for entry in result] == ["reference", "<fast>", "nowhere"]
    assert result.complete


def test_it_is_the_result_of_the_command(result: et.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "python.json")
    words = ["imagenet", f"--model_file={sample.model_file('int8')}", f"--num_images={PICTURES}", "--label_check=false"]
    words += [f"--ground_truth_images_path={DATA['images']}", f"--ground_truth_labels={DATA['ground_truth']}"]
    words += [f"--model_output_labels={DATA['labels']}", "--config=<fast>: use_xnnpack=true"]
    done = evaltools_here(
        *words, "--config=nowhere: use_hexagon=true", f"--output_file_path={tmp_path / 'command.json'}"
    )
    assert done.code == 3, done.err
    assert figures(tmp_path / "python.json") == figures(tmp_path / "command.json")


def test_what_ran_and_what_was_not_measured_is_said_in_words(result: et.Result) -> None:
    nowhere = result["nowhere"]
    assert not nowhere.is_measured
    assert "Hexagon" in str(nowhere.reason)
    assert nowhere.in_words[0].startswith("not measured: the Hexagon delegate")
    ran, *verdicts = result["<fast>"].in_words
    assert "XNNPACK 18 of 19 nodes in 1 partition, CPU keeps SOFTMAX x1" in ran
    assert [line.split()[0] for line in verdicts] == [verdict.metric for verdict in result["<fast>"].entry.verdicts]
    with pytest.raises(AttributeError, match="nowhere has no figure 'top1'. It has none: "):
        _ = nowhere.top1


def test_a_name_that_is_none_is_told_with_the_nearest(result: et.Result) -> None:
    with pytest.raises(KeyError, match="no configuration is named '<fats>'. Did you mean <fast>?"):
        result["<fats>"]
    with pytest.raises(AttributeError, match="<fast> has no figure 'top_1'. Did you mean top1?"):
        _ = result["<fast>"].top_1


def test_a_saved_result_is_loaded_again(result: et.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "r.json")
    assert et.load(tmp_path / "r.json").result == result.result
    with pytest.raises(et.DataError, match="no.json cannot be read"):
        et.load(tmp_path / "no.json")
    with pytest.raises(et.OutputError, match="cannot be written"):
        result.save(tmp_path / "nowhere" / "r.json")


def test_limits_are_held(result: et.Result, tmp_path: Path) -> None:
    kept = et.gate(result, ["top1 >= 30 %", "top1 drop <= 90 points at 95 %"], configuration="<fast>")
    assert kept.passed
    kept.require()
    broken = et.gate(result, ["top1 >= 100 %"], configuration="<fast>")
    assert (broken.passed, broken.verdict) == (False, "fail")
    with pytest.raises(et.LimitNotKept, match="<fast>: top1 >= 100 %: fail: top1 93.33 %"):
        broken.require()
    result.save(tmp_path / "r.json")
    assert et.gate(tmp_path / "r.json", "top1 >= 30 %").verdict == "not measured"
    with pytest.raises(et.UsageError, match="no such figure 'topp1'. Did you mean top1?"):
        et.gate(result, ["topp1 >= 1.0"])


def test_limits_that_nothing_could_be_compared_with_are_refused(result: et.Result) -> None:
    with pytest.raises(et.UsageError, match="'ap >= 50 %': a result of imagenet has no ap; it has top1, top2"):
        et.gate(result, ["ap >= 50 %"])
    with pytest.raises(et.UsageError, match="limits is empty, so nothing would be held; give such as"):
        et.gate(result, [])


@pytest.fixture(scope="module")
def times() -> et.Result:
    tests = {"builtin": et.Configuration(kernels="builtin"), "xnnpack": "use_xnnpack=true"}
    return et.benchmark(sample.model_file("int8"), tests=tests, rounds=1, num_runs=3, min_secs=0.0, warmup_min_secs=0.0)


def test_a_benchmark_gives_times_by_name_that_are_loaded_again_and_held(times: et.Result, tmp_path: Path) -> None:
    assert times["xnnpack"].latency_ms > 0
    taken = {entry.name: entry.delegation.delegated_nodes for entry in times if entry.delegation}
    assert taken["builtin"] == 0 < taken["xnnpack"]
    times.save(tmp_path / "times.json")
    loaded = et.load(tmp_path / "times.json")
    assert loaded.result.rows == times.result.rows
    assert loaded.rows == times.rows
    for given in (times, tmp_path / "times.json"):
        assert et.gate(given, ["latency_ms <= 5000"]).passed
        assert et.gate(given, ["latency_ms <= 0.000001"]).verdict == "fail"
    with pytest.raises(et.UsageError, match="there is no option 'num_run'. Did you mean num_runs?"):
        et.benchmark(sample.model_file("int8"), num_run=3)  # type: ignore[call-arg]


def test_results_are_compared_with_earlier_ones(result: et.Result, times: et.Result, tmp_path: Path) -> None:
    result.save(tmp_path / "r.json")
    earlier = json.loads((tmp_path / "r.json").read_text())
    earlier["environment"]["started_at"] = "2020-01-01T00:00:00+00:00"
    (tmp_path / "earlier.json").write_text(json.dumps(earlier))
    again = et.gate(result, configuration="<fast>", against=tmp_path / "earlier.json")
    assert "fail" not in {each.verdict for each in again if each.configuration == "<fast>"}
    with pytest.raises(et.EvaltoolsError, match="the result of result is a copy of the earlier result"):
        et.gate(result, against=tmp_path / "r.json")
    with pytest.raises(et.EvaltoolsError, match="give the two that belong together"):
        et.gate(result, against=times)


def test_it_is_written_with_the_figures_that_matter_most(result: et.Result) -> None:
    written = repr(result["<fast>"])
    shown = [word.partition("=")[0] for word in written.partition(": ")[2].rstrip(">").split(", ")]
    assert shown[:3] == ["top1", "top5", "latency_ms"]
    assert set(shown[3:]) <= {"latency_ratio"}


def test_arguments_of_a_wrong_type_are_errors_of_evaltools(result: et.Result) -> None:
    wrong: Any = 3
    calls: dict[str, Callable[[], object]] = {
        "the result to load: expected a path, got 3": lambda: et.load(wrong),
        "the model to inspect: expected a path, got 3": lambda: et.inspect(wrong),
        "the result: expected a path, got 3": lambda: et.gate(wrong, ["top1 >= 50 %"]),
        "limits: expected texts such as ['top1 >= 70 %'], got 3": lambda: et.gate(result, wrong),
        "limits: expected texts such as ['top1 >= 70 %'], got [3]": lambda: et.gate(result, [wrong]),
        "progress: expected True or a function of a configuration's name": lambda: et.benchmark(
            sample.model_file("int8"), progress=wrong
        ),
        "task: expected a function with @evaltools.task": lambda: et.run(wrong, sample.model_file("int8")),
    }
    for message, call in calls.items():
        with pytest.raises(et.UsageError) as error:
            call()
        assert message in str(error.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_image": 3}, "there is no option 'num_image'. Did you mean num_images?"),
        ({"use_xnnpack": True}, "use_xnnpack is about a configuration; give tests="),
        ({"output_file_path": "r.json"}, "output_file_path: call .save() of the result"),
        ({"tests": {}}, "tests is empty"),
        ({"tests": {"gpu": 3}}, "tests: gpu: expected evaltools.Configuration(...) or the text of flags, got 3"),
        ({"ray_tasks": 2}, "ray_tasks has no effect without executor=ray"),
    ],
)
def test_what_is_wrong_is_an_error_of_evaltools(given: dict[str, Any], message: str) -> None:
    with pytest.raises(et.UsageError) as error:
        et.imagenet(sample.model_file("int8"), **{**DATA, "num_images": PICTURES, **given})
    assert message in str(error.value)


def test_with_compat_native_configurations_are_those_of_the_native_tool() -> None:
    """Which ignores ``num_threads``."""
    found = imagenet(compat="native", num_images=2, tests={"two": et.Configuration(num_threads=2)})
    assert found["two"].entry.flags == []


def test_a_function_is_told_of_progress_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[et.Progress] = []
    imagenet(progress=told.append, num_images=10)
    assert [(each.phase, each.done) for each in told][-1][1] == 10
    assert {each.total for each in told if not each.phase} == {10}
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")


def test_a_bar_goes_to_stderr(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[str, float, float | None]] = []

    def update(bar: Any, step: Any, completed: float) -> None:
        task = next(task for task in bar.tasks if task.id == step)
        seen.append((task.description, completed, task.total))

    monkeypatch.setattr("rich.progress.Progress.update", update)
    tests = {"one": et.Configuration(num_threads=1), "two": et.Configuration(num_threads=2)}
    et.benchmark(
        sample.model_file("int8"), tests=tests, progress=True, rounds=2, num_runs=2, min_secs=0, warmup_min_secs=0
    )
    et.suite(sample.model_file("int8"), tests="use_xnnpack=true", jobs={"d": "diff --num_runs=2"}, progress=True)
    imagenet(progress=True, num_images=10)
    assert seen[:4] == [("rounds", done, 4) for done in range(4)]
    assert {("runs", 1, 1), ("examples", 10, 10)} <= set(seen)
    assert capfd.readouterr().out == ""


def test_ctrl_c_keeps_what_was_measured() -> None:
    def stop(progress: et.Progress) -> None:
        if progress.done == 10:
            raise KeyboardInterrupt

    found = imagenet(progress=stop, workers=1, num_images=0)
    assert not found.complete
    assert found.result.stopped == "interrupted"
    assert 10 <= found.result.examples_done < ALL_PICTURES, "the worker is some pictures ahead of who counts"
    assert found["test"].is_measured
    assert "no figures: " in repr(found["test"])
    with pytest.raises(AttributeError, match="test has no figure 'top1'. It has none: the run ended early"):
        _ = found["test"].top1


ARRAYS = np.random.default_rng(1).random((2, 64, 64, 3), np.float32)


def test_arrays_are_runs_of_a_diff_with_or_without_the_first_axis_and_by_name() -> None:
    (name,) = _inputs(sample.model_file("float32"))
    ways: dict[str, Any] = {
        "one array": ARRAYS,
        "one by one": (array[None] for array in ARRAYS),
        "without the first axis": list(ARRAYS),
        "by name": [{name: array} for array in ARRAYS],
    }
    found = {
        way: et.diff(sample.model_file("float32"), inputs=inputs, tests="use_xnnpack=true", noise_floor_runs=0)
        for way, inputs in ways.items()
    }
    assert {way: each.result.examples_done for way, each in found.items()} == dict.fromkeys(ways, 2)
    (error,) = {each["test"].max_error for each in found.values()}
    assert error > 0


def test_inputs_of_a_diff_have_names_where_there_are_several_also_one_that_numpy_keeps(tmp_path: Path) -> None:
    model = tmp_path / "two.tflite"
    model.write_bytes(tiny_models.two_inputs().replace(b"left", b"file"))
    shapes = _inputs(model)
    assert "file" in shapes
    runs = [{name: np.full(shape, number, np.float32) for name, shape in shapes.items()} for number in range(3)]
    for inputs, count in ((runs, 3), (runs[0], 1), (list(runs[0].values()), 1)):
        found = et.diff(model, inputs=inputs, tests="use_xnnpack=true", noise_floor_runs=0)
        assert found.result.examples_done == count
    with pytest.raises(et.UsageError, match="inputs is empty"):
        et.diff(model, inputs=[])
    with pytest.raises(et.UsageError, match="a run of inputs has 1 array; the model takes file: "):
        et.diff(model, inputs=[np.zeros(3), np.zeros(3), np.zeros(3)])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            [np.zeros((9, 9, 3), np.float32)] * 2,
            "an array of the shape [9, 9, 3] is for the input left: float32[1,8,8,3]",
        ),
        (
            {"left": FITTING, "right": FITTING[0, 0]},
            "an array of the shape [8, 3] is for the input right: float32[1,8,",
        ),
        (
            {"left": FITTING, "rigth": FITTING},
            "'rigth' is not an input of the model; it takes left: float32[1,8,8,3], right",
        ),
        ({"left": FITTING, "rigth": FITTING}, "Did you mean right?"),
        ({"left": FITTING}, "a run of inputs names left; the model takes left: float32[1,8,8,3], right"),
        (
            [FITTING.astype(np.complex64)] * 2,
            "an array of complex64 is for the input left: float32[1,8,8,3]; give floa",
        ),
        ([np.array(["a", "b"])] * 2, "an array of <U1 is for the input left: float32[1,8,8,3]; give float32"),
        (
            {"left": FITTING, "0": FITTING, "right": FITTING},
            "a run of inputs names left, 0, right; the model takes left",
        ),
        ({"left": FITTING, "right": [[1.0], [1.0, 2.0]]}, "what is given for the input right: float32[1,8,"),
        (5, "inputs is of the type int; give an array, arrays by name, or several of either"),
    ],
)
def test_arrays_that_do_not_fit_are_told_in_the_words_of_python(tmp_path: Path, inputs: Any, message: str) -> None:
    model = tmp_path / "two.tflite"
    model.write_bytes(tiny_models.two_inputs())
    with pytest.raises(et.UsageError) as error:
        et.diff(model, inputs=inputs)
    assert message in str(error.value)
    assert "--input_files" not in str(error.value)


def test_a_word_says_which_kind_of_inputs_a_diff_gets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of that name is a folder."""
    monkeypatch.chdir(tmp_path)
    how: dict[str, Any] = {"tests": "kernels=reference", "noise_floor_runs": 0, "num_runs": 2}
    photos = et.diff(sample.model_file("int8"), inputs="photos", **how)
    values = "values -128..127 (normalization native)"
    assert photos.result.given["input 0"] == f"pictures in the embedded sample, {values}"
    shutil.copytree(sample.images_dir(), tmp_path / "photos")
    by_folder = et.diff(sample.model_file("int8"), inputs="photos", **how)
    assert by_folder.result.given["input 0"] == f"pictures in photos, {values}"
    assert by_folder["test"].max_error == photos["test"].max_error


def _inputs(model: Path) -> dict[str, tuple[int, ...]]:
    from evaltools.model import read_model

    return {tensor.name: tensor.shape for tensor in read_model(model).inputs}


def test_a_task_of_a_notebook_needs_no_file(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(tiny_models.vector_input(length=4))

    @et.task
    def constant(count: int = 3) -> et.Task:
        return et.Task(
            examples=[et.Example(str(number), number) for number in range(count)],
            prepare=lambda value, tensors: [np.full(tensors[0].shape, value, tensors[0].dtype)],
            score=lambda outputs, target: {"largest": float(outputs.real(0).max())},
            metrics=[et.mean("largest")],
        )

    found = et.run(constant, model, count=5, tests={"one": et.Configuration(num_threads=1)})
    assert found["one"].largest == found["reference"].largest
    assert found.result.examples_done == 5
    assert et.gate(found, ["largest drop <= 1", "largest >= 0"]).passed
    with pytest.raises(et.UsageError, match="is in no file that could be loaded again"):
        et.run(constant, model, run_dir=str(tmp_path / "run"))


def test_a_task_of_a_file_runs_by_its_name(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(tiny_models.vector_input(length=4))
    file = write_task(tmp_path)
    found = et.run(f"{file}:brightness", model, values=write_values(tmp_path), run_dir=tmp_path / "run", tests=ONE)
    assert found["test"].near == found["reference"].near
    resumed = evaltools_here("resume", str(tmp_path / "run"), f"--output_file_path={tmp_path / 'r.json'}")
    assert resumed.code == 0, resumed.err
    assert json.loads((tmp_path / "r.json").read_text())["examples_done"] == 12


def test_a_model_is_inspected() -> None:
    assert et.inspect(sample.model_file("int8"), run=False).result.rows[0].texts["kind"] == "full integer"
    with pytest.raises(et.ModelError):
        et.inspect(__file__)


def test_importing_it_needs_neither_numpy_nor_a_runtime() -> None:
    program = (
        "import sys, evaltools as et; et.task, et.Example, et.UsageError\n"
        "heavy = {'numpy', 'ai_edge_litert', 'tflite_runtime', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_public_name_is_there() -> None:
    importlib.import_module("evaltools.benchmark.run")  # a package of the name of a function

    for name in et.__all__:
        assert getattr(et, name) is not None
    assert callable(et.benchmark)
    with pytest.raises(AttributeError, match="module 'evaltools' has no attribute 'imagnet'"):
        _ = et.imagnet  # type: ignore[attr-defined]


def test_a_task_of_this_process_alone_is_refused_on_ray(tmp_path: Path) -> None:
    @et.task
    def nothing() -> et.Task:
        """Nothing."""
        raise AssertionError("never made")

    (tmp_path / "model.tflite").write_bytes(tiny_models.vector_input(length=4))
    with pytest.raises(et.UsageError, match="in no file that others could load"):
        et.run(nothing, tmp_path / "model.tflite", executor="ray")


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        ([et.Configuration(name="a"), et.Configuration(name="a", num_threads=2)], "two configurations are named 'a'"),
        ({"reference": "use_xnnpack=true"}, "two configurations are named 'reference'"),
        ([], "tests is empty; give such as"),
        (3, "tests=3: give such as"),
    ],
)
def test_configurations_that_would_get_lost_are_refused(tests: Any, message: str) -> None:
    with pytest.raises(et.UsageError) as error:
        imagenet(tests=tests)
    assert message in str(error.value)


def test_an_argument_is_not_overridden_by_the_flag_of_its_name() -> None:
    with pytest.raises(et.UsageError, match="model_file: it has an argument of its own"):
        imagenet(model_file=sample.model_file("float32"))


def test_a_diff_of_arrays_goes_on_in_its_folder(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(tiny_models.vector_input(length=4))
    (shape,) = _inputs(model).values()
    runs = [np.full(shape, number, np.float32) for number in range(3)]
    options: dict[str, Any] = {"run_dir": str(tmp_path / "run"), "noise_floor_runs": 0}
    first = et.diff(model, inputs=runs, **options)
    assert et.diff(model, inputs=runs, **options).result.examples_done == first.result.examples_done == 3
    with pytest.raises(et.UsageError, match="holds another run"):
        et.diff(model, inputs=[array + 1 for array in runs[:2]], **options)


def test_entries_are_found_and_copied(result: et.Result) -> None:
    assert "<fast>" in result
    assert "fast" not in result
    assert copy.deepcopy(result["<fast>"]).top1 == result["<fast>"].top1
    assert pickle.loads(pickle.dumps(result["<fast>"])).top1 == result["<fast>"].top1


def test_a_page_about_a_result_in_memory(result: et.Result, tmp_path: Path) -> None:
    result.report(tmp_path / "r.html")
    page = PageRead((tmp_path / "r.html").read_bytes())
    assert page.figures["rows/1/figures/top1/value"] == result["<fast>"].top1
    result.report(str(tmp_path / "r.md"))
    assert (tmp_path / "r.md").read_text().startswith("# ")
    with pytest.raises(et.errors.UsageError, match=r"the ending \.txt says no format"):
        result.report(tmp_path / "r.txt")
