"""Train the small convnet of the embedded sample and convert it to four .tflite models.

    python scripts/sample/train_models.py --output_dir datasets/sample

The training pictures come from ``draw_pictures.py`` with other seeds than the evaluation pictures
have.  They are drawn anew on every run and never stored.  ``draw_pictures.py`` has to run first:
its pictures measure the finished models.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf
from PIL import Image

import draw_pictures
from figures import CLASS_NAMES

ByteArray = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]

INPUT_SIDE = 64
CROP_SHARE = 0.875
MIDDLE = 127.5

TRAINING_COUNT = 12_000
VALIDATION_COUNT = 1_200
CALIBRATION_COUNT = 300

SEED = 11
EPOCHS = 40
BATCH_SIZE = 64
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-3

STEM_CHANNELS = 24
BLOCK_CHANNELS = (48, 96, 128)

MODEL_NAMES = ("float32", "float16", "dynamic_range", "int8")


# Preprocessing, the same steps as the evaluation takes.


def round_half_up(value: float) -> int:
    """Round a value that is not negative; halves go up (Python's own ``round`` goes to even)."""
    return int(np.floor(value + 0.5))


def central_square(pixels: ByteArray) -> ByteArray:
    """Cut the largest square out of the central 87.5 % of a picture."""
    height, width = pixels.shape[:2]
    side = min(round_half_up(CROP_SHARE * height), round_half_up(CROP_SHARE * width))
    top = round_half_up((height - side) / 2)
    left = round_half_up((width - side) / 2)
    return pixels[top : top + side, left : left + side]


def resize_bilinear(pixels: ByteArray, side: int) -> FloatArray:
    """Resize a square picture as TensorFlow 1 did: no antialiasing, corners not aligned."""
    old_side = pixels.shape[0]
    position = np.arange(side, dtype=np.float32) * np.float32(old_side / side)
    low = np.floor(position).astype(np.int64)
    high = np.minimum(low + 1, old_side - 1)
    part = position - low.astype(np.float32)
    values = pixels.astype(np.float32)
    down = part[:, np.newaxis, np.newaxis]
    rows = values[low] * (1 - down) + values[high] * down
    across = part[np.newaxis, :, np.newaxis]
    resized: FloatArray = rows[:, low] * (1 - across) + rows[:, high] * across
    return resized


def read_pixels(jpeg: bytes) -> FloatArray:
    """Decode, crop and resize a picture; the values still run from 0 to 255."""
    with Image.open(io.BytesIO(jpeg)) as image:
        pixels = np.asarray(image.convert("RGB"))
    return resize_bilinear(central_square(pixels), INPUT_SIDE)


def normalise(pixels: FloatArray) -> FloatArray:
    """Bring values from 0..255 to -1..1, which is what the network takes."""
    normalised: FloatArray = (pixels - np.float32(MIDDLE)) / np.float32(MIDDLE)
    return normalised


# Pictures for training.


def draw_series(seed: int, count: int) -> tuple[ByteArray, IntArray]:
    """Draw and prepare ``count`` pictures; the classes take turns.

    Each picture passes through JPEG, because the evaluation pictures do as well.  The result is
    kept as bytes, which take a quarter of the memory of floats.
    """
    classes = np.arange(count, dtype=np.int64) % len(CLASS_NAMES)
    inputs = np.empty((count, INPUT_SIDE, INPUT_SIDE, 3), dtype=np.uint8)
    for number in range(count):
        jpeg = draw_pictures.draw_jpeg(int(classes[number]), seed, number)
        inputs[number] = np.rint(read_pixels(jpeg))
    return inputs, classes


def vary(inputs: Any, classes: Any) -> tuple[Any, Any]:
    """Mirror and turn a batch at random; no figure changes its class by that."""
    inputs = tf.image.random_flip_left_right(inputs)
    inputs = tf.image.random_flip_up_down(inputs)
    if tf.random.uniform(()) < 0.5:
        inputs = tf.transpose(inputs, [0, 2, 1, 3])
    return (tf.cast(inputs, tf.float32) - MIDDLE) / MIDDLE, classes


def training_batches(inputs: ByteArray, classes: IntArray) -> Any:
    """The training pictures in a new order and with new variations in every epoch."""
    pictures = tf.data.Dataset.from_tensor_slices((inputs, classes))
    pictures = pictures.shuffle(len(classes), seed=SEED)
    return pictures.batch(BATCH_SIZE, drop_remainder=True).map(vary).prefetch(2)


# The network.


def activate(tensor: Any) -> Any:
    """Batch normalisation, then ReLU6; the converter folds both into the convolution before."""
    return keras.layers.ReLU(6.0)(keras.layers.BatchNormalization()(tensor))


def separable_block(tensor: Any, channels: int, stride: int) -> Any:
    """A depthwise 3x3 and a pointwise convolution, without the last activation."""
    tensor = keras.layers.DepthwiseConv2D(3, strides=stride, padding="same", use_bias=False)(tensor)
    tensor = activate(tensor)
    tensor = keras.layers.Conv2D(channels, 1, use_bias=False)(tensor)
    return keras.layers.BatchNormalization()(tensor)


def build_network() -> Any:
    """A stem, then per stage one block that halves the picture and one with a residual ADD."""
    inputs = keras.layers.Input((INPUT_SIDE, INPUT_SIDE, 3))
    tensor = keras.layers.Conv2D(STEM_CHANNELS, 3, strides=2, padding="same", use_bias=False)(inputs)
    tensor = activate(tensor)
    for channels in BLOCK_CHANNELS:
        tensor = keras.layers.ReLU(6.0)(separable_block(tensor, channels, stride=2))
        residual = separable_block(tensor, channels, stride=1)
        tensor = keras.layers.ReLU(6.0)(keras.layers.Add()([tensor, residual]))
    tensor = keras.layers.GlobalAveragePooling2D()(tensor)
    tensor = keras.layers.Dropout(0.1)(tensor)
    tensor = keras.layers.Dense(len(CLASS_NAMES))(tensor)
    return keras.Model(inputs, keras.layers.Softmax()(tensor))


def train_network() -> tuple[Any, FloatArray]:
    """Train the network; returns it together with inputs to calibrate the int8 model."""
    inputs, classes = draw_series(draw_pictures.TRAINING_SEED, TRAINING_COUNT)
    check_inputs, check_classes = draw_series(draw_pictures.VALIDATION_SEED, VALIDATION_COUNT)
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
        loss=keras.losses.SparseCategoricalCrossentropy(),
        metrics=["accuracy"],
    )
    network.fit(
        training_batches(inputs, classes),
        validation_data=(normalise(check_inputs.astype(np.float32)), check_classes),
        epochs=EPOCHS,
        verbose=2,
    )
    return network, normalise(inputs[:CALIBRATION_COUNT].astype(np.float32))


