"""The commands of the contract, on the embedded sample."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from PIL import Image

from evaltools.datasets import sample

EXACT: Final = 1e-9
OF_FLOAT_KERNELS: Final = 0.05
"""How far figures of float models may be from recorded ones: processors differ in the third digit of ``avg_error``."""

_SAMPLE: Final = Path(str(sample.__path__[0]))
_XNNPACK: Final = ("--config", "xnnpack: use_xnnpack=true")
_ONE: Final = "--kernels=default"
"""One configuration, ``test``, where evaltools would try what the machine has."""
_CLASSIFIER_DATA: Final = (
    f"--images={_SAMPLE}/images",
    f"--ground_truth={_SAMPLE}/ground_truth.txt",
    f"--labels={_SAMPLE}/labels.txt",
)
_DETECTOR_DATA: Final = (
    f"--images={_SAMPLE}/detection/images",
    f"--ground_truth={_SAMPLE}/detection/instances.json",
)
_INT8: Final = f"{_SAMPLE}/models/int8.tflite"
_FLOAT: Final = f"{_SAMPLE}/models/float32.tflite"
_DETECTOR: Final = f"{_SAMPLE}/detection/models/int8.tflite"
_RESULT: Final = "result.json"
REAL_DATA: Final = Path(os.environ.get("EVALTOOLS_REALDATA", "/nowhere")) / "realdata"
_PHOTOS: Final = (
    f"--images={REAL_DATA}/imagenet/images",
    f"--ground_truth={REAL_DATA}/imagenet/validation_labels_wnid.txt",
    f"--labels={REAL_DATA}/imagenet/model_labels_1001_wnid.txt",
)

Prepare = Callable[[Path], None]


class Case(Struct, frozen=True):
    """One command, or several of which the last is recorded, in an empty folder."""

    name: str
    words: Sequence[str]
    before: Sequence[Sequence[str]] = ()
    """Commands that run first."""
    prepare: Prepare | None = None
    """Puts files into the folder before anything runs."""
    result: str = ""
    """The result file whose facts are recorded."""
    left_out: str = "$^"
    """A pattern of facts of the result that are not recorded: they are unsteady, or another case has them."""
    tolerance: float = EXACT
    """Relative, of every number."""
    needs_real_data: bool = False
    """Whether it runs on photos and models of ``EVALTOOLS_REALDATA``."""
    has_screen: bool = True
    """Whether stderr is recorded: not where what it says depends on the speed of the machine."""


def _classifier(model: str, *more: str) -> tuple[str, ...]:
    return ("imagenet", model, *_CLASSIFIER_DATA, "--num_images=40", *more)


def _detector(*more: str) -> tuple[str, ...]:
    return ("coco", _DETECTOR, *_DETECTOR_DATA, "--num_images=12", *more)


def _diff(model: str, *more: str) -> tuple[str, ...]:
    return ("diff", model, "--num_runs=6", *more)


def _with_a_broken_picture(folder: Path) -> None:
    images = folder / "images"
    images.mkdir()
    for number, picture in enumerate(sorted((_SAMPLE / "images").iterdir())[:4], 1):
        shutil.copy(picture, images / f"{number}.jpg")
    (images / "2.jpg").write_bytes(b"no picture")
    (folder / "truth.txt").write_text("\n".join((_SAMPLE / "ground_truth.txt").read_text().splitlines()[:4]) + "\n")


def _labels_too_few(folder: Path) -> None:
    (folder / "labels.txt").write_text("\n".join((_SAMPLE / "labels.txt").read_text().splitlines()[:-2]) + "\n")


def _a_model_that_is_none(folder: Path) -> None:
    (folder / "broken.tflite").write_bytes(b"no model at all")


def _a_folder_of_models(folder: Path) -> None:
    (folder / "models").mkdir()
    shutil.copy(_INT8, folder / "models")


def _a_task_of_its_own(folder: Path) -> None:
    (folder / "own.py").write_text(
        """from pathlib import Path

import numpy as np

import evaltools as et


@et.task
def brightness(images: Path, above: float = 0.5) -> et.Task:
    \"\"\"Whether the first class of a picture is likely.\"\"\"
    return et.Task(
        examples=[et.Example(file.name, file, 0) for file in sorted(images.iterdir())],
        prepare=et.image_input,
        score=lambda outputs, target: {"likely": float(np.argmax(outputs[0]) == target)},
        metrics=[et.mean("likely", better="higher")],
    )
