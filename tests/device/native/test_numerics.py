"""What LiteRT's numerics checks print, read; and models and files that they could not take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaltools.device.native_inputs import prepare_native
from evaltools.device.native_numerics import NumericsCheck, numerics_check
from evaltools.errors import EvaltoolsError, ModelError, UsageError
from evaltools.model import read_model
from evaltools.native.logs.figures import NativeFigures
from tests.device.native.test_inputs import flags_of, imagenet_options
from tests.device.numerics_stand_in import write_model
from tests.tflite_writer import Graph

FIRST = """Max diff: {largest}
Min diff: 0
Top 0 diff: 0.5 @ element #: 3, CPU val: 1 , GPU val: 1.5
Mean diff: {mean}
MSE: 0.0625
Total 1 out of 4 are different elements, for output #0, threshold - 0.0001
"""
SECOND = """Max diff: 0
Min diff: 0
Mean diff: 0
MSE: 0
Total 0 out of 2 are different elements, for output #1, threshold - 0.0001
"""


def checked(folder: Path) -> NumericsCheck:
    """A model of a narrow and a wide output, which the program numbers the other way round."""
    model = read_model(write_model(folder / "m.tflite"))
    check = numerics_check(model, flags_of(native_binary=program(folder)))
    assert check is not None
    return check


def program(folder: Path, name: str = "gpu_numerics_check") -> Path:
    path = folder / name
    path.touch()
    return path


def test_figures_belong_to_the_output_that_the_signature_names(tmp_path: Path) -> None:
    check = checked(tmp_path)
    found = check.read(FIRST.format(largest="0.5", mean="0.125") + SECOND)
    assert isinstance(found, NativeFigures)
    assert [(entry.output, entry.max_diff, entry.elements) for entry in found.numerics] == [(1, 0.0, 2), (0, 0.5, 4)]
    assert [error.avg_error for error in found.errors] == [0.0, 0.125]


def test_what_is_no_number_is_none(tmp_path: Path) -> None:
    check = checked(tmp_path)
    found = check.read(FIRST.format(largest="inf", mean="-nan") + SECOND)
    assert isinstance(found, NativeFigures)
    wide = found.numerics[1]
    assert (wide.max_diff, wide.mean_diff, wide.mse) == (None, None, 0.0625)
    assert found.errors[1].avg_error is None


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("", "printed the figures of 0 outputs, the model has 2"),
        (SECOND, "printed the figures of 1 outputs, the model has 2"),
        (FIRST.replace("MSE", "Cosine").format(largest=1, mean=1) + SECOND, "printed the figures of 1 outputs"),
    ],
)
def test_a_text_without_all_figures_of_the_model_gives_none(printed: str, reason: str, tmp_path: Path) -> None:
    check = checked(tmp_path)
    found = check.read(printed)
    assert isinstance(found, str)
    assert reason in found


def test_an_output_that_the_program_does_not_read_is_refused(tmp_path: Path) -> None:
    """Older releases compare zeros with zeros then, and find no difference."""
    graph = Graph()
    fed = graph.tensor("fed", (1, 4))
    whole = graph.node("CAST", [fed], graph.tensor("whole", (1, 4), "int64"), "CastOptions")
    (tmp_path / "m.tflite").write_bytes(graph.to_bytes([fed], [whole]))
    flags = flags_of(native_binary=program(tmp_path))
    with pytest.raises(ModelError, match="the numerics checks read only float32, int32, int16, int8, uint8"):
        numerics_check(read_model(tmp_path / "m.tflite"), flags)


@pytest.mark.parametrize(
    ("name", "files", "message"),
    [
        ("npu_numerics_check", {}, "npu_numerics_check needs --npu_model=FILE"),
        ("npu_numerics_check", {"npu_model": "m.tflite"}, "is not compiled for an NPU"),
        ("npu_numerics_check", {"npu_model": "npu.tflite", "input_dir": "."}, "no file x.raw"),
        ("run_eval", {"input_dir": "."}, "--input_dir is for LiteRT's numerics checks"),
    ],
)
def test_what_a_check_cannot_take_is_refused(name: str, files: dict[str, str], message: str, tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.tflite")
    write_model(tmp_path / "npu.tflite", "DISPATCH_OP")
    given: dict[str, Any] = {flag: tmp_path / file for flag, file in files.items()}
    flags = flags_of(native_binary=program(tmp_path, name), **given)
    with pytest.raises(EvaltoolsError) as caught:
        numerics_check(read_model(model), flags)
    assert message in str(caught.value)


def test_the_values_of_an_input_must_have_its_size(tmp_path: Path) -> None:
    (tmp_path / "x.raw").write_bytes(bytes(15))
    model, compiled = write_model(tmp_path / "m.tflite"), write_model(tmp_path / "npu.tflite", "DISPATCH_OP")
    flags = flags_of(native_binary=program(tmp_path, "npu_numerics_check"), npu_model=compiled, input_dir=tmp_path)
    with pytest.raises(EvaltoolsError, match="has 15 bytes, the input .* takes 16"):
        numerics_check(read_model(model), flags)


def test_only_an_inference_diff_has_numerics_checks(tmp_path: Path) -> None:
    flags = flags_of(native_binary=program(tmp_path))
    with pytest.raises(UsageError, match="compares outputs: give it to inference-diff"):
        prepare_native(imagenet_options(), flags)
