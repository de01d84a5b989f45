"""An inference diff of two models, and of outputs that another model gave."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.datasets.sample import model_file
from evaltools.errors import DataError, UsageError
from evaltools.runtime import open_session
from evaltools.tasks.inference_diff.evaluation import prepare_diff
from evaltools.tasks.inference_diff.inputs import InputOptions
from evaltools.tasks.inference_diff.request import DiffRequest, prepare
from evaltools.tasks.inference_diff.result import DiffComparison
from evaltools.tasks.shared.evaluation import evaluate
from tests import tiny_models
from tests.tasks.observers import Silent

CPU = Configuration("test", kernels="builtin")
REFERENCE = Configuration("reference", kernels="builtin")


def compared(request: DiffRequest) -> tuple[str, DiffComparison]:
    """The kind of the verdict on the test, and its comparison."""
    result = evaluate(prepare_diff, request, Silent(), open_session)
    (verdict,) = result.configurations[-1].verdicts
    return verdict.kind, result.part.comparisons[0]


def of_two_configurations(model: str, num_runs: int, **changes: object) -> DiffRequest:
    inputs = InputOptions(num_runs=num_runs)
    request = DiffRequest(model_file=model_file(model), reference=REFERENCE, tests=(CPU,), inputs=inputs)
    return replace(request, **changes)


def quantised_against_float(**changes: object) -> DiffRequest:
    return of_two_configurations("int8", num_runs=12, **changes)


def test_a_quantised_model_is_held_against_its_float_model_in_real_units() -> None:
    kind, found = compared(quantised_against_float(reference_model_file=model_file("float32")))
    assert kind == "int8"
    assert found.outputs[0].difference.kind == "real"
    assert found.outputs[0].difference.max is not None
    assert found.outputs[0].difference.max < 0.5


def test_saved_outputs_of_the_float_model_give_the_same_as_the_float_model_itself(tmp_path: Path) -> None:
    """The quantised model's inputs are the rounded ones here, the float model's there; the outputs are as far apart."""
    saving = of_two_configurations("float32", num_runs=12, yardstick_runs=0)
    evaluate(prepare_diff, replace(saving, save_outputs=tmp_path / "saved"), Silent(), open_session)
    loading = quantised_against_float(
        reference=None,
        inputs=InputOptions(),
        load_reference=tmp_path / "saved",
        allow_model_mismatch=True,
        yardstick_runs=0,
    )
    found = compared(loading)[1].outputs[0].difference
    both = quantised_against_float(reference_model_file=model_file("float32"), yardstick_runs=0)
    direct = compared(both)[1].outputs[0].difference
    assert found.relative_rms is not None
    assert direct.relative_rms is not None
    assert found.relative_rms == pytest.approx(direct.relative_rms, rel=1.0)
    assert found.relative_rms < 0.3


def test_more_runs_than_were_saved_are_refused(tmp_path: Path) -> None:
    saving = of_two_configurations("float32", num_runs=2, yardstick_runs=0)
    evaluate(prepare_diff, replace(saving, save_outputs=tmp_path / "saved"), Silent(), open_session)
    loading = replace(saving, reference=None, load_reference=tmp_path / "saved")
    with pytest.raises(UsageError, match="--num_runs=3: .* has 2 runs; use no more"):
        prepare(replace(loading, inputs=InputOptions(num_runs=3)))
    assert [example.id for example in prepare(loading).task.examples] == ["run 0", "run 1"]


def test_a_signature_holds_for_the_reference_model_and_for_saved_outputs(tmp_path: Path) -> None:
    path = tmp_path / "two.tflite"
    path.write_bytes(tiny_models.two_signatures())
    request = DiffRequest(
        model_file=path,
        reference=REFERENCE,
        tests=(CPU,),
        inputs=InputOptions(num_runs=2),
        reference_model_file=path,
        yardstick_runs=0,
    )
    for signature in prepare(request).model.signatures:
        assert compared(replace(request, signature=signature))[0] == "equivalent"
    first, second = prepare(request).model.signatures
    saving = replace(request, reference_model_file=None, signature=first, save_outputs=tmp_path / "saved")
    evaluate(prepare_diff, saving, Silent(), open_session)
    loading = DiffRequest(
        model_file=path, reference=None, tests=(CPU,), signature=second, load_reference=tmp_path / "saved"
    )
    with pytest.raises(DataError, match=f"was saved with --signature='{first}', here it is '{second}'"):
        prepare(loading)
