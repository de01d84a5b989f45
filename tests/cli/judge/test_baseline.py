"""``evaltools baseline`` on results of the sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from junitparser import JUnitXml
from msgspec.structs import replace

from evaltools.cli.judge.baseline_run import default_name
from evaltools.datasets import sample
from tests.command import Completed, evaltools_here
from tests.results import configuration, result


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a.json and b.json of 40 pictures, with another name of the test configuration."""
    folder = tmp_path_factory.mktemp("results")
    common = (
        f"--model_file={sample.model_file('int8')}",
        f"--ground_truth_images_path={sample.images_dir()}",
        f"--ground_truth_labels={sample.ground_truth_file()}",
        f"--model_output_labels={sample.labels_file()}",
        "--num_images=40",
        "--record_examples",
    )
    one = evaltools_here(
        "imagenet", *common, "--config=xnnpack: use_xnnpack=true", f"--output_file_path={folder / 'a.json'}"
    )
    assert one.code == 0, one.err
    two = evaltools_here(
        "imagenet", *common, "--config=other: use_xnnpack=true", f"--output_file_path={folder / 'b.json'}"
    )
    assert two.code == 0, two.err
    return folder


def baseline(action: str, result: Path, file: Path) -> Completed:
    return evaltools_here("baseline", action, str(result), f"--baseline_file={file}")


