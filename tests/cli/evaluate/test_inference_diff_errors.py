"""``evaltools inference-diff``: exit codes, wrong flags and files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from evaltools.cli.main import main
from tests import tiny_models
from tests.cli.evaluate.sample_runs import run_interrupted
from tests.command import Completed, evaltools, evaltools_here

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


def test_a_delegate_that_takes_nothing_is_not_measured(folder: Path, rounding_delegate: Path) -> None:
    delegate = f"--external_delegate_path={rounding_delegate}"
    completed = diff(folder / "whole.tflite", delegate)
    assert (completed.code, completed.out) == (3, "")
    assert "the EXTERNAL delegate was applied but took none of the 2 nodes" in completed.err
    allowed = diff(folder / "whole.tflite", delegate, "--allow_fallback=true")
    assert allowed.code == 0
    assert "FALLBACK: the EXTERNAL delegate was applied" in allowed.err


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


def test_a_picture_that_cannot_be_read_fails_its_run_alone(folder: Path, tmp_path: Path) -> None:
    sample = Path(__file__).resolve().parents[3] / "datasets" / "sample" / "images"
    for name in ("0001.jpg", "0003.jpg"):
        shutil.copy(sample / name, tmp_path / name)
    (tmp_path / "0002.jpg").write_bytes(b"no picture")
    flags = [f"--model_file={folder / 'model.tflite'}", f"--input_images={tmp_path}"]
    completed = evaltools_here("diff", *flags)
    assert completed.code == 4
    assert completed.out.startswith("INFO: Num evaluation runs: 2\n")
    assert "failed: run 1: 0002.jpg: " in completed.err
    stopped = evaltools_here("diff", *flags, "--compat=native")
    assert stopped.code == 4
    assert "stopped after 2 of 3 examples: an example failed, and the native tool stops there" in stopped.err


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
        ("--warmup_runs=-1", "--warmup_runs=-1: use 0 to 1000000"),
        ("--noise_floor_runs=x", "--noise_floor_runs=x: not a valid value; use a whole number"),
        ("--seed=0", "--seed=0: use a whole number of 1 or more"),
        ("--example_timeout=0", "--example_timeout=0: use a number of seconds above 0"),
        ("--max_avg_error=-1", "--max_avg_error=-1: use a number of 0 or more"),
        ("--max_quanta=1", "none is compared in quanta (scores: float32[1,12])"),
        ("--min_snr_db=score=1", "has no output 'score'; it has 'scores'. Did you mean scores?"),
        ("--input_range=1:0", "--input_range=1:0: use NAME:LOW:HIGH with LOW below HIGH"),
        ("--input_shape=input:1,16,16", "cannot have the shape 1,16,16"),
        ("--signature=main", "has no signature 'main'; it has none; leave --signature out"),
        ("--inputs=photo", "--inputs=photo: not an accepted value; use one of auto, noise, photos, both"),
        ("--input_images=/none", "--input_images=/none: no such folder"),
        ("--input_files=/none", "/none does not exist"),
        ("--reference=none", "--reference=none leaves nothing to compare with"),
        ("--load_reference=/none", "/none/manifest.json cannot be read"),
        ("--reference_model_file=/none", "/none cannot be read"),
        ("--allow_model_mismatc=true", "Did you mean --allow_model_mismatch?"),
        ("--output_file_path=/none/x.json", "the folder /none does not exist"),
        ("--config=test: kernels=builtin", "two configurations are named 'test'"),
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


def test_the_model_is_required_and_checked(folder: Path) -> None:
    assert "missing: --model_file=..." in evaltools("inference-diff").err
    completed = diff(folder / "text.npy")
    assert completed.code == 2
    assert "is no TensorFlow Lite model" in completed.err


def test_a_picture_without_an_input_for_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vector.tflite").write_bytes(tiny_models.vector_input())
    completed = diff(tmp_path / "vector.tflite", f"--input_images={tmp_path}")
    assert completed.code == 2
    wanted = "[1,height,width,3] or [1,height,width,1], the model has input: float32[1,16]"
    assert f"--input_images needs one input {wanted}" in completed.err
    assert f"--inputs=both needs one input {wanted}" in diff(tmp_path / "vector.tflite", "--inputs=both").err
    without = diff(tmp_path / "vector.tflite", "--normalization=unit")
    assert (without.code, without.out) == (2, "")
    assert "--normalization has no effect without --input_images or --inputs=photos" in without.err


def test_two_sources_for_one_input_are_refused(folder: Path) -> None:
    given = [f"--input_files=input={folder / 'nan.npy'}", "--input_range=input:0:1"]
    completed = diff(folder / "add.tflite", *given)
    assert completed.code == 2
    assert "--input_range and --input_files are both for the input" in completed.err


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


def test_saved_outputs_need_a_new_folder(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    completed = diff(folder / "add.tflite", f"--save_outputs={tmp_path}")
    assert completed.code == 2
    assert f"--save_outputs={tmp_path} is not empty; give a new folder" in completed.err


def test_a_reference_is_stated_once(folder: Path, tmp_path: Path) -> None:
    completed = diff(folder / "add.tflite", f"--load_reference={tmp_path}", "--reference=kernels=builtin")
    assert completed.code == 2
    assert "--reference has no effect with --load_reference=" in completed.err


def test_a_wait_of_years_is_no_error(folder: Path) -> None:
    assert diff(folder / "add.tflite", "--example_timeout=1e9").code == 0


def test_ctrl_c_ends_the_run_and_its_children_without_a_traceback(folder: Path) -> None:
    command = ["diff", f"--model_file={folder / 'model.tflite'}", "--num_runs=100000", "--noise_floor_runs=0"]
    completed = run_interrupted(command)
    assert completed.code == 130
    assert completed.err.startswith("reference ")
    assert completed.out.startswith("INFO: Num evaluation runs: ")
    assert " of 100000 examples: interrupted" in completed.err
    assert "Traceback" not in completed.err
