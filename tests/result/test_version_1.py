"""Files that version 1 wrote, of each task: what they say is still known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltools.errors import DataError
from evaltools.gates.check import evidence_of
from evaltools.report.words.verdicts import change_in_words, outputs_in_words, reasons_in_words
from evaltools.result.json_file import encode_json
from evaltools.result_file import read_result

FOLDER = Path(__file__).parent / "version_1"
TASKS = ("imagenet", "coco", "inference_diff")


@pytest.mark.parametrize("task", TASKS)
def test_a_file_of_version_1_is_read_and_written_as_version_2(task: str, tmp_path: Path) -> None:
    made = read_result(FOLDER / f"{task}.json")
    assert (made.schema_version, made.task) == ("2", task)
    (tmp_path / "r.json").write_bytes(encode_json(made))
    assert read_result(tmp_path / "r.json") == made


def test_accuracies_comparisons_and_examples_of_imagenet() -> None:
    document, made = json.loads((FOLDER / "imagenet.json").read_text()), read_result(FOLDER / "imagenet.json")
    for entry, old in zip(made.configurations, document["configurations"], strict=True):
        accuracies = old["classification"]["topk"]["accuracies"]
        assert list(made.part.classified[entry.name].metrics.topk.accuracies) == accuracies
        assert entry.figures["top1"] == pytest.approx(accuracies[0])
    assert made.configurations[1].figures["agreement"] == 1.0
    assert (len(made.part.examples), made.part.data.example_count) == (20, 20)
    verdict = made.configurations[1].verdict
    assert verdict is not None
    assert (verdict.kind, verdict.against, verdict.p_value) == ("not decided", "reference", 1.0)
    assert document["comparisons"][0]["verdict"].startswith(change_in_words(verdict))


def test_figures_and_changes_of_coco() -> None:
    document, made = json.loads((FOLDER / "coco.json").read_text()), read_result(FOLDER / "coco.json")
    stats = document["coco"]["figures"][1]["evaluation"]["stats"]
    assert {name: made.configurations[1].figures[name] for name in stats} == stats
    assert made.part.comparisons[0].boxes.matched == document["coco"]["comparisons"][0]["boxes"]["matched"]
    assert evidence_of(made, made.configurations[1]).figures["ap"] == stats["ap"]


def test_verdicts_and_times_of_an_inference_diff() -> None:
    path = FOLDER / "inference_diff.json"
    document, made = json.loads(path.read_text()), read_result(path)
    old, entry = document["inference_diff"]["comparisons"][0], made.configurations[1]
    assert entry.verdict is not None
    assert outputs_in_words(entry.verdict) == f"{old['verdict']}: {old['reason']}"
    (output,) = made.part.comparisons[0].outputs
    assert output.verdict.grade == old["outputs"][0]["verdict"]["grade"]
    assert reasons_in_words(output.verdict.reasons) == old["outputs"][0]["verdict"]["reason"]
    assert made.part.times[entry.name].invokes_us == document["configurations"][1]["invokes_us"]
    assert entry.figures["max_quanta"] == old["outputs"][0]["difference"]["quanta"]["max"]


@pytest.mark.parametrize("field", ["configurations", "comparisons", "data"])
def test_a_damaged_file_of_version_1_is_refused(field: str, tmp_path: Path) -> None:
    document = json.loads((FOLDER / "imagenet.json").read_text())
    document[field] = [3]
    (tmp_path / "r.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match="is no evaltools result"):
        read_result(tmp_path / "r.json")
    del document[field]
    (tmp_path / "r.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match=f"is no evaltools result of version 1: .*{field}"):
        read_result(tmp_path / "r.json")
