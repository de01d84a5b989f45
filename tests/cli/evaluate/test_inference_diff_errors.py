"""``evaltools inference-diff``: exit codes, wrong flags and files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evaltools.cli.main import main
from tests import tiny_models
from tests.command import Completed, evaltools_here

FAST = ("--noise_floor_runs=0", "--warmup_runs=0", "--num_runs=2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model for pictures, one for whole numbers, and one with an input of NaN."""
    made = tmp_path_factory.mktemp("models")
    (made / "model.tflite").write_bytes(tiny_models.classifier())
    (made / "whole.tflite").write_bytes(tiny_models.add_chain(dtype="int8"))
    (made / "add.tflite").write_bytes(tiny_models.add_chain())
    np.save(made / "nan.npy", np.full((1, 8, 8, 3), np.nan, np.float32))
    (made / "text.npy").write_text("no array")
    return made


def diff(model: Path, *flags: str) -> Completed:
    return evaltools_here("inference-diff", f"--model_file={model}", *FAST, *flags)


def test_a_broken_limit_is_exit_code_1_and_named(folder: Path) -> None:
    kept = diff(folder / "model.tflite", "--max_avg_error=0.1", "--min_snr_db=scores=60")
    assert (kept.code, "LIMIT" in kept.err) == (0, False)
    broken = diff(folder / "model.tflite", "--max_avg_error=0.1", "--min_snr_db=0=900")
    assert broken.code == 1
    assert "test: LIMIT BROKEN --min_snr_db=0=900: scores has 1" in broken.err
    assert "INFO: OutputDiff[0]" in broken.out


def test_a_configuration_that_is_not_measured_outweighs_a_broken_limit(folder: Path) -> None:
    completed = diff(
        folder / "model.tflite", "--min_snr_db=900", "--kernels=reference", "--config=nnapi: use_nnapi=true"
    )
    assert completed.code == 3
    assert "nnapi      not measured: the NNAPI delegate cannot be created" in completed.err
    assert "nnapi: not measured, as said above" in completed.err
    assert "Configuration: nnapi" not in completed.out


def test_of_several_external_delegates_only_the_one_that_cannot_be_created_is_left_out(
    folder: Path, rounding_delegate: Path, tmp_path: Path
) -> None:
    flags = [
        f"--{flag}"
        for options in ("max_nodes:1", "fail:create", "precision:bf16")
        for flag in (f"external_delegate_path={rounding_delegate}", f"external_delegate_options={options}")
    ]
    refused = diff(folder / "model.tflite", *flags)
    assert (refused.code, refused.out) == (3, "")
    assert "refused to be created" in refused.err
    result = tmp_path / "r.json"
    allowed = diff(folder / "model.tflite", *flags, "--allow_fallback=true", f"--output_file_path={result}")
    assert allowed.code == 0, allowed.err
    (test,) = [entry for entry in json.loads(result.read_text())["configurations"] if entry["role"] == "test"]
    nodes = {entry["name"]: entry["nodes"] for entry in test["delegates"]}
    assert (nodes["EXTERNAL"], nodes["EXTERNAL#2"]) == (1, None)
    assert nodes["EXTERNAL#3"] > 0
    assert "EXTERNAL 1 of" in allowed.err
    assert "EXTERNAL#2 not created" in allowed.err


def test_numbers_that_are_none_are_exit_code_4(folder: Path) -> None:
    completed = diff(folder / "add.tflite", f"--input_files={folder / 'nan.npy'}")
    assert completed.code == 4
    assert completed.out.splitlines()[-1] == "INFO: OutputDiff[0]: avg_error=nan, std_dev=nan"
    counts = "the test has 384 NaN and the reference has 384 NaN of 384 values"
    assert f"test: not decided: 3 times: {counts}" in completed.err


@pytest.mark.usefixtures("time_out_of_runs")
def test_a_delegate_that_hangs_is_ended(folder: Path, rounding_delegate: Path) -> None:
    config = f"hangs: external_delegate_path={rounding_delegate} external_delegate_options=fail:hang"
    completed = diff(folder / "add.tflite", "--kernels=builtin", "--config", config, "--example_timeout=2")
    assert completed.code == 3
    assert "hangs: not measured: not one example succeeded: no answer within 2 s during a run" in completed.err
    assert "INFO: Configuration: test" in completed.out


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--num_runs=0", "--num_runs=0: use 1 to 1000000"),
        ("--seed=0", "--seed=0: use a whole number of 1 or more"),
        ("--example_timeout=0", "--example_timeout=0: use a number of seconds above 0"),
        ("--max_quanta=1", "none is compared in quanta (scores: float32[1,12])"),
        ("--min_snr_db=score=1", "has no output 'score'; it has 'scores'. Did you mean scores?"),
        ("--input_range=1:0", "--input_range=1:0: use NAME:LOW:HIGH with LOW below HIGH"),
        ("--signature=main", "has no signature 'main'; it has none; leave --signature out"),
        ("--reference=none", "--reference=none leaves nothing to compare with"),
        ("--load_reference=/none", "/none/manifest.json cannot be read"),
        ("--allow_model_mismatc=true", "Did you mean --allow_model_mismatch?"),
    ],
)
def test_wrong_flags_are_one_message_and_exit_code_2(
    folder: Path, capsys: pytest.CaptureFixture[str], flag: str, message: str
) -> None:
    code = main(["inference-diff", f"--model_file={folder / 'model.tflite'}", "--use_xnnpack=false", flag])
    out, err = capsys.readouterr()
    assert (code, out) == (2, ""), err
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_result_overwrites_nothing_that_is_read(folder: Path, tmp_path: Path) -> None:
    array, saved = tmp_path / "in=put.npy", tmp_path / "saved"
    np.save(array, np.ones((1, 8, 8, 3), np.float32))
    assert diff(folder / "add.tflite", f"--save_outputs={saved}").code == 0
    load = ["--noise_floor_runs=0", "--warmup_runs=0", f"--load_reference={saved}"]
    for flags, target in (
        ([*FAST, f"--input_files=input={array}"], array),
        ([*FAST, f"--input_files={tmp_path}"], array),
        (load, saved / "manifest.json"),
        (load, saved / "inputs" / "00000.npz"),
        (FAST, folder / "add.tflite"),
    ):
        before = target.read_bytes()
        given = [f"--model_file={folder / 'add.tflite'}", *flags, f"--output_file_path={target}"]
        completed = evaltools_here("diff", *given)
        assert (completed.code, target.read_bytes() == before) == (2, True), completed.err
        assert "would overwrite an input of this run" in completed.err
