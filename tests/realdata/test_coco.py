"""COCO detection with a real SSD on real pictures: the native tool's figures, pycocotools by hand, wrong orders."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import fields, replace
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from evaltools.configuration import Configuration
from evaltools.metrics.coco_stats import CocoStats
from evaltools.model import read_model
from evaltools.proto import message_class
from evaltools.result.metrics import of_task
from evaltools.result.result import Result
from evaltools.result.section import Number, Table, text_of
from evaltools.result_file import read_result
from evaltools.runtime import open_session
from evaltools.tasks.coco.detector import DetectorOptions, detector_input
from evaltools.tasks.coco.outputs import recognised_output_map
from evaltools.tasks.framework.image_input import load_picture
from tests.command import Completed, evaltools_here


class Real(Struct, frozen=True):
    """The real pictures, annotations, labels and detector."""

    folder: Path
    model: Path

    def run(self, *flags: str, model: Path | None = None, pictures: Path | None = None) -> Completed:
        """``evaltools coco`` on all pictures."""
        return evaltools_here(
            "coco",
            f"--model_file={model or self.model}",
            f"--ground_truth_images_path={pictures or self.folder / 'images'}",
            f"--model_output_labels={self.folder / 'labelmap_91_background_first.txt'}",
            "--verbose",
            *flags,
        )

    @property
    def annotations(self) -> Path:
        return self.folder / "instances.json"


@pytest.fixture(scope="module")
def real(shared: Path) -> Real:
    zoo = shared / "realdata" / "zoo"
    return Real(shared / "realdata" / "coco", zoo / "coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite")


@pytest.fixture(scope="module")
def native_truth(real: Real, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ``ground_truth.pb`` from our converter."""
    folder = tmp_path_factory.mktemp("converted")
    converted = evaltools_here(
        "convert",
        "coco",
        f"--images_folder={real.folder / 'images'}",
        f"--instances_file={real.annotations}",
        f"--output_folder={folder}",
        "--copy_images=false",
    )
    assert converted.code == 0, converted.err
    return folder / "ground_truth.pb"


def without_latencies(text: str) -> list[str]:
    return [line for line in text.splitlines() if "latency" not in line]


def proto_without_latencies(path: Path) -> bytes:
    message = message_class("EvaluationStageMetrics").FromString(path.read_bytes())
    metrics = message.process_metrics.object_detection_metrics
    metrics.ClearField("pre_processing_latency")
    metrics.ClearField("inference_latency")
    serialised: bytes = message.SerializeToString()
    return serialised


def test_native_lines_and_proto_equal_the_native_tools(
    real: Real, shared: Path, native_truth: Path, tmp_path: Path
) -> None:
    recorded = shared / "oracle" / "coco" / "ssd__xnnpack_default"
    output = tmp_path / "out.pb"
    completed = real.run(
        f"--ground_truth_proto={native_truth}",
        "--reference=none",
        f"--output_file_path={output}",
        "--runtime=litert",
    )
    assert completed.code == 0, completed.err
    lines = without_latencies((recorded / "stdout.txt").read_text())
    assert len(lines) == 12
    assert without_latencies(completed.out) == lines
    assert proto_without_latencies(output) == proto_without_latencies(recorded / "out.pb")


class OtherEvaluator(Struct, frozen=True):
    """XNNPACK alone, with the other evaluator and the lines of the debug mode."""

    result: Result
    completed: Completed


@pytest.fixture(scope="module")
def faster(real: Real, tmp_path_factory: pytest.TempPathFactory) -> OtherEvaluator:
    output = tmp_path_factory.mktemp("faster") / "fast.json"
    completed = real.run(
        f"--ground_truth_annotations={real.annotations}",
        "--reference=none",
        "--config=xnnpack: runtime=litert",
        "--debug_mode",
        "--coco_evaluator=faster-coco-eval",
        f"--output_file_path={output}",
    )
    assert completed.code == 0, completed.err
    return OtherEvaluator(read_result(output), completed)


def test_debug_lines_equal_the_native_tools(faster: OtherEvaluator, shared: Path) -> None:
    recorded = without_latencies((shared / "oracle" / "coco" / "ssd_labels91_debug" / "stdout.txt").read_text())
    assert len(recorded) > 94 * 9
    assert without_latencies(faster.completed.out) == recorded


def test_without_ground_truth_as_the_native_tool(real: Real, shared: Path, tmp_path: Path) -> None:
    recorded = shared / "oracle" / "coco" / "ssd_labels91_nogt"
    output = tmp_path / "out.pb"
    completed = real.run("--reference=none", "--runtime=litert", "--compat=native", f"--output_file_path={output}")
    assert completed.code == 0, completed.err
    assert without_latencies(completed.out) == without_latencies((recorded / "stdout.txt").read_text())
    assert proto_without_latencies(output) == proto_without_latencies(recorded / "out.pb")


class ThreeConfigurations(Struct, frozen=True):
    """One pass of the reference, XNNPACK and the other runtime."""

    result: Result
    completed: Completed
    detections: dict[str, Path]


