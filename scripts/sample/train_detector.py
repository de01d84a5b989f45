"""Train the small detector of the embedded detection sample and convert it to two .tflite models.

    python scripts/sample/train_detector.py --output_dir datasets/sample/detection

The training pictures come from ``draw_scenes.py`` with other seeds than the evaluation pictures
have. They are drawn anew on every run and never stored. ``draw_scenes.py`` has to run first: its
pictures measure the finished models.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from tensorflow.lite.tools import flatbuffer_utils

import draw_scenes
from detector import ANCHORS, ENCODING_SCALES, INPUT_SIDE, box_loss, build_network, make_targets, score_loss
from draw_scenes import LARGEST_COUNT, OBJECT_NAMES

ByteArray = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]

MIDDLE = 127.5

TRAINING_COUNT = 8_000
CALIBRATION_COUNT = 300

SEED = 12
EPOCHS = 20
BATCH_SIZE = 32
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-3

MODEL_NAMES = ("float32", "int8")
OUTPUT_NAMES = ("boxes", "classes", "scores", "count")

POSTPROCESS = "TFLite_Detection_PostProcess"
MAX_DETECTIONS = 10
POSTPROCESS_OPTIONS = {
    "max_detections": f"i: {MAX_DETECTIONS}",
    "max_classes_per_detection": "i: 1",
    # The regular way loses classes with more than one thread; the fast one leaves what lies beyond the count
    # undefined, so the threshold is as low as in other models and every place is taken.
    "use_regular_nms": "b: false",
    "nms_score_threshold": "f: 1e-8",
    "nms_iou_threshold": "f: 0.55",
    "num_classes": f"i: {len(OBJECT_NAMES)}",
    **{f"{axis}_scale": f"f: {scale}" for axis, scale in zip("yxhw", ENCODING_SCALES, strict=True)},
}


# Pictures for training.


def resize_bilinear(pixels: ByteArray) -> FloatArray:
    """Stretch a picture to the input size as TensorFlow 1 did: no antialiasing, corners not aligned."""
    values = pixels.astype(np.float32)
    for axis in (0, 1):
        old_side = values.shape[axis]
        position = np.arange(INPUT_SIDE, dtype=np.float32) * np.float32(old_side / INPUT_SIDE)
        low = np.floor(position).astype(np.int64)
        high = np.minimum(low + 1, old_side - 1)
        part = (position - low.astype(np.float32)).reshape((-1, 1, 1) if axis == 0 else (1, -1, 1))
        values = np.take(values, low, axis) * (1 - part) + np.take(values, high, axis) * part
    return values


def read_pixels(jpeg: bytes) -> FloatArray:
    """Decode and stretch a picture; the values still run from 0 to 255."""
    with Image.open(io.BytesIO(jpeg)) as image:
        return resize_bilinear(np.asarray(image.convert("RGB")))


def normalise(pixels: Any) -> Any:
    """Bring values from 0..255 to -1..1, which is what the network takes."""
    return (pixels - np.float32(MIDDLE)) / np.float32(MIDDLE)


def draw_series(seed: int, count: int) -> tuple[ByteArray, FloatArray, IntArray]:
    """Draw ``count`` pictures: inputs, boxes and classes, both filled up with a class of -1."""
    inputs = np.empty((count, INPUT_SIDE, INPUT_SIDE, 3), dtype=np.uint8)
    boxes = np.zeros((count, LARGEST_COUNT, 4), dtype=np.float32)
    classes = np.full((count, LARGEST_COUNT), -1, dtype=np.int32)
    for number in range(count):
        jpeg, instances = draw_scenes.draw_training_scene(seed, number)
        inputs[number] = np.rint(read_pixels(jpeg))
        with Image.open(io.BytesIO(jpeg)) as image:
            width, height = image.size
        for place, instance in enumerate(instances):
            left, top, box_width, box_height = instance.box
            corners = (top / height, left / width, (top + box_height) / height, (left + box_width) / width)
            boxes[number, place] = corners
            classes[number, place] = instance.class_index
    return inputs, boxes, classes


def vary(picture: Any, boxes: Any) -> tuple[Any, Any]:
    """Mirror and turn a picture at random and mix its colours; no figure changes its class by that."""
    top, left, bottom, right = tf.unstack(boxes, axis=1)
    if tf.random.uniform(()) < 0.5:
        picture, left, right = picture[:, ::-1], 1.0 - right, 1.0 - left
    if tf.random.uniform(()) < 0.5:
        picture, top, bottom = picture[::-1], 1.0 - bottom, 1.0 - top
    if tf.random.uniform(()) < 0.5:
        picture = tf.transpose(picture, [1, 0, 2])
        top, left, bottom, right = left, top, right, bottom
    picture = tf.gather(picture, tf.random.shuffle(tf.range(3)), axis=2)
    return picture, tf.stack([top, left, bottom, right], axis=1)


def training_batches(inputs: ByteArray, boxes: FloatArray, classes: IntArray) -> Any:
    """The training pictures in a new order and with new variations in every epoch."""

    def prepare(picture: Any, boxes: Any, classes: Any) -> tuple[Any, dict[str, Any]]:
        picture, boxes = vary(picture, boxes)
        return normalise(tf.cast(picture, tf.float32)), make_targets(boxes, classes)

    pictures = tf.data.Dataset.from_tensor_slices((inputs, boxes, classes))
    pictures = pictures.shuffle(len(inputs), seed=SEED).map(prepare)
    return pictures.batch(BATCH_SIZE, drop_remainder=True).prefetch(2)


def train_network() -> tuple[Any, FloatArray]:
    """Train the network; returns it together with inputs to calibrate the int8 model."""
    inputs, boxes, classes = draw_series(draw_scenes.TRAINING_SEED, TRAINING_COUNT)
    network = build_network()
    steps = EPOCHS * (TRAINING_COUNT // BATCH_SIZE)
    schedule = keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=0.0,
        decay_steps=steps - steps // 20,
        warmup_target=LEARNING_RATE,
        warmup_steps=steps // 20,
    )
    network.compile(
        optimizer=keras.optimizers.AdamW(schedule, weight_decay=WEIGHT_DECAY),
        loss={"boxes": box_loss, "scores": score_loss},
    )
    network.fit(training_batches(inputs, boxes, classes), epochs=EPOCHS, verbose=2)
    return network, normalise(inputs[:CALIBRATION_COUNT].astype(np.float32))


# Conversion.


def postprocess_function() -> Any:
    """A stand-in that the converter replaces by the custom operator, which it knows by this text."""
    options = [f'attr {{ key: "{key}" value {{ {value} }} }}' for key, value in POSTPROCESS_OPTIONS.items()]

    @tf.function(experimental_implements=" ".join([f'name: "{POSTPROCESS}"', *options]))
    def postprocess(boxes: Any, scores: Any, anchors: Any) -> tuple[Any, ...]:
        del boxes, scores, anchors
        one_each = tf.zeros((1, MAX_DETECTIONS))
        return tf.zeros((1, MAX_DETECTIONS, 4)), one_each, one_each, tf.zeros((1,))

    return postprocess


def save_detector(network: Any, folder: str) -> None:
    """Save the network with its last step, for exactly one picture, as TensorFlow saves models."""
    postprocess = postprocess_function()

    def detect(image: Any) -> dict[str, Any]:
        given = network(image, training=False)
        found = postprocess(given["boxes"], tf.sigmoid(given["scores"]), tf.constant(ANCHORS))
        return dict(zip(OUTPUT_NAMES, found, strict=True))

    archive = keras.export.ExportArchive()
    archive.track(network)
    taken = tf.TensorSpec((1, INPUT_SIDE, INPUT_SIDE, 3), tf.float32, "image")
    archive.add_endpoint("serve", detect, input_signature=[taken])
    archive.write_out(folder, verbose=False)


def with_ordered_outputs(model: bytes) -> bytes:
    """The model with its outputs in the order of the last operator's, which conversion does not keep."""
    parts = flatbuffer_utils.convert_bytearray_to_object(bytearray(model))
    graph = parts.subgraphs[0]
    graph.outputs = list(graph.operators[-1].outputs)
    for name, index in zip(OUTPUT_NAMES, graph.outputs, strict=True):
        graph.tensors[index].name = name.encode("utf-8")
    ordered = bytes(flatbuffer_utils.convert_object_to_bytearray(parts))
    return ordered


