"""The ImageNet task against what the native C++ tool printed and wrote on the same photos and models."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.model import read_model
from evaltools.preprocess import ImageToTensor, decode_image
from evaltools.runtime import open_session
from tests.command import Completed, evaltools_here
from tests.interpreters import BUILTIN_KERNELS, make_interpreter, run
from tests.realdata.conftest import CLASSIFIERS

KERNEL_SETS = {
    "xnnpack_default": ("--runtime=litert", "litert", "xnn"),
    "xnnpack_false": ("--runtime=tflite_runtime --use_xnnpack=false", "tflite_runtime use_xnnpack=false", "builtin"),
}


def run_imagenet(zoo: Path, photos: Path, model: str, *flags: str) -> Completed:
    """``evaltools imagenet`` on the 200 photos with WordNet-id labels."""
    return evaltools_here(
        "imagenet",
        f"--model_file={zoo / model}.tflite",
        f"--ground_truth_images_path={photos / 'images'}",
        f"--ground_truth_labels={photos / 'validation_labels_wnid.txt'}",
        f"--model_output_labels={photos / 'model_labels_1001_wnid.txt'}",
        *flags,
    )


def accuracy_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if "Accuracy" in line or "Num evaluation" in line]


@pytest.mark.parametrize(
    ("model", "kernels"),
    [*((model, "xnnpack_default") for model in CLASSIFIERS[:2]), (CLASSIFIERS[0], "xnnpack_false")],
)
def test_accuracy_lines_equal_the_native_tools(
    shared: Path, zoo: Path, photos: Path, tmp_path: Path, model: str, kernels: str
) -> None:
    recorded = shared / "oracle" / "imagenet" / f"{model}__{kernels}"
    output = tmp_path / "out.pb"
    completed = run_imagenet(
        zoo, photos, model, *KERNEL_SETS[kernels][0].split(), "--reference=none", f"--output_file_path={output}"
    )
    assert completed.code == 0, completed.err
    assert accuracy_lines(completed.out) == accuracy_lines((recorded / "stdout.txt").read_text())
    ours, native = _wire_fields(output.read_bytes()), _wire_fields((recorded / "out.pb").read_bytes())
    assert ours.keys() == native.keys()
    same = [path for path in native if path[:3] != (2, 4, 1) and path[:3] != (2, 4, 2)]
    assert {path: ours[path] for path in same} == {path: native[path] for path in same}


@pytest.mark.parametrize(
    ("model", "kernels"),
    [
        *((model, "xnnpack_default") for model in (*CLASSIFIERS, "vww_96_int8")),
        *((model, "xnnpack_false") for model in (CLASSIFIERS[1], "vww_96_int8")),
    ],
)
def test_every_input_and_output_tensor_equals_the_native_tools(
    shared: Path, zoo: Path, photos: Path, model: str, kernels: str
) -> None:
    tsv = shared / "oracle" / "preprocessing" / f"{model}__{KERNEL_SETS[kernels][2]}.tsv"
    configuration = Configuration.from_text("native", f"runtime={KERNEL_SETS[kernels][1]}")
    model_file = read_model(zoo / f"{model}.tflite")
    session = open_session(model_file, configuration)
    _, height, width, _ = model_file.inputs[0].shape
    to_tensor = ImageToTensor(height, width, np.dtype(model_file.inputs[0].dtype))
    wrong_inputs, wrong_outputs = [], []
    is_whole = (model, kernels) == (CLASSIFIERS[0], "xnnpack_default")
    for name, input_crc, output_crc in _recorded_checksums(tsv)[:: 1 if is_whole else 4]:
        tensor = to_tensor(decode_image(photos / "images" / name))
        if zlib.crc32(tensor.tobytes()) != input_crc:
            wrong_inputs.append(name)
        if zlib.crc32(session.run((tensor,)).outputs[0].tobytes()) != output_crc:
            wrong_outputs.append(name)
    session.close()
    assert wrong_inputs == []
    is_float = model_file.outputs[0].dtype == "float32"
    if wrong_outputs and is_float and not _raw_output_is_recorded(tsv, photos, to_tensor):
        pytest.skip("this processor's float kernels differ from the recording machine's in the last bits")
    assert wrong_outputs == []


def test_detector_input_equals_the_native_tools(shared: Path) -> None:
    tsv = shared / "oracle" / "preprocessing" / "coco_ssd_300__xnn.tsv"
    to_tensor = ImageToTensor(300, 300, np.dtype("uint8"), crop_fraction=None)
    folder = shared / "realdata" / "coco" / "images"
    wrong = [
        name
        for name, crc, _ in _recorded_checksums(tsv)
        if zlib.crc32(to_tensor(decode_image(folder / name)).tobytes()) != crc
    ]
    assert wrong == []


def test_two_runtimes_in_one_pass_differ_on_a_quantised_model(zoo: Path, photos: Path) -> None:
    completed = run_imagenet(
        zoo, photos, CLASSIFIERS[0], "--runtime=tflite_runtime", "--config", "litert: runtime=litert", "--verbose"
    )
    assert completed.code == 0, completed.err
    blocks = completed.out.split("INFO: Configuration: ")
    assert [block.split("\n")[0] for block in blocks[1:]] == ["test", "litert"]
    assert "Top-1 Accuracy: 0.54\n" in blocks[1]
    assert "Top-1 Accuracy: 0.545\n" in blocks[2]
    (remark,) = [line for line in completed.err.splitlines() if line.startswith("litert: top-1 ")]
    assert "; 8 of 200 answers changed: 1 lost, 2 gained, 5 wrong both ways; " in remark


def _recorded_checksums(tsv: Path) -> list[tuple[str, int, int]]:
    rows = [line.split("\t") for line in tsv.read_text().splitlines()[1:]]
    return [(row[0], int(row[1].split("=")[1], 16), int(row[2].rsplit("=")[-1], 16)) for row in rows]


def _raw_output_is_recorded(tsv: Path, photos: Path, to_tensor: ImageToTensor) -> bool:
    """Whether the runtime alone, without evaltools around it, gives the recorded output for the first photo."""
    model, kernels = tsv.stem.split("__")
    runtime = "ai_edge_litert" if kernels == "xnn" else "tflite_runtime"
    resolver = "AUTO" if kernels == "xnn" else BUILTIN_KERNELS
    content = (photos.parent / "zoo" / f"{model}.tflite").read_bytes()
    interpreter = make_interpreter(runtime, content, kernels=resolver)
    name, _, crc = _recorded_checksums(tsv)[0]
    output = run(interpreter, [to_tensor(decode_image(photos / "images" / name))])
    return zlib.crc32(output.tobytes()) == crc


def _wire_fields(data: bytes, path: tuple[int, ...] = ()) -> dict[tuple[int, ...], list[object]]:
    """Protobuf wire format read by hand: field path -> raw values. Fields 2, 2.4 and its messages are nested."""
    messages = {(2,), (2, 4), (2, 4, 1), (2, 4, 2), (2, 4, 3), (2, 4, 4)}
    fields: dict[tuple[int, ...], list[object]] = {}
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        here = (*path, key >> 3)
        kind = key & 7
        if kind == 2:
            length, position = _varint(data, position)
            chunk = data[position : position + length]
            position += length
            assert here in messages, here
            fields.update(_wire_fields(chunk, here))
            continue
        if kind == 0:
            value, position = _varint(data, position)
            fields.setdefault(here, []).append(value)
            continue
        length = {1: 8, 5: 4}[kind]
        fields.setdefault(here, []).append(data[position : position + length])
        position += length
    return fields


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position
