"""Inputs of a benchmark for real models, and the words of the recorded native runs with input flags."""

from __future__ import annotations

import importlib
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.benchmark.input_layers import read_layers
from evaltools.benchmark.inputs import make_inputs, with_input_shapes
from evaltools.errors import ModelError, UsageError
from evaltools.model import ModelFile, read_model
from tests.realdata.conftest import zoo_models

NO_MODEL = "litert_test_model_broken"
REFUSED_BY_THE_INTERPRETER = {"person_detect"}
NOT_ALLOCATED = {"litert_double_flex", "model_invoking_error"}
"""Operators are missing, so that tensors cannot be allocated; what the inputs take is known all the same."""
FLAGS = ("--input_layer", "--input_layer_shape", "--input_layer_value_range", "--input_layer_value_files")
CASES = {
    "input_file": 0,
    "input_file_missing": 134,
    "input_file_short": 134,
    "input_layer_bad": 0,
    "input_layer_noshape": 1,
    "input_layer_ok": 0,
    "input_layer_resize": 0,
    "input_range": 0,
    "input_range_badfmt": 1,
}
"""The recorded native runs and their exit codes."""


def signatures(model: ModelFile) -> tuple[str, ...]:
    return model.signatures or ("",)


@pytest.mark.parametrize("name", zoo_models())
def test_inputs_of_every_model_fit_its_interpreter(zoo: Path, name: str) -> None:
    path = zoo / f"{name}.tflite"
    if name == NO_MODEL:
        with pytest.raises(ModelError):
            read_model(path)
        return
    for signature in signatures(read_model(path)):
        model = read_model(path, signature)
        arrays, warnings = make_inputs(model, ())
        assert warnings == []
        assert [array.shape for array in arrays] == [tensor.shape for tensor in model.inputs]
        if name not in REFUSED_BY_THE_INTERPRETER:
            check_in_interpreter(model, arrays, allocate=name not in NOT_ALLOCATED)


def check_in_interpreter(model: ModelFile, arrays: tuple[Any, ...], allocate: bool) -> None:
    """Types and shapes are those that the interpreter states; numbers and texts set are those that it reads back."""
    interpreter = importlib.import_module("ai_edge_litert.interpreter").Interpreter(model_content=model.read())
    details = interpreter.get_input_details()
    for array, detail in zip(arrays, details, strict=True):
        wanted = np.dtype(detail["dtype"]).kind
        assert array.dtype == detail["dtype"] or (array.dtype.kind, wanted) == ("O", "S")
        assert array.shape == tuple(detail["shape"])
    if allocate:
        interpreter.allocate_tensors()
        for array, detail in zip(arrays, details, strict=True):
            interpreter.set_tensor(detail["index"], array)
            assert interpreter.get_tensor(detail["index"]).tolist() == array.tolist()


def run_recorded(shared: Path, data: Path, case: str) -> tuple[list[str], list[str]]:
    """Errors and warnings for the flags of a recorded run, whose own files lie in ``data`` here."""
    graph, texts = "", {}
    for word in shlex.split((shared / "oracle" / "benchmark" / case / "cmd.txt").read_text())[1:]:
        flag, _, value = word.partition("=")
        if flag == "--graph":
            graph = value
        if flag in FLAGS:
            texts[flag] = value.replace("DATA", str(data))
    try:
        layers = read_layers(*(texts.get(flag, "") for flag in FLAGS))
        model, warnings = with_input_shapes(read_model(shared / graph), layers)
        arrays, more = make_inputs(model, layers)
    except UsageError as error:
        return [str(error).replace(str(data), "DATA")], []
    assert [array.shape for array in arrays] == [tensor.shape for tensor in model.inputs]
    return [], warnings + more


def printed(shared: Path, case: str, *levels: str) -> list[str]:
    lines = (shared / "oracle" / "benchmark" / case / "stderr.txt").read_text().splitlines()
    lines += (shared / "oracle" / "benchmark" / case / "stdout.txt").read_text().splitlines()
    said = [line.partition(": ")[2] for line in lines if line.partition(": ")[0] in levels]
    return [line for line in said if line != "Benchmarking failed."]


@pytest.mark.parametrize("case", CASES)
def test_flags_are_judged_in_the_words_of_the_native_tool(shared: Path, tmp_path: Path, case: str) -> None:
    (tmp_path / "err").mkdir()
    for size in (100, 49152):
        (tmp_path / "err" / f"zeros{size}.bin").write_bytes(bytes(size))
    errors, warnings = run_recorded(shared, tmp_path, case)
    said = printed(shared, case, "ERROR", "FATAL")
    assert bool(said) == (CASES[case] != 0)
    assert len(errors) == len(said)
    assert all(error.startswith(native) for error, native in zip(errors, said, strict=True))
    assert warnings == printed(shared, case, "WARN")


def test_every_recorded_run_with_input_flags_is_tried(shared: Path) -> None:
    folders = (shared / "oracle" / "benchmark").glob("*/cmd.txt")
    with_flags = {path.parent.name: path.with_name("rc.txt") for path in folders if "--input_layer" in path.read_text()}
    assert {name: int(path.read_text()) for name, path in with_flags.items()} == CASES