def test_a_result_is_no_worse_than_itself(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    saved = baseline("save", results / "a.json", file)
    assert (saved.code, saved.err.strip()) == (
        0,
        f"{file} saved: imagenet of int8.tflite, 40 examples, reference, xnnpack",
    )
    same = baseline("diff", results / "a.json", file)
    assert same.code == 0, same.out
    assert "are the same number as before" in same.out
    assert "WORSE" not in same.out
    assert file.stat().st_size < 10_000


def test_what_became_worse_is_exit_code_1(results: Path, tmp_path: Path) -> None:
    document = json.loads((results / "a.json").read_text())
    for example in document["part"]["examples"][:12]:
        example["answers"]["xnnpack"]["rank"] = None
    test = next(entry for entry in document["configurations"] if entry["name"] == "xnnpack")
    test["figures"]["top1"] -= 0.3
    (tmp_path / "worse.json").write_text(json.dumps(document))
    file = tmp_path / "baseline.json"
    baseline("save", results / "a.json", file)
    found = baseline("diff", tmp_path / "worse.json", file)
    assert found.code == 1
    assert "xnnpack: top1 WORSE by " in found.out
    assert "WORSE: xnnpack: top1 " in found.out
    updated = baseline("update", tmp_path / "worse.json", file)
    assert (updated.code, "WORSE: xnnpack: top1 " in updated.out) == (0, True)
    assert baseline("diff", tmp_path / "worse.json", file).code == 0


def test_a_figure_that_has_no_number_any_more_is_worse(results: Path, tmp_path: Path) -> None:
    document = json.loads((results / "a.json").read_text())
    test = next(entry for entry in document["configurations"] if entry["name"] == "xnnpack")
    test["figures"]["top5"] = None
    (tmp_path / "gone.json").write_text(json.dumps(document))
    file = tmp_path / "baseline.json"
    baseline("save", results / "a.json", file)
    found = baseline("diff", tmp_path / "gone.json", file)
    assert (found.code, "WORSE: xnnpack: top5 1 -> no number\n" in found.out) == (1, True), found.out
    assert baseline("update", tmp_path / "gone.json", file).code == 0


def test_a_configuration_that_is_missing_is_exit_code_3(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    baseline("save", results / "a.json", file)
    found = baseline("diff", results / "b.json", file)
    assert found.code == 3
    assert "NOT MEASURED now: xnnpack" in found.out


def test_wrong_words_and_files(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    assert "give an action and a result first" in evaltools_here("baseline").err
    assert "Did you mean save?" in evaltools_here("baseline", "sav", "r.json").err
    assert "evaltools baseline save makes it" in baseline("diff", results / "a.json", file).err
    assert "cannot be read" in baseline("save", tmp_path / "none.json", file).err
    baseline("save", results / "a.json", file)
    again = baseline("save", results / "a.json", file)
    assert (again.code, "evaltools baseline update replaces it" in again.err) == (2, True)
    other = json.loads(file.read_text())
    (tmp_path / "other.json").write_text(json.dumps(other | {"task": "coco", "subject": "coco"}))
    assert "is about coco of int8.tflite" in baseline("diff", results / "a.json", tmp_path / "other.json").err
    no_effect = evaltools_here("baseline", "save", str(results / "a.json"), f"--junit={tmp_path / 'j.xml'}")
    assert "--junit has no effect: evaltools baseline save judges nothing" in no_effect.err
    assert "--margin=3: use a share" in evaltools_here("baseline", "diff", "r.json", "--margin=3").err


def test_a_renamed_model_is_told_and_compared(results: Path, tmp_path: Path) -> None:
    file, renamed = tmp_path / "baseline.json", json.loads((results / "a.json").read_text())
    baseline("save", results / "a.json", file)
    renamed["model"]["file"] = "another.tflite"
    (tmp_path / "renamed.json").write_text(json.dumps(renamed))
    found = baseline("diff", tmp_path / "renamed.json", file)
    assert found.code == 0, found.err
    assert "the model is called another.tflite now, int8.tflite then; it is the same" in found.out
    renamed["model"]["sha256"] = "00"
    (tmp_path / "renamed.json").write_text(json.dumps(renamed))
    found = baseline("diff", tmp_path / "renamed.json", file)
    assert "another model file: int8.tflite then, another.tflite now, with other content" in found.out


def test_the_verdicts_are_written_for_ci(results: Path, tmp_path: Path) -> None:
    document = json.loads((results / "a.json").read_text())
    entry = next(entry for entry in document["configurations"] if entry["name"] == "xnnpack")
    entry["figures"]["top10"] -= 0.3
    for example in document["part"]["examples"][:12]:
        example["answers"]["xnnpack"]["rank"] = None
    (tmp_path / "worse.json").write_text(json.dumps(document))
    file, junit, page = (tmp_path / name for name in ("baseline.json", "j.xml", "page.md"))
    baseline("save", results / "a.json", file)
    flags = (f"--baseline_file={file}", f"--junit={junit}", f"--markdown={page}", f"--json={tmp_path / 'v.json'}")
    found = evaltools_here("baseline", "diff", str(tmp_path / "worse.json"), *flags)
    assert found.code == 1, found.err
    suites = JUnitXml.fromfile(str(junit))
    assert (suites.name, suites.failures, suites.errors) == ("evaltools baseline", found.out.count("\nWORSE: "), 0)
    assert suites.failures > 0
    assert page.read_text().startswith(f"### evaltools baseline: {suites.failures} failed, ")
    assert "| worse | xnnpack | top10 no worse than 100 %, beyond chance | 70 % | **fail** |" in page.read_text()
    shown = [path.read_text() for path in (junit, page, tmp_path / "v.json")]
    assert not any("latency" in text or "peak_memory" in text for text in shown), "they differ from run to run"
    verdicts = json.loads((tmp_path / "v.json").read_text())
    assert (verdicts["command"], verdicts["verdict"]) == ("baseline", "fail")
    missing = evaltools_here("baseline", "diff", str(results / "b.json"), *flags)
    assert missing.code == 3
    assert "| b | xnnpack | measured again |  | **not measured** |" in page.read_text()
    assert evaltools_here("baseline", "update", str(results / "b.json"), *flags).code == 0


def test_limits_may_be_set_on_what_changed(results: Path, tmp_path: Path) -> None:
    document = json.loads((results / "a.json").read_text())
    entry = next(entry for entry in document["configurations"] if entry["name"] == "xnnpack")
    entry["inference_latency"]["p50_us"] *= 2
    (tmp_path / "slow.json").write_text(json.dumps(document))
    file, verdicts = tmp_path / "baseline.json", tmp_path / "v.json"
    baseline("save", results / "a.json", file)

    def diff(*limits: str) -> Completed:
        flags = (f"--baseline_file={file}", f"--json={verdicts}")
        stated = [word for limit in limits for word in ("--limit", limit)]
        return evaltools_here("baseline", "diff", str(tmp_path / "slow.json"), *flags, *stated)

    assert diff().code == 0
    assert diff("latency ratio <= 2.1", "agreement >= 0.5").code == 0
    broken = diff("latency ratio <= 1.2", "agreement drop <= 1 point", "top1 drop <= 0.1 points at 95 %")
    assert broken.code == 1
    assert "1 failed, 1 inconclusive, 1 passed" in broken.out
    assert "latency ratio <= 1.2: fail: found latency ratio of medians 2" in broken.out
    decisions = json.loads(verdicts.read_text())["reports"][0]["decisions"]
    assert [entry["verdict"] for entry in decisions[-3:]] == ["fail", "pass", "inconclusive"]
    assert diff("top1 drop <= 0.1 points at 95 %").code == 6
    assert diff("latency ratio <= 3 at 95 %").code == 3
    assert "a result of imagenet has no snr_db" in diff("snr_db >= 30").err
    assert "'x' is no limit" in diff("x").err
    no_effect = evaltools_here("baseline", "save", str(results / "a.json"), "--limit=top1 >= 0.5")
    assert "--limit has no effect: evaltools baseline save judges nothing" in no_effect.err


def test_a_baseline_has_the_name_of_its_task_and_data_or_the_one_given(results: Path, tmp_path: Path) -> None:
    def baseline_here(action: str, *flags: str) -> Completed:
        return evaltools_here("baseline", action, str(results / "a.json"), *flags, cwd=tmp_path)

    first = baseline_here("diff")
    assert (first.code, "baselines/imagenet-images.json cannot be read" in first.err) == (2, True)
    assert baseline_here("save").code == 0
    assert baseline_here("save", "--name=phone").code == 0
    assert sorted(path.name for path in (tmp_path / "baselines").iterdir()) == ["imagenet-images.json", "phone.json"]
    assert baseline_here("diff").code == baseline_here("diff", "--name", "phone").code == 0
    again = baseline_here("save", "--name=phone")
    assert "baselines/phone.json exists; evaltools baseline update replaces it" in again.err
    missing = baseline_here("diff", "--name=tablet")
    assert missing.code == 2
    assert "there is no baselines/tablet.json; there are imagenet-images, phone. Give --name=NAME of one" in missing.err
    assert "letters, digits, '_', '-' and '.'" in baseline_here("diff", "--name=../x").err
    assert "leave one of the two out" in baseline_here("diff", "--name=x", "--baseline_file=y.json").err


def test_a_name_after_an_inference_diff_is_that_of_its_model() -> None:
    made = result(configuration("x"))
    renamed = replace(made, part=None, model=replace(made.model, file="models/a b.tflite"))
    assert default_name(renamed) == "imagenet-a_b"