"""
    )


def _grey_pictures(folder: Path) -> None:
    (folder / "images").mkdir()
    for number in range(3):
        Image.new("L", (70, 50), 40 * number).save(folder / "images" / f"{number}.png")
    (folder / "truth.txt").write_text("\n".join((_SAMPLE / "ground_truth.txt").read_text().splitlines()[:3]) + "\n")


def _limits(*limits: str) -> Prepare:
    def write(folder: Path) -> None:
        texts = ", ".join(f'"{limit}"' for limit in limits)
        (folder / "gates.toml").write_text(
            f'[runs.now]\nresult = "{_RESULT}"\n\n'
            f'[[gates]]\nrun = "now"\nconfiguration = "xnnpack"\nlimits = [{texts}]\n'
        )

    return write


_MEASURED: Final = (_classifier(_INT8, *_XNNPACK, f"--output={_RESULT}"),)
_GATE: Final = ("gate", "--gates=gates.toml")
_SHARDS: Final = tuple(
    _classifier(_INT8, *_XNNPACK, f"--shard_index={index}", "--shard_count=2", f"--run_dir=shard{index}")
    for index in range(2)
)

CASES: Final = (
    Case("help", ("--help",)),
    *(Case(f"help_{name}", (name, "--help")) for name in ("gate", "power", "merge", "resume", "report", "inspect")),
    Case("imagenet_int8", _classifier(_INT8, *_XNNPACK, f"--output={_RESULT}"), result=_RESULT),
    Case(
        "imagenet_float",
        _classifier(_FLOAT, *_XNNPACK, "--config", "builtin: use_xnnpack=false", f"--output={_RESULT}"),
        result=_RESULT,
        left_out=r"figures\.top(?!1\b|5\b)",
        tolerance=OF_FLOAT_KERNELS,
    ),
    Case("imagenet_alone", _classifier(_INT8, _ONE, "--reference=none", "--quiet")),
    Case("imagenet_native", _classifier(_INT8, "--compat=native", "--reference=none"), has_screen=False),
    Case("imagenet_not_measured", _classifier(_INT8, "--config", "nnapi: use_nnapi=true"), has_screen=False),
    Case("imagenet_own_limits", _classifier(_INT8, *_XNNPACK, "--margin=20 points", "--quiet")),
    Case(
        "imagenet_failed_example",
        (
            "imagenet", _INT8, _ONE, "--images=images", "--ground_truth=truth.txt", _CLASSIFIER_DATA[2],
            f"--output={_RESULT}",
        ),
        prepare=_with_a_broken_picture,
        result=_RESULT,
        left_out=r"^(blocks|changed|given|model)|figures|delegat|runtime",
    ),
    Case(
        "imagenet_grey",
        (
            "imagenet", _INT8, _ONE, "--images=images", "--ground_truth=truth.txt", _CLASSIFIER_DATA[2],
            "--label_check=false",
        ),
        prepare=_grey_pictures,
    ),
    Case(
        "imagenet_labels_do_not_fit",
        ("imagenet", _INT8, _ONE, *_CLASSIFIER_DATA[:2], "--labels=labels.txt"),
        prepare=_labels_too_few,
    ),
    Case("imagenet_merged", ("merge", "shard0", "shard1", f"--output={_RESULT}"), before=_SHARDS),
    Case(
        "imagenet_resumed",
        ("resume", "run"),
        before=(_classifier(_INT8, *_XNNPACK, "--run_dir=run"),),
        has_screen=False,
    ),
    Case("coco_int8", _detector(*_XNNPACK, f"--output={_RESULT}"), result=_RESULT),
    Case("coco_alone", _detector(_ONE, "--reference=none", "--quiet")),
    Case(
        "diff_int8",
        _diff(_INT8, _ONE, f"--output={_RESULT}"),
        result=_RESULT,
        left_out=r"\.marks\[|^blocks\[3\]",
    ),
    Case("diff_identical", _diff(_INT8, "--config", "builtin: kernels=builtin", "--quiet")),
    Case(
        "diff_two_models",
        _diff(_INT8, _ONE, f"--reference_model_file={_FLOAT}", f"--output={_RESULT}"),
        result=_RESULT,
        left_out=r"^(blocks|model)|delegat|runtime",
        tolerance=OF_FLOAT_KERNELS,
        has_screen=False,
    ),
    Case("diff_not_measured", _diff(_INT8, "--use_nnapi"), has_screen=False),
    Case(
        "segmentation",
        (
            "segmentation", f"{_SAMPLE}/segmentation/model.tflite", f"--images={_SAMPLE}/segmentation/images",
            f"--masks={_SAMPLE}/segmentation/masks", *_XNNPACK, f"--output={_RESULT}",
        ),
        result=_RESULT,
        tolerance=OF_FLOAT_KERNELS,
    ),
    Case(
        "keypoints",
        (
            "keypoints", f"{_SAMPLE}/keypoints/model.tflite", f"--images={_SAMPLE}/keypoints/images",
            f"--annotations={_SAMPLE}/keypoints/annotations.json", *_XNNPACK,
        ),
        tolerance=OF_FLOAT_KERNELS,
        has_screen=False,
    ),
    Case(
        "audio",
        (
            "audio", f"{_SAMPLE}/audio/model.tflite", f"--recordings={_SAMPLE}/audio/recordings",
            f"--labels={_SAMPLE}/audio/labels.txt", *_XNNPACK,
        ),
        tolerance=OF_FLOAT_KERNELS,
        has_screen=False,
    ),
    Case(
        "text",
        (
            "text", f"{_SAMPLE}/text/model.tflite", f"--table={_SAMPLE}/text/texts.csv", "--label=label", *_XNNPACK,
        ),
        tolerance=OF_FLOAT_KERNELS,
        has_screen=False,
    ),
    Case(
        "own_task",
        ("run", "own.py:brightness", _INT8, f"--images={_SAMPLE}/images", *_XNNPACK, f"--output={_RESULT}"),
        prepare=_a_task_of_its_own,
        result=_RESULT,
    ),
    Case(
        "benchmark",
        (
            "benchmark", f"--graph={_INT8}", _ONE, "--num_runs=5", "--min_secs=0", "--warmup_runs=1",
            "--warmup_min_secs=0", f"--output={_RESULT}",
        ),
        result=_RESULT,
        left_out="figures|series|^blocks|^notes",
        has_screen=False,
    ),
    Case(
        "locate",
        ("locate", _INT8, "--use_xnnpack", "--operators=0-2", "--num_runs=4", f"--output={_RESULT}"),
        result=_RESULT,
        has_screen=False,
    ),
    Case(
        "suite",
        (
            "suite", "models", *_XNNPACK, "--job=diff: diff --num_runs=3", "--job=top1: imagenet --num_images=20 "
            + shlex.join(_CLASSIFIER_DATA), f"--output={_RESULT}",
        ),
        prepare=_a_folder_of_models,
        result=_RESULT,
        left_out=r"series|^blocks|^notes|load|models|figures\.\w+\.(?!value)|top(?!1\b|5\b)|parts|cpu_operators",
        has_screen=False,
    ),
    Case("gate_kept", _GATE, before=_MEASURED, prepare=_limits("top1 >= 80 %", "delegated_share >= 90 %")),
    Case(
        "gate_broken",
        (*_GATE, "--output_file_path=verdicts.json"),
        before=_MEASURED,
        prepare=_limits("top1 >= 99 %", "delegated_share >= 90 %"),
        result="verdicts.json",
    ),
    Case("gate_too_few", _GATE, before=_MEASURED, prepare=_limits("top1 drop <= 0.5 points at 95 %")),
    Case("gate_without_file", _GATE),
    Case("inspect_int8", ("inspect", _INT8, "--run=false")),
    Case("inspect_detector", ("inspect", _DETECTOR, "--run=false")),
    Case("power", ("power", "--drop=0.5 points", "--flip_rate=1 %")),
    Case("delegates", ("delegates",)),
    Case("convert_coco", ("convert", "coco", f"--instances_file={_SAMPLE}/detection/instances.json",
                          "--output_folder=few", "--num_images=5", "--copy_images=false")),
    Case(
        "real_imagenet",
        ("imagenet", f"{REAL_DATA}/zoo/mobilenet_v1_0.25_128_quant.tflite", *_PHOTOS, *_XNNPACK),
        needs_real_data=True,
    ),
    Case(
        "real_coco",
        (
            "coco", f"{REAL_DATA}/zoo/coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite", "--num_images=20",
            f"--images={REAL_DATA}/coco/images", f"--ground_truth={REAL_DATA}/coco/instances.json", *_XNNPACK,
        ),
        needs_real_data=True,
    ),
    Case("real_diff", _diff(f"{REAL_DATA}/zoo/vww_96_int8.tflite", _ONE), needs_real_data=True),
    Case("no_command", ()),
    Case("unknown_command", ("imagnet",)),
    Case("unknown_flag", _classifier(_INT8, "--use_xnpack=true")),
    Case("bad_value", _classifier(_INT8, "--num_images=many")),
    Case("missing_folder", ("imagenet", _INT8, _ONE, "--images=nowhere", *_CLASSIFIER_DATA[1:])),
    Case("missing_model", _diff("nowhere.tflite")),
    Case("broken_model", _diff("broken.tflite"), prepare=_a_model_that_is_none),
    Case("output_cannot_be_written", _classifier(_INT8, _ONE, "--output=no/folder/result.json")),
    Case("flag_without_effect", _classifier(_INT8, "--xnnpack_force_fp16")),
)  # fmt: skip