@pytest.fixture(scope="module")
def three(real: Real, tmp_path_factory: pytest.TempPathFactory) -> ThreeConfigurations:
    folder = tmp_path_factory.mktemp("three")
    completed = real.run(
        f"--ground_truth_annotations={real.annotations}",
        "--reference=runtime=litert",
        "--config=xnnpack: runtime=litert",
        "--config=other: runtime=tflite_runtime use_xnnpack=false",
        f"--output_file_path={folder / 'result.json'}",
        f"--detections_path={folder / 'found.json'}",
    )
    assert completed.code == 0, completed.err
    names = {"xnnpack": "found.json", "other": "found.other.json", "reference": "found.reference.json"}
    return ThreeConfigurations(
        read_result(folder / "result.json"), completed, {name: folder / file for name, file in names.items()}
    )


@pytest.mark.parametrize(("name", "kernels"), [("xnnpack", "xnnpack_default"), ("other", "xnnpack_false")])
def test_native_lines_from_the_annotations_equal_the_native_tools(
    three: ThreeConfigurations, shared: Path, name: str, kernels: str
) -> None:
    recorded = without_latencies((shared / "oracle" / "coco" / f"ssd__{kernels}" / "stdout.txt").read_text())
    lines = without_latencies(three.completed.out)
    start = lines.index(f"INFO: Configuration: {name}") + 1
    assert lines[start : start + 12] == recorded


def test_the_twelve_figures_equal_pycocotools_by_hand(three: ThreeConfigurations, real: Real) -> None:
    for entry in three.result.rows:
        with contextlib.redirect_stdout(io.StringIO()):
            truth = COCO(str(real.annotations))
            run = COCOeval(truth, truth.loadRes(str(three.detections[entry.name])), "bbox")
            run.evaluate()
            run.accumulate()
            run.summarize()
        ours = [entry.value(field.name) for field in fields(CocoStats)]
        assert ours == run.stats.tolist()
        assert len(set(ours)) > 8
        column = run.params.catIds.index(1)
        precision = run.eval["precision"][:, :, column, 0, 2]
        person = next(part for part in entry.parts if part.name == "person")
        assert person.value("category_ap") == pytest.approx(precision[precision > -1].mean(), abs=1e-15)


def test_three_configurations_agree_as_kernels_do(three: ThreeConfigurations) -> None:
    table = next(
        block
        for section in three.result.blocks
        for block in section.blocks
        if isinstance(block, Table) and "matched one to one" in block.caption
    )
    rows = {text_of(row[0]): [cell.value if isinstance(cell, Number) else None for cell in row] for row in table.rows}
    assert [*rows] == ["xnnpack against reference", "other against reference", "other against xnnpack"]
    _, matched, lost, new, *_ = rows["xnnpack against reference"]
    counts = {name: len(json.loads(three.detections[name].read_text())) for name in ("reference", "xnnpack")}
    assert (matched or 0) + (lost or 0) == counts["reference"]
    assert (matched or 0) + (new or 0) == counts["xnnpack"]
    _, xnnpack, other = (entry.value("matched_boxes") for entry in three.result.rows)
    assert 0.9 < (xnnpack or 0) < (other or 0)
    assert "xnnpack" in three.completed.err
    assert "class + 1 (detected" in three.completed.err


def test_evaluators_give_the_same_figures(three: ThreeConfigurations, faster: OtherEvaluator) -> None:
    slow = next(entry for entry in three.result.rows if entry.name == "xnnpack")
    ours = faster.result.rows[0]
    for field in fields(CocoStats):
        assert ours.value(field.name) == pytest.approx(slow.value(field.name), abs=1e-12)
    assert [part.name for part in ours.parts] == [part.name for part in slow.parts]
    for one, two in zip(ours.parts, slow.parts, strict=True):
        assert one.value("category_ap") == pytest.approx(two.value("category_ap"), abs=1e-12)


def test_outputs_are_distinguished_without_the_operator(real: Real) -> None:
    model = replace(read_model(real.model), detection=None)
    unnamed = replace(model, outputs=tuple(replace(tensor, name="") for tensor in model.outputs))
    to_tensor = detector_input(model, DetectorOptions())
    session = open_session(model, Configuration.from_text("builtin", "kernels=builtin"))
    pictures = sorted((real.folder / "images").iterdir())[:4]
    probes = [session.run((load_picture(picture, to_tensor).values,)).outputs for picture in pictures]
    session.close()
    for order in itertools.permutations(range(4)):
        permuted = [[outputs[place] for place in order] for outputs in probes]
        found = recognised_output_map(unnamed, permuted)
        assert [order[place] for place in (found.boxes, found.classes, found.scores)] == [0, 1, 2]
        assert found.count is not None
        assert order[found.count] == 3


def with_ids(annotations: Path, shift: int, target: Path) -> Path:
    """The same annotations with other category ids."""
    document = json.loads(annotations.read_text())
    for entry in document["categories"]:
        entry["id"] += shift
    for entry in document["annotations"]:
        entry["category_id"] += shift
    target.write_text(json.dumps(document))
    return target


def test_another_class_offset_is_detected(real: Real, faster: OtherEvaluator, tmp_path: Path) -> None:
    other = with_ids(real.annotations, 1, tmp_path / "shifted.json")
    output = tmp_path / "result.json"
    flags = [f"--ground_truth_annotations={other}", "--reference=none", "--config=xnnpack: runtime=litert"]
    flags += ["--coco_evaluator=faster-coco-eval"]
    completed = real.run(*flags, f"--output_file_path={output}")
    assert completed.code == 0, completed.err
    assert "class + 2 (detected" in completed.err
    (found,), (expected,) = read_result(output).rows, faster.result.rows
    assert {name: figure.value for name, figure in of_task(found).items()} == {
        name: figure.value for name, figure in of_task(expected).items()
    }
