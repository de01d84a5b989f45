"""``evaltools imagenet``: what is written, and that nothing measured is lost."""

from __future__ import annotations

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

from evaltools.proto import message_class
from evaltools.result_file import read_result
from tests.cli.evaluate.sample_runs import run_interrupted
from tests.command import evaltools, evaltools_here
from tests.evaluation_set import EvaluationSet, make_evaluation_set


def test_json_validates_and_holds_the_same_figures(evaluation: EvaluationSet, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    flags = [
        "--use_xnnpack=false",
        "--config",
        "x: use_xnnpack=true",
        "--record_examples",
        f"--output_file_path={output}",
    ]
    completed = evaltools_here(*evaluation.flags(*flags))
    assert completed.code == 0, completed.err
    document = json.loads(output.read_text())
    schema = json.loads(files("evaltools.result").joinpath("result.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    assert [entry["name"] for entry in document["configurations"]] == ["reference", "test", "x"]
    assert document["configurations"][1]["figures"]["top1"] == pytest.approx(0.8)
    assert document["configurations"][1]["flags"] == ["--use_xnnpack=false"]
    assert document["configurations"][2]["delegates"][0]["name"] == "XNNPACK"
    assert document["configurations"][2]["delegates"][0]["nodes"] > 0
    assert [(c["baseline"], c["other"]) for c in document["part"]["comparisons"]] == [
        ("reference", "test"), ("reference", "x"), ("test", "x"),
    ]  # fmt: skip
    answers = document["part"]["examples"][7]["answers"]
    assert answers["test"]["classes"][0] == evaluation.answers[7]
    assert answers["test"]["rank"] == 0
    assert len(answers["x"]["scores"]) == 10
    assert document["model"]["sha256"]
    assert document["environment"]["command"][:2] == ["evaltools", "imagenet"]
    assert read_result(output).part.data.example_count == 30


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
    assert [entry.finished_examples for entry in result.configurations] == [result.examples_done] * 2


@pytest.mark.once
def test_a_full_disk_still_prints_the_figures(evaluation: EvaluationSet) -> None:
    completed = evaltools(*evaluation.flags("--use_xnnpack=false", "--output_file_path=/dev/full"))
    assert completed.code == 5
    assert "Top-1 Accuracy: 0.8\n" in completed.out
    assert "/dev/full cannot be written: No space left on device" in completed.err


@pytest.mark.once
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
        completed = evaltools_here(*copied.flags(*flags, f"--output_file_path={target}"))
        assert completed.code == 2
        assert "would overwrite an input of this run" in completed.err
        assert target.read_bytes() == before
    for ending in (".jpg", ".txt", ""):
        completed = evaltools_here(*copied.flags(f"--output_file_path={copied.folder}/x{ending}"))
        assert completed.code == 2
        assert f"the ending {ending or '(none)'} says no format; use .json" in completed.err


def test_what_was_asked_and_what_ran_are_told_apart_after_a_fallback(evaluation: EvaluationSet, tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    flags = [
        "--runtime=litert",
        "--use_xnnpack",
        "--xnnpack_force_fp16",
        "--allow_fallback",
        f"--output_file_path={output}",
    ]
    assert evaltools_here(*evaluation.flags(*flags)).code == 0
    asked_for, added = read_result(output).configurations[1].delegates
    assert (asked_for.requested, asked_for.options["xnnpack_force_fp16"], asked_for.nodes) == (True, True, None)
    assert (added.requested, added.options["xnnpack_force_fp16"]) == (False, False)
    assert added.nodes is not None


def test_stdout_is_no_result_file(evaluation: EvaluationSet) -> None:
    completed = evaltools_here(*evaluation.flags("--output_file_path=/dev/stdout"))
    assert completed.code == 2
    assert "is stdout, which carries the native lines" in completed.err
