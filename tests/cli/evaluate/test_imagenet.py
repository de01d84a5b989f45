"""``evaltools imagenet`` end to end: figures, kinds of models and pictures."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from PIL import Image

from evaltools.proto import message_class
from evaltools.result_file import read_result
from tests.cli.evaluate.sample_runs import run_interrupted
from tests.command import evaltools, evaltools_here
from tests.evaluation_set import EvaluationSet, make_evaluation_set


def test_the_labels_are_those_beside_the_model(evaluation: EvaluationSet) -> None:
    given = [flag for flag in evaluation.flags("--use_xnnpack=false") if not flag.startswith("--model_output_labels")]
    completed = evaltools_here(*given)
    assert completed.code == 0, completed.err
    assert "INFO: Top-1 Accuracy: 0.8" in completed.out
    assert evaluation.labels == evaluation.model.parent / "labels.txt"
    assert f"found with the model: --model_output_labels={evaluation.labels}" in completed.err


def test_denylist_then_num_images(copied: EvaluationSet) -> None:
    """Numbers 1..6 are the pictures with wrong labels; without them all answers are right."""
    denylist = copied.folder / "deny.txt"
    denylist.write_text("".join(f"{number}\n" for number in range(1, 7)))
    completed = evaltools_here(
        *copied.flags("--use_xnnpack=false", f"--denylist_file_path={denylist}", "--num_images=10")
    )
    assert "Num evaluation runs: 10\n" in completed.out
    assert "Top-1 Accuracy: 1\n" in completed.out


@pytest.mark.parametrize(
    "types",
    [
        {"output_rank": 4},
        {"input_dtype": "int16", "output_dtype": "int16"},
        {"input_dtype": "uint8", "output_dtype": "float32"},
        {"input_dtype": "int8", "output_dtype": "int8"},
    ],
)
def test_every_type_and_output_rank_is_evaluated(tmp_path: Path, types: dict[str, object]) -> None:
    evaluation = make_evaluation_set(tmp_path, 30, 6, **types)
    completed = evaltools_here(*evaluation.flags("--use_xnnpack=false", "--reference=none"))
    assert completed.code == 0, completed.err
    assert "Top-1 Accuracy: 0.8\n" in completed.out


def test_native_compatibility_reads_the_output_with_the_inputs_type(tmp_path: Path) -> None:
    evaluation = make_evaluation_set(tmp_path / "a", 30, 0, input_dtype="uint8", output_dtype="float32")
    native = evaltools_here(*evaluation.flags("--use_xnnpack=false", "--compat=native"))
    assert native.code == 0
    assert "Top-1 Accuracy: 1\n" not in native.out
    other = make_evaluation_set(tmp_path / "b", 30, 0, input_dtype="float32", output_dtype="uint8")
    refused = evaltools_here(*other.flags("--compat=native"))
    assert refused.code == 2
    assert "reads beyond its end" in refused.err


@pytest.mark.once
def test_a_run_imports_nothing_that_only_pages_baselines_or_other_tasks_need(evaluation: EvaluationSet) -> None:
    """So that a short run is short: each of these takes as long to import as some pictures to evaluate."""
    completed = evaltools(*evaluation.flags("--num_images=2"), environment={"PYTHONPROFILEIMPORTTIME": "1"})
    imported = {line.rpartition("|")[2].strip() for line in completed.err.splitlines() if line.startswith("import")}
    assert "evaltools.tasks.framework.topk_report" in imported
    unneeded = {"report.page.make", "report.files.plot", "gates.baseline", "result.benchmark", "locate.rows"}
    unneeded |= {"metrics.output_difference", "tasks.coco.result"}
    assert {f"evaltools.{name}" for name in unneeded} & imported == set()


def test_labels_may_come_from_a_pipe(evaluation: EvaluationSet, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    flags = [flag for flag in evaluation.flags("--use_xnnpack=false") if "ground_truth_labels" not in flag]
    command = shlex.join([sys.executable, "-m", "evaltools.cli.main", *flags, f"--output_file_path={output}"])
    script = f"{command} --ground_truth_labels=<(cat {evaluation.truths})"
    completed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120)
    assert completed.returncode == 0, completed.stderr
    expected = hashlib.sha256(evaluation.truths.read_bytes()).hexdigest()
    assert read_result(output).given["ground truth"] == expected[:12]


def test_a_truth_that_is_shifted_by_a_line_is_no_mere_low_figure(copied: EvaluationSet) -> None:
    lines = copied.truths.read_text().splitlines()
    copied.truths.write_text("\n".join([*lines[1:], lines[0]]) + "\n")
    completed = evaltools_here(*copied.flags("--use_xnnpack=false", "--label_check=false"))
    assert completed.code == 0, completed.err
    assert (
        "of 30 first answers are right, no more than of answers that know nothing of the examples; see" in completed.err
    )


def test_a_label_count_that_does_not_fit_the_pictures(copied: EvaluationSet) -> None:
    copied.truths.write_text("class1\n")
    completed = evaltools_here(*copied.flags())
    assert completed.code == 2
    assert "has 30 pictures" in completed.err
    assert "has 1 lines" in completed.err


def test_the_native_tool_stops_at_the_first_picture_that_fails(copied: EvaluationSet) -> None:
    (copied.images / "000.png").write_bytes(b"")
    completed = evaltools_here(*copied.flags("--use_xnnpack=false", "--compat=native"))
    assert completed.code == 4
    assert "stopped after 1 of 30 examples: an example failed, and the native tool stops there" in completed.err


def test_a_damaged_jpeg_fails_with_its_reason_and_counts_for_the_native_tool_alone(copied: EvaluationSet) -> None:
    """A third of the file, properly ended, of which libjpeg-turbo makes a picture that is grey below."""
    pytest.importorskip("simplejpeg", reason="no simplejpeg for this platform")
    png = copied.images / "000.png"
    with Image.open(png) as picture:
        picture.convert("RGB").resize((200, 200)).save(png.with_suffix(".jpg"), quality=95)
    png.unlink()
    whole = png.with_suffix(".jpg").read_bytes()
    png.with_suffix(".jpg").write_bytes(whole[: len(whole) // 3] + b"\xff\xd9")
    completed = evaltools_here(*copied.flags("--use_xnnpack=false"))
    assert completed.code == 4
    assert "000.jpg: is damaged, says libjpeg-turbo: Corrupt JPEG data: premature end of data segment" in completed.err
    assert "INFO: Num evaluation runs: 29" in completed.out
    native = evaltools_here(*copied.flags("--use_xnnpack=false", "--compat=native"))
    assert native.code == 0, native.err
    assert "INFO: Num evaluation runs: 30" in native.out


def test_json_validates_and_has_the_answers_to_each_example(evaluation: EvaluationSet, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    flags = ("--use_xnnpack=false", "--config", "x: use_xnnpack=true", "--record_examples", f"--output={output}")
    completed = evaltools_here(*evaluation.flags(*flags))
    assert completed.code == 0, completed.err
    document = json.loads(output.read_text())
    schema = json.loads(files("evaltools.result").joinpath("result.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    answers = document["tables"]["examples"]
    assert answers["configuration"][21:24] == ["reference", "test", "x"]
    assert answers["classes"][22][0] == answers["answer_index"][22] == evaluation.answers[7]
    assert answers["answer"][22] == f"class{evaluation.answers[7]}"
    assert answers["rank"][22] == 0
    assert len(answers["scores"][23]) == 10
    assert document["models"][0]["sha256"]
    assert read_result(output).example_count == 30


def test_proto_of_each_configuration_parses_and_holds_the_printed_figures(
    evaluation: EvaluationSet, tmp_path: Path
) -> None:
    output = tmp_path / "out.pb"
    flags = ["--use_xnnpack=false", "--config", "the other one: use_xnnpack=true", f"--output_file_path={output}"]
    assert evaltools_here(*evaluation.flags(*flags)).code == 0
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


def test_ctrl_c_reports_what_was_measured(tmp_path: Path) -> None:
    evaluation = make_evaluation_set(tmp_path / "set", 30, 0)
    names = [f"{index:05d}.png" for index in range(3000)]
    for name in names:
        os.link(evaluation.images / "000.png", evaluation.images / f"x{name}")
    with evaluation.truths.open("a") as truths:
        truths.write(f"class{evaluation.answers[0]}\n" * len(names))
    output = tmp_path / "result.json"
    flags = ("--use_xnnpack=false", "--kernels=reference", "--progress=json", f"--output_file_path={output}")
    completed = run_interrupted(evaluation.flags(*flags))
    assert completed.code == 130, completed.err
    assert "Traceback" not in completed.err
    assert "examples: interrupted" in completed.err
    assert "Top-1 Accuracy: 1\n" in completed.out
    result = read_result(output)
    assert (result.complete, result.stopped) == (False, "interrupted")
    told = [json.loads(line)["done"] for line in completed.err.splitlines() if line.startswith("{")]
    assert 3 <= told[-1] == result.examples_done < len(names)
    assert [entry.finished_examples for entry in result.rows] == [result.examples_done] * 2


@pytest.mark.once
@pytest.mark.parametrize("redirection", ["2>&-", "2>&1 | true"])
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
        (min(copied.images.iterdir()), ["--output_format=json"]),
    ):
        before = target.read_bytes()
        completed = evaltools_here(*copied.flags(*flags, f"--output_file_path={target}"))
        assert completed.code == 2
        assert "would overwrite an input of this run" in completed.err
        assert target.read_bytes() == before


def test_fallback_is_measured_when_allowed_and_named(evaluation: EvaluationSet) -> None:
    completed = evaltools_here(*evaluation.flags("--use_nnapi=true", "--allow_fallback=true"))
    assert completed.code == 0
    assert "Top-1 Accuracy: 0.8" in completed.out
    assert "FALLBACK: the NNAPI delegate cannot be created" in completed.err


def test_too_many_failures_stop_the_run(copied: EvaluationSet) -> None:
    for index in range(5, 9):
        (copied.images / f"00{index}.png").write_bytes(b"")
    completed = evaltools_here(*copied.flags("--max_failed_examples=2"))
    assert completed.code == 4
    assert "stopped after 8 of 30 examples: more than --max_failed_examples=2 examples failed" in completed.err


def test_a_label_list_without_the_background_line(copied: EvaluationSet) -> None:
    lines = copied.labels.read_text().splitlines()
    copied.labels.write_text("\n".join(lines[1:]) + "\n")
    completed = evaltools_here(*copied.flags())
    assert completed.code == 2
    assert "has 11 lines, the model's output has 12" in completed.err
    assert "--label_offset=1" in completed.err
    fixed = evaltools_here(*copied.flags("--label_offset=1", "--use_xnnpack=false"))
    assert copied.answers[6:].count(0) == 1, "the one picture whose label is missing now"
    assert f"Top-1 Accuracy: {23 / 30:g}\n" in fixed.out