def convert(folder: str, name: str, calibration: FloatArray) -> bytes:
    """Convert the saved detector to the .tflite model of that name."""

    def calibration_inputs() -> Iterator[list[FloatArray]]:
        for picture in calibration:
            yield [picture[np.newaxis]]

    converter = tf.lite.TFLiteConverter.from_saved_model(folder)
    converter.allow_custom_ops = True
    if name == "int8":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = calibration_inputs
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = tf.int8
    return with_ordered_outputs(converter.convert())


def check_model(model: bytes, name: str) -> None:
    """Make sure that the model takes and gives what the evaluation expects."""
    interpreter = tf.lite.Interpreter(model_content=model)
    taken = interpreter.get_input_details()[0]
    expected_type = np.int8 if name == "int8" else np.float32
    if taken["dtype"] != expected_type or list(taken["shape"]) != [1, INPUT_SIDE, INPUT_SIDE, 3]:
        raise ValueError(f"{name}: input {taken['dtype']} {taken['shape']}")
    given = [(detail["dtype"], list(detail["shape"])) for detail in interpreter.get_output_details()]
    shapes = ([1, MAX_DETECTIONS, 4], [1, MAX_DETECTIONS], [1, MAX_DETECTIONS], [1])
    if given != [(np.float32, shape) for shape in shapes]:
        raise ValueError(f"{name}: outputs {given}")
    if name == "int8":
        scale, zero_point = taken["quantization"]
        # The evaluation feeds "pixel - 128", which is right for about this scale only.
        if abs(scale * MIDDLE - 1.0) > 0.01 or zero_point not in (-1, 0):
            raise ValueError(f"{name}: input scale {scale}, zero point {zero_point}")


