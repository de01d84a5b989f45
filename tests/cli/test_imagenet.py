"""``evaltools imagenet`` end to end: figures, files, exit codes."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from PIL import Image

from evaltools.proto import message_class
from evaltools.report.json_file import read_result
from tests.command import evaltools
from tests.evaluation_set import EvaluationSet, make_evaluation_set


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> EvaluationSet:
    """30 pictures, 6 of them with a wrong label: Top-1 is 0.8 on builtin kernels."""
    return make_evaluation_set(tmp_path_factory.mktemp("evaluation"))


@pytest.fixture
def copied(evaluation: EvaluationSet, tmp_path: Path) -> EvaluationSet:
    """The same, to be damaged by a test."""
    folder = tmp_path / "copy"
    shutil.copytree(evaluation.folder, folder)
    return EvaluationSet(
        folder=folder,
        model=folder / evaluation.model.name,
        images=folder / evaluation.images.name,
        labels=folder / evaluation.labels.name,
        truths=folder / evaluation.truths.name,
        answers=evaluation.answers,
    )


def test_the_native_lines_are_all_that_stdout_holds(evaluation: EvaluationSet) -> None:
    completed = evaltools(*evaluation.flags("--use_xnnpack=false"))
    assert completed.code == 0, completed.err
    lines = completed.out.splitlines()
    assert lines[0] == "INFO: Num evaluation runs: 30"
    assert lines[1].startswith("INFO: Preprocessing latency: avg=")
    assert lines[1].endswith("(us), std_dev=0(us)")
    assert lines[2].startswith("INFO: Inference latency: avg=")
    assert lines[3] == "INFO: Top-1 Accuracy: 0.8"
    assert [line.split(" Accuracy")[0] for line in lines[3:]] == [f"INFO: Top-{k}" for k in range(1, 11)]
    assert "reference" in completed.err
    assert "80.00 %" in completed.err
    assert "100.0 %" in completed.err


def test_json_validates_and_holds_the_same_figures(evaluation: EvaluationSet, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    flags = [
        "--use_xnnpack=false",
        "--config",
        "x: use_xnnpack=true",
        "--record_examples",
        f"--output_file_path={output}",
    ]
    completed = evaltools(*evaluation.flags(*flags))
    assert completed.code == 0, completed.err
    document = json.loads(output.read_text())
    schema = json.loads(files("evaltools.report").joinpath("result.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    assert [entry["name"] for entry in document["configurations"]] == ["reference", "test", "x"]
    assert document["configurations"][1]["classification"]["topk"]["accuracies"][0] == pytest.approx(0.8)
    assert document["configurations"][1]["flags"] == ["--use_xnnpack=false"]
    assert document["configurations"][2]["delegates"][0]["name"] == "XNNPACK"
    assert document["configurations"][2]["delegates"][0]["nodes"] > 0
    assert [(c["baseline"], c["other"]) for c in document["comparisons"]] == [
        ("reference", "test"), ("reference", "x"), ("test", "x"),
    ]  # fmt: skip
    answers = document["examples"][7]["answers"]
    assert answers["test"]["classes"][0] == evaluation.answers[7]
    assert answers["test"]["rank"] == 0
    assert len(answers["x"]["scores"]) == 10
    assert document["model"]["sha256"]
    assert document["environment"]["command"][:2] == ["evaltools", "imagenet"]
    assert read_result(output).data.example_count == 30


def test_proto_of_each_configuration_parses_and_holds_the_printed_figures(
    evaluation: EvaluationSet, tmp_path: Path
) -> None:
    output = tmp_path / "out.pb"
    flags = ["--use_xnnpack=false", "--config", "the other one: use_xnnpack=true", f"--output_file_path={output}"]
    assert evaltools(*evaluation.flags(*flags)).code == 0
    for path in (output, tmp_path / "out.the_other_one.pb"):
        message = message_class("EvaluationStageMetrics").FromString(path.read_bytes())
        metrics = message.process_metrics.image_classification_metrics
        assert message.num_runs == metrics.inference_metrics.num_inferences == 30
        assert len(metrics.topk_accuracy_metrics.topk_accuracies) == 10
        assert metrics.topk_accuracy_metrics.topk_accuracies[0] == np.float32(0.8)
        assert metrics.inference_latency.HasField("std_deviation_us")
        assert not metrics.pre_processing_latency.HasField("std_deviation_us")
        assert not message.process_metrics.HasField("total_latency")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.pb", "out.the_other_one.pb"]


def test_a_delegate_that_cannot_run_prints_no_accuracy(evaluation: EvaluationSet, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    completed = evaltools(*evaluation.flags("--use_gpu=true", f"--output_file_path={output}"))
    assert completed.code == 3
    assert completed.out == ""
    assert "not measured: the GPU delegate cannot be created" in completed.err
    result = read_result(output)
    assert [entry.status for entry in result.configurations] == ["not measured", "not measured"]
    assert not result.complete


def test_other_configurations_go_on_beside_one_that_cannot_run(evaluation: EvaluationSet) -> None:
    completed = evaltools(*evaluation.flags("--use_xnnpack=false", "--config", "gpu: use_gpu=true"))
    assert completed.code == 3
    assert "INFO: Configuration: test\n" in completed.out
    assert "gpu" not in completed.out
    assert "gpu" in completed.err


def test_fallback_is_measured_when_allowed_and_named(evaluation: EvaluationSet) -> None:
    completed = evaltools(*evaluation.flags("--use_gpu=true", "--allow_fallback=true"))
    assert completed.code == 0
    assert "Top-1 Accuracy: 0.8" in completed.out
    assert "FALLBACK: the GPU delegate cannot be created" in completed.err


def test_the_example_delegate_runs_and_is_proven(evaluation: EvaluationSet, rounding_delegate: Path) -> None:
    flags = [
        f"--external_delegate_path={rounding_delegate}",
        "--external_delegate_options=precision:bf16",
        "--use_xnnpack=false",
    ]
    completed = evaltools(*evaluation.flags(*flags))
    assert completed.code == 0, completed.err
    assert "EXTERNAL 3 of" in completed.err


def test_corrupt_pictures_are_listed_and_the_rest_is_measured(copied: EvaluationSet) -> None:
    (copied.images / "003.png").write_bytes(b"")
    (copied.images / "010.png").write_bytes((copied.images / "010.png").read_bytes()[:60])
    completed = evaltools(*copied.flags("--use_xnnpack=false"))
    assert completed.code == 4
    assert "INFO: Num evaluation runs: 28" in completed.out
    assert f"Top-1 Accuracy: {np.float32(23) / np.float32(28):g}" in completed.out
    assert "failed: 003.png: is no readable PNG picture" in completed.err
    assert "failed: 010.png: " in completed.err


def test_too_many_failures_stop_the_run(copied: EvaluationSet) -> None:
    for index in range(5, 9):
        (copied.images / f"00{index}.png").write_bytes(b"")
    completed = evaltools(*copied.flags("--max_failed_examples=2"))
    assert completed.code == 4
    assert "stopped after 8 of 30 examples: more than --max_failed_examples=2 examples failed" in completed.err


def test_an_example_that_fails_while_running_is_recorded(evaluation: EvaluationSet, rounding_delegate: Path) -> None:
    config = f"bad: external_delegate_path={rounding_delegate} external_delegate_options=fail:invoke"
    completed = evaltools(*evaluation.flags("--use_xnnpack=false", "--config", config))
    assert completed.code == 3
    assert "INFO: Configuration: test" in completed.out
    assert "(bad): " in completed.err
    assert "invoke fails, as option fail asks" in completed.err


def test_hidden_files_and_others_are_left_out_with_a_count(copied: EvaluationSet) -> None:
    (copied.images / ".DS_Store").write_bytes(b"x")
    (copied.images / "notes.txt").write_text("x")
    (copied.images / "sub.png").mkdir()
    completed = evaltools(*copied.flags("--use_xnnpack=false"))
    assert completed.code == 0, completed.err
    assert "Top-1 Accuracy: 0.8\n" in completed.out
    assert "2 files that are no pictures were left out, such as '.DS_Store'" in completed.err


def test_denylist_then_num_images(copied: EvaluationSet) -> None:
    """Numbers 1..6 are the pictures with wrong labels; without them all answers are right."""
    denylist = copied.folder / "deny.txt"
    denylist.write_text("".join(f"{number}\n" for number in range(1, 7)))
    completed = evaltools(*copied.flags("--use_xnnpack=false", f"--denylist_file_path={denylist}", "--num_images=10"))
    assert "Num evaluation runs: 10\n" in completed.out
    assert "Top-1 Accuracy: 1\n" in completed.out


def test_windows_line_ends_match_unless_native(copied: EvaluationSet) -> None:
    copied.labels.write_bytes(b"\xef\xbb\xbf" + copied.labels.read_bytes().replace(b"\n", b"\r\n"))
    assert "Top-1 Accuracy: 0.8\n" in evaltools(*copied.flags("--use_xnnpack=false")).out
    assert "Top-1 Accuracy: 0\n" in evaltools(*copied.flags("--use_xnnpack=false", "--compat=native")).out


@pytest.mark.parametrize(
    "types",
    [
        {"output_rank": 4},
        {"input_dtype": "float16", "output_dtype": "float16"},
        {"input_dtype": "int16", "output_dtype": "int16"},
        {"input_dtype": "uint8", "output_dtype": "float32"},
        {"input_dtype": "float32", "output_dtype": "uint8"},
        {"input_dtype": "int8", "output_dtype": "int8"},
    ],
)
def test_every_type_and_output_rank_is_evaluated(tmp_path: Path, types: dict[str, object]) -> None:
    evaluation = make_evaluation_set(tmp_path, 30, 6, **types)
    completed = evaltools(*evaluation.flags("--use_xnnpack=false", "--reference=none"))
    assert completed.code == 0, completed.err
    assert "Top-1 Accuracy: 0.8\n" in completed.out


def test_native_compatibility_reads_the_output_with_the_inputs_type(tmp_path: Path) -> None:
    evaluation = make_evaluation_set(tmp_path / "a", 30, 0, input_dtype="uint8", output_dtype="float32")
    native = evaltools(*evaluation.flags("--use_xnnpack=false", "--compat=native"))
    assert native.code == 0
    assert "Top-1 Accuracy: 1\n" not in native.out
    other = make_evaluation_set(tmp_path / "b", 30, 0, input_dtype="float32", output_dtype="uint8")
    refused = evaltools(*other.flags("--compat=native"))
    assert refused.code == 2
    assert "reads beyond its end" in refused.err


def test_fewer_than_ten_classes_print_fewer_lines(copied: EvaluationSet) -> None:
    from tests import tiny_models

    copied.model.write_bytes(tiny_models.classifier(classes=3))
    copied.labels.write_text("a\nb\nc\n")
    copied.truths.write_text("a\nb\nc\n" * 10)
    completed = evaltools(*copied.flags("--label_check=false"))
    assert completed.code == 0, completed.err
    assert len([line for line in completed.out.splitlines() if "Accuracy" in line]) == 3
    assert "Top-3 Accuracy: 1\n" in completed.out
    assert evaltools(*copied.flags("--compat=native")).code == 2


def test_a_label_list_without_the_background_line(copied: EvaluationSet) -> None:
    lines = copied.labels.read_text().splitlines()
    copied.labels.write_text("\n".join(lines[1:]) + "\n")
    completed = evaltools(*copied.flags())
    assert completed.code == 2
    assert "has 11 lines, the model's output has 12" in completed.err
    assert "--label_offset=1" in completed.err
    fixed = evaltools(*copied.flags("--label_offset=1", "--use_xnnpack=false"))
    assert copied.answers[6:].count(0) == 1, "the one picture whose label is missing now"
    assert f"Top-1 Accuracy: {23 / 30:g}\n" in fixed.out


def test_ctrl_c_reports_what_was_measured(tmp_path: Path) -> None:
    evaluation = make_evaluation_set(tmp_path / "set", 30, 0)
    names = [f"{index:05d}.png" for index in range(30_000)]
    for name in names:
        os.link(evaluation.images / "000.png", evaluation.images / f"x{name}")
    with evaluation.truths.open("a") as truths:
        truths.write(f"class{evaluation.answers[0]}\n" * len(names))
    output = tmp_path / "result.json"
    command = [
        sys.executable,
        "-m",
        "evaltools.cli.main",
        *evaluation.flags("--use_xnnpack=false", "--kernels=reference"),
    ]
    process = subprocess.Popen(
        [*command, f"--output_file_path={output}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    while not process.stderr.readline().startswith("test "):
        assert process.poll() is None
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "examples: interrupted" in err
    assert "Top-1 Accuracy: 1\n" in out
    result = read_result(output)
    assert not result.complete


def test_the_result_is_written_even_where_nobody_reads_stdout(evaluation: EvaluationSet, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    command = shlex.join([sys.executable, "-m", "evaltools.cli.main", *evaluation.flags("--use_xnnpack=false")])
    script = f"({command} --output_file_path={output}; echo code $? >&2) | true"
    completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert "code 0" in completed.stderr
    assert "Traceback" not in completed.stderr
    assert read_result(output).complete


def test_a_full_disk_still_prints_the_figures(evaluation: EvaluationSet) -> None:
    completed = evaltools(*evaluation.flags("--use_xnnpack=false", "--output_file_path=/dev/full"))
    assert completed.code == 5
    assert "Top-1 Accuracy: 0.8\n" in completed.out
    assert "/dev/full cannot be written: No space left on device" in completed.err


def test_labels_may_come_from_a_pipe(evaluation: EvaluationSet, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    flags = [flag for flag in evaluation.flags("--use_xnnpack=false") if "ground_truth_labels" not in flag]
    command = shlex.join([sys.executable, "-m", "evaltools.cli.main", *flags, f"--output_file_path={output}"])
    script = f"{command} --ground_truth_labels=<(cat {evaluation.truths})"
    completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert completed.returncode == 0, completed.stderr
    expected = hashlib.sha256(evaluation.truths.read_bytes()).hexdigest()
    assert read_result(output).data.ground_truth_sha256 == expected


def test_the_native_tool_stops_at_the_first_picture_that_fails(copied: EvaluationSet) -> None:
    (copied.images / "000.png").write_bytes(b"")
    completed = evaltools(*copied.flags("--use_xnnpack=false", "--compat=native"))
    assert completed.code == 4
    assert "stopped after 1 of 30 examples: an example failed, and the native tool stops there" in completed.err


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2>&1 | true"])
def test_the_result_is_written_even_where_stderr_is_gone(
    evaluation: EvaluationSet, tmp_path: Path, redirection: str
) -> None:
    output = tmp_path / "result.json"
    command = shlex.join([sys.executable, "-m", "evaltools.cli.main", *evaluation.flags("--use_xnnpack=false")])
    script = f"{command} --output_file_path={output} {redirection}"
    completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert completed.returncode == 0
    assert read_result(output).complete


def test_an_input_is_never_overwritten(copied: EvaluationSet, rounding_delegate: Path) -> None:
    configs = copied.folder / "configs.json"
    configs.write_text('{"a": "use_xnnpack=false"}')
    library = copied.folder / "delegate.json"
    shutil.copy(rounding_delegate, library)
    for target, flags in (
        (copied.labels, []),
        (copied.truths, []),
        (copied.model, []),
        (configs, [f"--configs={configs}"]),
        (library, [f"--config=x: external_delegate_path={library}"]),
    ):
        before = target.read_bytes()
        completed = evaltools(*copied.flags(*flags, f"--output_file_path={target}"))
        assert completed.code == 2
        assert "would overwrite an input of this run" in completed.err
        assert target.read_bytes() == before
    assert "has the ending of a picture" in evaltools(*copied.flags(f"--output_file_path={copied.folder}/x.jpg")).err


def test_stdout_is_no_result_file(evaluation: EvaluationSet) -> None:
    completed = evaltools(*evaluation.flags("--output_file_path=/dev/stdout"))
    assert completed.code == 2
    assert "is stdout, which carries the native lines" in completed.err


@pytest.mark.parametrize("flag", ["output_file_path", "model_file", "external_delegate_path", "ground_truth_labels"])
def test_a_name_that_no_system_takes_is_refused(evaluation: EvaluationSet, flag: str) -> None:
    flags = [given for given in evaluation.flags() if not given.startswith(f"--{flag}=")]
    completed = evaltools(*flags, f"--{flag}=/tmp/{'x' * 300}.json")
    assert completed.code in (2, 5)
    assert "Traceback" not in completed.err


def test_a_link_to_itself_is_refused(copied: EvaluationSet) -> None:
    (copied.folder / "loop.json").symlink_to(copied.folder / "loop.json")
    completed = evaltools(*copied.flags(f"--output_file_path={copied.folder}/loop.json"))
    assert completed.code in (2, 5)
    assert "Traceback" not in completed.err


def test_what_was_asked_and_what_ran_are_told_apart_after_a_fallback(evaluation: EvaluationSet, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    flags = ["--use_xnnpack", "--xnnpack_force_fp16", "--allow_fallback", f"--output_file_path={output}"]
    assert evaltools(*evaluation.flags(*flags)).code == 0
    asked_for, added = read_result(output).configurations[1].delegates
    assert (asked_for.requested, asked_for.options["xnnpack_force_fp16"], asked_for.nodes) == (True, True, None)
    assert (added.requested, added.options["xnnpack_force_fp16"]) == (False, False)
    assert added.nodes is not None


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--use_xnpack=true", "--use_xnpack=true: no such flag. Did you mean --use_xnnpack?"),
        ("--num_image=3", "Did you mean --num_images?"),
        ("--num_images=3x", "--num_images=3x: not a valid value; use a whole number"),
        ("stray", "'stray' is no flag"),
        ("-use_gpu=true", "flags start with two dashes: --use_gpu=true"),
        ("--delegate=gpuu", "Did you mean gpu?"),
        ("--config=x", 'expected "NAME: flag=value flag=value"'),
        ("--config=test: use_xnnpack=false", "two configurations are named 'test'; give each its own name"),
        ("--configs=/none.yaml", "--configs=/none.yaml cannot be read"),
        ("--reference=use_gpuu", "configuration 'reference': "),
        ("--normalization=wrong", "normalization 'wrong' is not understood"),
        ("--output_file_path=/none/x.json", "the folder /none does not exist"),
        ("--output_file_path=/tmp", "is a folder; give a file name"),
        ("--denylist_file_path=/none", "--denylist_file_path=/none: no such file"),
        ("--compat=nativ", "Did you mean native?"),
        ("--external_delegate_path=/none.so", "--external_delegate_path=/none.so: no such file"),
    ],
)
def test_wrong_flags_are_one_message_and_exit_code_2(evaluation: EvaluationSet, flag: str, message: str) -> None:
    completed = evaltools(*evaluation.flags("--use_xnnpack=false", flag))
    assert completed.code == 2
    assert completed.out == ""
    assert "Traceback" not in completed.err
    assert message in completed.err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model", "model.tflite is empty"),
        ("labels", "labels.txt is empty"),
        ("truths", "truths.txt is empty"),
    ],
)
def test_empty_files_are_refused(copied: EvaluationSet, name: str, message: str) -> None:
    getattr(copied, name).write_bytes(b"")
    completed = evaltools(*copied.flags())
    assert completed.code == 2
    assert message in completed.err


def test_an_empty_folder_is_refused(copied: EvaluationSet) -> None:
    shutil.rmtree(copied.images)
    assert "no such folder" in evaltools(*copied.flags()).err
    copied.images.mkdir()
    completed = evaltools(*copied.flags())
    assert completed.code == 2
    assert "has no pictures (no files)" in completed.err


def test_a_label_count_that_does_not_fit_the_pictures(copied: EvaluationSet) -> None:
    copied.truths.write_text("class1\n")
    completed = evaltools(*copied.flags())
    assert completed.code == 2
    assert "has 30 pictures" in completed.err
    assert "has 1 lines" in completed.err


def test_missing_flags_are_named() -> None:
    completed = evaltools("imagenet", "--model_file=x")
    assert completed.code == 2
    assert (
        "missing: --ground_truth_images_path=... --ground_truth_labels=... --model_output_labels=..." in completed.err
    )


def test_raw_pictures_of_the_models_size_are_neither_cropped_nor_resized(copied: EvaluationSet) -> None:
    """A picture of 16x16 pixels in one colour looks the same cropped and whole, so both kinds get the same answer."""
    chance = np.random.default_rng(3)
    for path in copied.images.iterdir():
        colour = chance.integers(0, 256, 3, np.uint8)
        picture = np.broadcast_to(colour, (16, 16, 3))
        Image.fromarray(np.ascontiguousarray(picture)).save(path)
        path.with_name(f"{path.stem}_raw.rgb8").write_bytes(picture.tobytes())
    truths = copied.truths.read_text().splitlines()
    copied.truths.write_text("".join(f"{truth}\n{truth}\n" for truth in truths))
    output = copied.folder / "result.json"
    flags = ["--use_xnnpack=false", "--reference=none", "--label_check=false", "--record_examples"]
    completed = evaltools(*copied.flags(*flags, f"--output_file_path={output}"))
    assert completed.code == 0, completed.err
    examples = read_result(output).examples
    assert examples is not None
    assert [entry.example for entry in examples[:2]] == ["000.png", "000_raw.rgb8"]
    for decoded, raw in zip(examples[::2], examples[1::2], strict=True):
        assert decoded.answers["test"].scores == raw.answers["test"].scores


def test_pictures_of_other_kinds_go_through(copied: EvaluationSet) -> None:
    Image.open(copied.images / "020.png").convert("L").save(copied.images / "020.png")
    completed = evaltools(*copied.flags("--use_xnnpack=false"))
    assert completed.code == 0
