"""Draw the embedded samples of the smaller tasks, each with a model whose weights are written by hand.

    python scripts/sample/draw_tasks.py --output_dir datasets/sample

Needs the ``dev`` extra. Everything follows from numbers that a seeded generator gives.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tflite
from PIL import Image
from scipy.io import wavfile

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from draw_pictures import write_lines
from draw_scenes import to_json
from tests.tflite_writer import Graph

SEED = 411
SIDE = 48
COLOURS = np.full((4, 3), 60.37) + 159.74 * np.eye(4, 3, -1)
"""Of the background and of the three classes; no pixel is as near to one as to another."""
SAMPLE_RATE, WINDOW = 16000, 800
TONES = {"low": 440.0, "middle": 1000.0, "high": 2300.0}
"""In hertz."""
Bytes = npt.NDArray[np.uint8]


def draw_regions(chance: np.random.Generator) -> tuple[Bytes, Bytes]:
    """A picture with a disc of each of three colours in noise, and the class of each pixel; 255 at a disc's border."""
    rows, columns = np.mgrid[:SIDE, :SIDE]
    mask = np.zeros((SIDE, SIDE), np.uint8)
    for number in chance.permutation(3) + 1:
        centre, radius = chance.integers(8, SIDE - 8, 2), chance.integers(6, 14)
        distance = np.hypot(rows - centre[0], columns - centre[1])
        mask[distance < radius] = number
        mask[np.abs(distance - radius) < 0.7] = 255
    picture = COLOURS[np.where(mask == 255, 0, mask)] + chance.normal(0, 45, (SIDE, SIDE, 3))
    return np.clip(picture, 0, 255).astype(np.uint8), mask


