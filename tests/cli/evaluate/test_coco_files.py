"""``evaltools coco``: what is written, and that nothing is overwritten or lost."""

from __future__ import annotations

import contextlib
import io
import json
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from msgspec.structs import astuple
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from evaltools.proto import message_class
from evaltools.result_file import read_result
from tests.cli.evaluate.detection_command import answered_by
from tests.command import Completed, evaltools_here
from tests.detection_set import COCO_MAP, NATIVE_MAP, DetectionSet, make_detection_set
from tests.tasks.coco.fakes import Finding, Found, everything, figures_of, sessions

CONFIGS = ("--config=first: kernels=builtin", "--config=the other: kernels=reference")
WITHOUT_TRUTH = 2


@pytest.fixture
def made(tmp_path: Path) -> DetectionSet:
    """Five pictures, to be changed."""
    return make_detection_set(tmp_path / "set")


def less(index: int) -> list[Found]:
    """Against ``everything``: the last boxes of the first two pictures are missing."""
    return everything(index)[: 5 if index < 2 else 6]


def with_two_tests(made: DetectionSet, *flags: str) -> Completed:
    """A reference and ``first`` that find everything, ``the other`` that finds less."""
    opened = {"reference": Finding(everything), "first": Finding(everything), "the other": Finding(less)}
    with answered_by(sessions(**opened)):
        return evaltools_here(*made.flags(*CONFIGS, *flags))


def test_json_validates_and_holds_the_figures(made: DetectionSet) -> None:
    output = made.folder / "result.json"
    completed = with_two_tests(made, "--record_examples", f"--output_file_path={output}")
    assert completed.code == 0, completed.err
    document = json.loads(output.read_text())
    schema = json.loads(files("evaltools.result").joinpath("result.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(document, schema)
    assert (document["task"], document["complete"]) == ("coco", True)
    coco = document["part"]
    assert [entry["configuration"] for entry in coco["figures"]] == ["reference", "first", "the other"]
    assert coco["figures"][1]["evaluation"]["stats"]["ap"] == pytest.approx(COCO_MAP)
    assert coco["figures"][1]["native"]["overall"] == pytest.approx(NATIVE_MAP)
    assert coco["data"]["ground_truth"]["objects"] == 20
    assert coco["data"]["output_map"]["source"] == "from the operator TFLite_Detection_PostProcess"
    assert coco["data"]["class_mapping"]["agreeing"] == {"+1": 20, "0": 0}
    assert [(entry["baseline"], entry["other"], entry["boxes"]["lost"]) for entry in coco["comparisons"]] == [
        ("reference", "first", 0), ("reference", "the other", 2), ("first", "the other", 2),
    ]  # fmt: skip
    first = coco["pictures"][0]
    assert (first["example"], first["image_id"], len(first["objects"])) == ("000011.png", 11, 4)
    assert {name: len(found) for name, found in first["detections"].items()} == {
        "reference": 6, "first": 6, "the other": 5,
    }  # fmt: skip
    assert document["environment"]["command"][:2] == ["evaltools", "coco"]


def test_proto_of_each_configuration_holds_the_printed_figures(made: DetectionSet) -> None:
    output = made.folder / "out.pb"
    completed = with_two_tests(made, f"--output_file_path={output}")
    assert f"INFO: Overall mAP: {NATIVE_MAP:g}\n" in completed.out
    for path, best in ((output, 2 / 3), (made.folder / "out.the_other.pb", (51 / 101 * 2 / 2 + 1) / 3)):
        message = message_class("EvaluationStageMetrics").FromString(path.read_bytes())
        metrics = message.process_metrics.object_detection_metrics
        assert message.num_runs == metrics.inference_metrics.num_inferences == 5
        precision = metrics.average_precision_metrics
        thresholds = [entry.iou_threshold for entry in precision.individual_average_precisions]
        assert thresholds == pytest.approx(np.arange(0.5, 1, 0.05).tolist())
        if path == output:
            assert precision.individual_average_precisions[0].average_precision == pytest.approx(best)
            assert precision.overall_mean_average_precision == pytest.approx(NATIVE_MAP)
        assert (
            f"[IOU Threshold=0.5]: {precision.individual_average_precisions[0].average_precision:g}\n" in completed.out
        )
        assert f"Overall mAP: {precision.overall_mean_average_precision:g}\n" in completed.out
        assert metrics.inference_latency.HasField("std_deviation_us")
        assert not metrics.pre_processing_latency.HasField("std_deviation_us")


def by_hand(annotations: Path, detections: Path, image_ids: list[int]) -> list[float]:
    """The twelve figures of pycocotools."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(annotations))
        run = COCOeval(truth, truth.loadRes(str(detections)), "bbox")
        run.params.imgIds = image_ids
        run.evaluate()
        run.accumulate()
        run.summarize()
    return [float(value) for value in run.stats]


def test_detections_give_the_figures_of_the_result_in_pycocotools(made: DetectionSet) -> None:
    """One object is a crowd, one picture is not there, one is not listed."""
    document = made.document()
    document["annotations"][4]["iscrowd"] = 1
    document["images"].append({"id": 99, "file_name": "gone.png", "width": 24, "height": 16})
    document["annotations"].append({**document["annotations"][0], "id": 77, "image_id": 99})
    document["annotations"][1].update(area=5000)
    made.annotations.write_text(json.dumps(document))
    (made.images / "000015.png").rename(made.images / "unlisted.png")
    output, found = made.folder / "result.json", made.folder / "found.json"
    completed = with_two_tests(made, f"--output_file_path={output}", f"--detections_path={found}")
    assert completed.code == 0, completed.err
    result = read_result(output)
    paths = {"first": found, "the other": made.folder / "found.the_other.json"}
    paths["reference"] = made.folder / "found.reference.json"
    for name, path in paths.items():
        evaluation = figures_of(result, name).evaluation
        assert evaluation is not None
        ours = [-1 if value is None else value for value in astuple(evaluation.stats)]
        assert ours == by_hand(made.annotations, path, [11, 12, 13, 14]), name
        assert {entry["image_id"] for entry in json.loads(path.read_text())} == {11, 12, 13, 14}
    assert len({path.read_bytes() for path in paths.values()}) == WITHOUT_TRUTH


@pytest.mark.parametrize("flag", ["output_file_path", "detections_path"])
def test_an_input_is_never_overwritten(made: DetectionSet, flag: str) -> None:
    configs = made.folder / "configs.yaml"
    configs.write_text("a: use_xnnpack=false")
    library = made.folder / "delegate.so"
    library.write_bytes(b"x")
    inputs = {
        made.model: [],
        made.annotations: [],
        made.labels: [f"--model_output_labels={made.labels}"],
        configs: [f"--configs={configs}"],
        library: [f"--config=x: external_delegate_path={library}"],
    }
    ending = {"output_file_path": "pb", "detections_path": "json"}[flag]
    for number, (source, flags) in enumerate(inputs.items()):
        target = made.folder / f"link{number}.{ending}"
        target.hardlink_to(source)
        before = source.read_bytes()
        completed = evaltools_here(*made.flags(*flags, f"--{flag}={target}"))
        assert (completed.code, completed.out) == (2, "")
        assert f"--{flag}={target} would overwrite an input of this run" in completed.err
        assert source.read_bytes() == before
    target = made.folder / f"proto.{ending}"
    target.symlink_to(made.proto)
    completed = evaltools_here(*made.bare_flags(f"--ground_truth_proto={made.proto}", f"--{flag}={target}"))
    assert "would overwrite an input of this run" in completed.err