# Measuring.


def prepare_here(path: Path, dtype: Any) -> npt.NDArray[Any]:
    """Turn an evaluation picture into an input tensor with the functions above."""
    pixels = read_pixels(path.read_bytes())[np.newaxis]
    if dtype == np.int8:
        return (pixels - np.float32(128)).astype(np.int8)
    tensor: FloatArray = normalise(pixels)
    return tensor


def prepare_with_evaltools(path: Path, dtype: Any) -> npt.NDArray[Any]:
    """Turn an evaluation picture into an input tensor as the installed evaluation does."""
    from evaltools import preprocess

    to_tensor = preprocess.ImageToTensor(INPUT_SIDE, INPUT_SIDE, np.dtype(dtype), crop_fraction=None)
    return to_tensor(preprocess.decode_image(path))


def detect_all(model: bytes, truth: Any, images_dir: Path) -> list[dict[str, Any]]:
    """What the model finds in the evaluation pictures, as COCO writes results."""
    interpreter = tf.lite.Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    taken = interpreter.get_input_details()[0]
    has_evaltools = importlib.util.find_spec("evaltools") is not None
    prepare = prepare_with_evaltools if has_evaltools else prepare_here
    results = []
    for image in truth.dataset["images"]:
        interpreter.set_tensor(taken["index"], prepare(images_dir / image["file_name"], taken["dtype"]))
        interpreter.invoke()
        outputs = [interpreter.get_tensor(detail["index"])[0] for detail in interpreter.get_output_details()]
        boxes, classes, scores, count = outputs
        for box, class_index, score in list(zip(boxes, classes, scores, strict=True))[: int(count)]:
            top, left, bottom, right = box * ([image["height"], image["width"]] * 2)
            found = [float(left), float(top), float(right - left), float(bottom - top)]
            which = {"image_id": image["id"], "category_id": int(class_index) + 1}
            results.append({**which, "bbox": found, "score": float(score)})
    return results


def measure(model: bytes, sample_dir: Path) -> float:
    """Mean average precision over the thresholds .50 to .95, as COCO defines it."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(sample_dir / "instances.json"))
        results = truth.loadRes(detect_all(model, truth, sample_dir / "images"))
        evaluation = COCOeval(truth, results, "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return float(evaluation.stats[0])


def main() -> None:
    """Read the command line, train, convert and measure."""
    parser = argparse.ArgumentParser(description="Train the detector of the embedded detection sample.")
    parser.add_argument("--output_dir", type=Path, default=Path("datasets/sample/detection"))
    arguments = parser.parse_args()
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    network, calibration = train_network()
    models_dir = arguments.output_dir / "models"
    models_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        save_detector(network, folder)
        for name in MODEL_NAMES:
            model = convert(folder, name, calibration)
            check_model(model, name)
            (models_dir / f"{name}.tflite").write_bytes(model)
            print(f"{name}: {len(model)} bytes, mAP {measure(model, arguments.output_dir):.3f}")


if __name__ == "__main__":
    main()