def segmentation_model() -> bytes:
    """Mean colours of 2 x 2 pixels, and how near each is to the colours of the classes: [1, 24, 24, 4]."""
    graph = Graph()
    picture = graph.tensor("picture", (1, SIDE, SIDE, 3))
    means = graph.tensor("means", (1, SIDE // 2, SIDE // 2, 3))
    window = {"StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2}
    graph.node("AVERAGE_POOL_2D", [picture], means, "Pool2DOptions", Padding=tflite.Padding.VALID, **window)
    colours = (COLOURS - 127.5) / 127.5
    weights = graph.constant("weights", (2 * colours).astype(np.float32).reshape(4, 1, 1, 3))
    bias = graph.constant("bias", -(colours**2).sum(1).astype(np.float32))
    scores = graph.tensor("scores", (1, SIDE // 2, SIDE // 2, 4))
    fields = {"Padding": tflite.Padding.VALID, "StrideH": 1, "StrideW": 1}
    graph.node("CONV_2D", [means, weights, bias], scores, "Conv2DOptions", **fields)
    return graph.to_bytes([picture], [scores])


def write_segmentation(folder: Path, count: int = 10) -> None:
    """Pictures, masks and the model."""
    chance = np.random.default_rng([SEED, 1])
    for name in ("images", "masks"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(1, count + 1):
        picture, mask = draw_regions(chance)
        Image.fromarray(picture).save(folder / "images" / f"{number:02d}.jpg", quality=85)
        Image.fromarray(mask).save(folder / "masks" / f"{number:02d}.png")
    (folder / "model.tflite").write_bytes(segmentation_model())


def keypoint_colours() -> npt.NDArray[np.float64]:
    """Of the 17 keypoints: as far from each other as can be, all equally far from grey, from -1 to 1 (17, 3)."""
    numbers = np.arange(17)
    heights = 1 - (2 * numbers + 1) / 17
    turns = np.pi * (3 - np.sqrt(5)) * numbers
    around = np.sqrt(1 - heights**2)
    return np.stack([around * np.cos(turns), around * np.sin(turns), heights], axis=1)


def draw_person(chance: np.random.Generator) -> tuple[Bytes, dict[str, object]]:
    """A picture with a disc for each keypoint of a person, some of them missing, and its annotation."""
    height, width = SIDE, SIDE + int(chance.integers(0, 3)) * 8
    rows, columns = np.mgrid[:height, :width]
    picture = 127.5 + chance.normal(0, 12, (height, width, 3))
    places = np.stack(np.divmod(chance.permutation(36)[:17], 6), axis=1) * 7.0 + 5 + chance.uniform(-1, 1, (17, 2))
    seen = chance.random(17) < 0.85
    keypoints: list[float] = []
    for (y, x), colour, is_seen in zip(places, keypoint_colours(), seen, strict=True):
        if is_seen:
            picture[np.hypot(rows - y, columns - x) < 2.5] = 127.5 + 120 * colour
        keypoints += [round(x + 0.5, 2), round(y + 0.5, 2), 2] if is_seen else [0, 0, 0]
    box = [*np.round(places[:, ::-1].min(0) - 3, 2), *np.round(np.ptp(places[:, ::-1], axis=0) + 6, 2)]
    annotation = {
        "category_id": 1,
        "bbox": box,
        "area": round(box[2] * box[3] / 2, 2),
        "num_keypoints": int(seen.sum()),
        "keypoints": keypoints,
    }
    return np.clip(picture, 0, 255).astype(np.uint8), annotation


def keypoint_model() -> bytes:
    """Mean colours of 2 x 2 pixels along the colour of each keypoint, as heat maps: [1, 32, 32, 17]."""
    graph = Graph()
    picture = graph.tensor("picture", (1, 64, 64, 3))
    means = graph.tensor("means", (1, 32, 32, 3))
    window = {"StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2}
    graph.node("AVERAGE_POOL_2D", [picture], means, "Pool2DOptions", Padding=tflite.Padding.VALID, **window)
    weights = graph.constant("weights", keypoint_colours().astype(np.float32).reshape(17, 1, 1, 3))
    bias = graph.constant("bias", np.zeros(17, np.float32))
    maps = graph.tensor("heat maps", (1, 32, 32, 17))
    fields = {"Padding": tflite.Padding.VALID, "StrideH": 1, "StrideW": 1}
    graph.node("CONV_2D", [means, weights, bias], maps, "Conv2DOptions", **fields)
    return graph.to_bytes([picture], [maps])


def write_keypoints(folder: Path, count: int = 10) -> None:
    """Pictures, ``annotations.json`` in COCO's format, and the model."""
    chance = np.random.default_rng([SEED, 2])
    (folder / "images").mkdir(parents=True, exist_ok=True)
    images, annotations = [], []
    for number in range(1, count + 1):
        picture, annotation = draw_person(chance)
        name = f"{number:02d}.jpg"
        Image.fromarray(picture).save(folder / "images" / name, quality=90, subsampling=0)
        images.append({"id": number, "file_name": name, "width": picture.shape[1], "height": picture.shape[0]})
        annotations.append({"id": number, "image_id": number, "iscrowd": 0, **annotation})
    sections = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "person"}]}
    write_lines(folder / "annotations.json", to_json(sections))
    (folder / "model.tflite").write_bytes(keypoint_model())


def smoothing_model() -> bytes:
    """The mean of 3 x 3 pixels: [1, 48, 48, 3], from -1 to 1 as the input."""
    graph = Graph()
    picture = graph.tensor("picture", (1, SIDE, SIDE, 3))
    smooth = graph.tensor("smooth", (1, SIDE, SIDE, 3))
    window = {"StrideH": 1, "StrideW": 1, "FilterHeight": 3, "FilterWidth": 3}
    graph.node("AVERAGE_POOL_2D", [picture], smooth, "Pool2DOptions", Padding=tflite.Padding.SAME, **window)
    return graph.to_bytes([picture], [smooth])


def write_noise(folder: Path, count: int = 10) -> None:
    """Pictures with noise, the same without it, and a model that smooths."""
    chance = np.random.default_rng([SEED, 3])
    for name in ("images", "targets"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for number in range(1, count + 1):
        picture, mask = draw_regions(chance)
        clean = COLOURS[np.where(mask == 255, 0, mask)].astype(np.uint8)
        Image.fromarray(picture).save(folder / "images" / f"{number:02d}.jpg", quality=85)
        Image.fromarray(clean).save(folder / "targets" / f"{number:02d}.png")
    (folder / "model.tflite").write_bytes(smoothing_model())


def tone_model() -> bytes:
    """How much of each tone is in a window, as scores: [1, 800] -> [1, 3]."""
    times = np.arange(WINDOW) / SAMPLE_RATE
    waves = [turn(2 * np.pi * hertz * times) for hertz in TONES.values() for turn in (np.cos, np.sin)]
    graph = Graph()
    sound = graph.tensor("sound", (1, WINDOW))
    weights = graph.constant("waves", (np.stack(waves) * 8 / WINDOW).astype(np.float32))
    parts = graph.node(
        "FULLY_CONNECTED",
        [sound, weights, graph.constant("bias", np.zeros(6, np.float32))],
        graph.tensor("parts", (1, 6)),
        "FullyConnectedOptions",
    )
    powers = graph.node("MUL", [parts, parts], graph.tensor("powers", (1, 6)), "MulOptions")
    sums = graph.constant("sums", np.repeat(np.eye(3, dtype=np.float32), 2, axis=1))
    logits = graph.node(
        "FULLY_CONNECTED",
        [powers, sums, graph.constant("no bias", np.zeros(3, np.float32))],
        graph.tensor("logits", (1, 3)),
        "FullyConnectedOptions",
    )
    scores = graph.node("SOFTMAX", [logits], graph.tensor("scores", (1, 3)), "SoftmaxOptions", Beta=1.0)
    return graph.to_bytes([sound], [scores])


def write_audio(folder: Path, count: int = 5) -> None:
    """Recordings of three tones in noise, in a folder for each, the labels, and the model."""
    chance = np.random.default_rng([SEED, 4])
    for label, hertz in TONES.items():
        (folder / "recordings" / label).mkdir(parents=True, exist_ok=True)
        for number in range(1, count + 1):
            times = np.arange(int(chance.integers(600, 1000))) / SAMPLE_RATE
            tone = chance.uniform(0.1, 0.5) * np.sin(2 * np.pi * hertz * times * chance.uniform(0.97, 1.03))
            samples = tone + chance.normal(0, 0.5, times.size)
            path = folder / "recordings" / label / f"{number}.wav"
            wavfile.write(path, SAMPLE_RATE, (np.clip(samples, -1, 1) * 32767).astype(np.int16))
    write_lines(folder / "labels.txt", list(TONES))
    (folder / "model.tflite").write_bytes(tone_model())


def text_model(table: npt.NDArray[np.float32], length: int) -> bytes:
    """The mean over the tokens of a table's rows, as scores: tokens [1, length] -> [1, 3]."""
    graph = Graph()
    tokens = graph.tensor("tokens", (1, length), "int32")
    rows = graph.tensor("rows", (1, length, 3))
    graph.node("GATHER", [graph.constant("table", table), tokens], rows, "GatherOptions", Axis=0)
    means = graph.tensor("means", (1, 3))
    axis = graph.constant("axis", np.array([1], np.int32))
    graph.node("MEAN", [rows, axis], means, "ReducerOptions", KeepDims=False)
    scores = graph.node("SOFTMAX", [means], graph.tensor("scores", (1, 3)), "SoftmaxOptions", Beta=1.0)
    return graph.to_bytes([tokens], [scores])


def write_text(folder: Path, count: int = 20, length: int = 8) -> None:
    """Texts of tokens 1 to 19 with the label that most of them have, now and then another, and the model."""
    chance = np.random.default_rng([SEED, 5])
    table = np.concatenate([np.zeros((1, 3)), chance.normal(0, 2, (19, 3))]).astype(np.float32)
    lines = ["tokens,label"]
    for _ in range(count):
        tokens = chance.integers(1, 20, int(chance.integers(3, length + 1)))
        votes = np.bincount(table[tokens].argmax(1), minlength=3) + chance.random(3)
        lines.append(f"{' '.join(map(str, tokens))},{votes.argmax()}")
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "texts.csv", lines)
    (folder / "model.tflite").write_bytes(text_model(table, length))


def main() -> None:
    """Read the command line and write all samples."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output_dir", type=Path, default=Path("datasets/sample"))
    folder = parser.parse_args().output_dir
    write_segmentation(folder / "segmentation")
    write_keypoints(folder / "keypoints")
    write_noise(folder / "noise")
    write_audio(folder / "audio")
    write_text(folder / "text")


if __name__ == "__main__":
    main()