# Conversion.


def with_fixed_batch(network: Any) -> Any:
    """The same network for exactly one picture, so that the models have a fixed input shape."""
    inputs = keras.layers.Input((INPUT_SIDE, INPUT_SIDE, 3), batch_size=1)
    fixed = keras.models.clone_model(network, input_tensors=inputs)
    fixed.set_weights(network.get_weights())
    return fixed


def convert(network: Any, name: str, calibration: FloatArray) -> bytes:
    """Convert the network to the .tflite model of that name."""

    def calibration_inputs() -> Iterator[list[FloatArray]]:
        for picture in calibration:
            yield [picture[np.newaxis]]

    converter = tf.lite.TFLiteConverter.from_keras_model(network)
    if name != "float32":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if name == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if name == "dynamic_range":
        # One scale for each channel of the dense layer would need FULLY_CONNECTED version 12,
        # which interpreters older than TensorFlow 2.17 refuse to load.
        converter._experimental_disable_per_channel_quantization_for_dense_layers = True
    if name == "int8":
        converter.representative_dataset = calibration_inputs
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = tf.int8
        converter.inference_output_type = tf.int8
    model: bytes = converter.convert()
    return model


def check_model(model: bytes, name: str) -> None:
    """Make sure that the model takes and gives what the evaluation expects."""
    interpreter = tf.lite.Interpreter(model_content=model)
    taken = interpreter.get_input_details()[0]
    given = interpreter.get_output_details()[0]
    expected_type = np.int8 if name == "int8" else np.float32
    if taken["dtype"] != expected_type or given["dtype"] != expected_type:
        raise ValueError(f"{name}: input {taken['dtype']}, output {given['dtype']}")
    if list(taken["shape"]) != [1, INPUT_SIDE, INPUT_SIDE, 3]:
        raise ValueError(f"{name}: input shape {taken['shape']}")
    if list(given["shape"]) != [1, len(CLASS_NAMES)]:
        raise ValueError(f"{name}: output shape {given['shape']}")
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
    return normalise(pixels)


def prepare_with_evaltools(path: Path, dtype: Any) -> npt.NDArray[Any]:
    """Turn an evaluation picture into an input tensor as the installed evaluation does."""
    from evaltools import preprocess

    to_tensor = preprocess.ImageToTensor(INPUT_SIDE, INPUT_SIDE, np.dtype(dtype))
    return to_tensor(preprocess.decode_image(path))


def measure(model: bytes, sample_dir: Path) -> float:
    """The share of evaluation pictures whose class the model names first."""
    interpreter = tf.lite.Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    taken = interpreter.get_input_details()[0]
    given = interpreter.get_output_details()[0]
    truth = (sample_dir / "ground_truth.txt").read_text(encoding="utf-8").split()
    has_evaltools = importlib.util.find_spec("evaltools") is not None
    prepare = prepare_with_evaltools if has_evaltools else prepare_here
    paths = sorted((sample_dir / "images").glob("*.jpg"))
    right = 0
    for path, class_name in zip(paths, truth, strict=True):
        interpreter.set_tensor(taken["index"], prepare(path, taken["dtype"]))
        interpreter.invoke()
        best = int(np.argmax(interpreter.get_tensor(given["index"])[0]))
        right += CLASS_NAMES[best] == class_name
    return right / len(truth)


def main() -> None:
    """Read the command line, train, convert and measure."""
    parser = argparse.ArgumentParser(description="Train the models of the embedded sample.")
    parser.add_argument("--output_dir", type=Path, default=Path("datasets/sample"))
    arguments = parser.parse_args()
    keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    network, calibration = train_network()
    fixed = with_fixed_batch(network)
    models_dir = arguments.output_dir / "models"
    models_dir.mkdir(parents=True, exist_ok=True)
    for name in MODEL_NAMES:
        model = convert(fixed, name, calibration)
        check_model(model, name)
        (models_dir / f"{name}.tflite").write_bytes(model)
        accuracy = measure(model, arguments.output_dir)
        print(f"{name}: {len(model)} bytes, Top-1 {accuracy:.3f}")


if __name__ == "__main__":
    main()
