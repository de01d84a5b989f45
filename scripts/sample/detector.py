"""The small detector of the embedded detection sample: its anchors, what it learns, and its layers.

It is a single-shot detector: at every anchor, a box that is fixed beforehand, it gives a score for
each class and a correction of the box.

Boxes are (top, left, bottom, right) from 0 to 1 throughout, as the finished models give them.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from draw_scenes import OBJECT_NAMES

FloatArray = npt.NDArray[np.float32]

INPUT_SIDE = 128

STEM_CHANNELS = 16
BLOCK_CHANNELS = (32, 64, 96, 96)
PYRAMID_CHANNELS = 48

# For each feature map: cells per side, and the sizes of its small and its large square anchors.
MAPS = ((16, 0.10, 0.17), (8, 0.26, 0.40), (4, 0.55, 0.80))
ANCHORS_PER_CELL = 4
ENCODING_SCALES = (10.0, 10.0, 5.0, 5.0)
"""Of the corrections: down, across, height, width."""

MATCH_FROM = 0.5
IGNORE_FROM = 0.4
FOCUS = 1.5
FOREGROUND_SHARE = 0.5
SCORE_WEIGHT = 4.0


# Anchors.


def make_anchors() -> FloatArray:
    """All anchors as (middle down, middle across, height, width), in the order of the network's output."""
    anchors = []
    for cells, small, large in MAPS:
        middle = float(np.sqrt(small * large))
        long, short = middle * np.sqrt(2.0), middle / np.sqrt(2.0)
        sizes = ((small, small), (large, large), (long, short), (short, long))
        for row in range(cells):
            for column in range(cells):
                anchors += [((row + 0.5) / cells, (column + 0.5) / cells, *size) for size in sizes]
    return np.array(anchors, dtype=np.float32)


ANCHORS = make_anchors()


def overlaps(boxes: Any) -> Any:
    """Intersection over union of every anchor with every box, [anchors, boxes]."""
    low = tf.constant((ANCHORS[:, :2] - 0.5 * ANCHORS[:, 2:])[:, tf.newaxis])
    high = tf.constant((ANCHORS[:, :2] + 0.5 * ANCHORS[:, 2:])[:, tf.newaxis])
    common = tf.maximum(tf.minimum(high, boxes[:, 2:]) - tf.maximum(low, boxes[:, :2]), 0.0)
    shared = tf.reduce_prod(common, axis=2)
    either = tf.reduce_prod(high - low, axis=2) + tf.reduce_prod(boxes[:, 2:] - boxes[:, :2], axis=1) - shared
    return shared / either


def encode(boxes: Any) -> Any:
    """What the network has to say at each anchor to give the box of the same row."""
    middles = 0.5 * (boxes[:, :2] + boxes[:, 2:])
    sizes = tf.maximum(boxes[:, 2:] - boxes[:, :2], 1e-3)
    shift = (middles - ANCHORS[:, :2]) / ANCHORS[:, 2:]
    growth = tf.math.log(sizes / ANCHORS[:, 2:])
    return tf.concat([shift, growth], axis=1) * tf.constant(ENCODING_SCALES)


def make_targets(boxes: Any, classes: Any) -> dict[str, Any]:
    """What to learn at every anchor.

    ``boxes`` [anchors, 5]: the encoded box, and 1 where there is one. ``scores`` [anchors,
    classes + 1]: one-hot classes, and 1 where they count; anchors that fit a figure neither well
    nor badly do not.
    """
    overlap = tf.where(classes >= 0, overlaps(boxes), -1.0)
    best_box = tf.argmax(overlap, axis=1, output_type=tf.int32)
    fit = tf.reduce_max(overlap, axis=1)
    # The best anchor of every figure takes it, however badly it fits.
    best_anchor = tf.argmax(overlap, axis=0, output_type=tf.int32)
    is_best = tf.one_hot(best_anchor, len(ANCHORS), axis=0) * tf.cast(classes >= 0, tf.float32)
    is_taken = tf.reduce_max(is_best, axis=1) > 0.5
    best_box = tf.where(is_taken, tf.argmax(is_best, axis=1, output_type=tf.int32), best_box)
    is_found = is_taken | (fit >= MATCH_FROM)
    counts = is_found | (fit < IGNORE_FROM)
    found = tf.cast(is_found, tf.float32)[:, tf.newaxis]
    wanted = tf.one_hot(tf.gather(classes, best_box), len(OBJECT_NAMES)) * found
    return {
        "boxes": tf.concat([encode(tf.gather(boxes, best_box)), found], axis=1),
        "scores": tf.concat([wanted, tf.cast(counts, tf.float32)[:, tf.newaxis]], axis=1),
    }


def box_loss(wanted: Any, given: Any) -> Any:
    """Huber loss of the encoded boxes, where there is one."""
    found = wanted[..., 4]
    away = tf.abs(wanted[..., :4] - given)
    loss = tf.where(away < 1.0, 0.5 * away**2, away - 0.5)
    return tf.reduce_sum(tf.reduce_sum(loss, axis=-1) * found) / tf.maximum(tf.reduce_sum(found), 1.0)


def score_loss(wanted: Any, given: Any) -> Any:
    """Focal loss of the classes: what is right already hardly counts."""
    classes, counts = wanted[..., :-1], wanted[..., -1]
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=classes, logits=given)
    wrong = tf.abs(classes - tf.sigmoid(given))
    share = classes * FOREGROUND_SHARE + (1.0 - classes) * (1.0 - FOREGROUND_SHARE)
    loss = tf.reduce_sum(share * wrong**FOCUS * entropy, axis=-1) * counts
    return SCORE_WEIGHT * tf.reduce_sum(loss) / tf.maximum(tf.reduce_sum(classes), 1.0)


# The network.


def activate(tensor: Any) -> Any:
    """Batch normalisation, then ReLU6; the converter folds both into the convolution before."""
    return keras.layers.ReLU(6.0)(keras.layers.BatchNormalization()(tensor))


def separable_block(tensor: Any, channels: int, stride: int = 1) -> Any:
    """A depthwise 3x3 and a pointwise convolution, without the last activation."""
    tensor = keras.layers.DepthwiseConv2D(3, strides=stride, padding="same", use_bias=False)(tensor)
    tensor = activate(tensor)
    tensor = keras.layers.Conv2D(channels, 1, use_bias=False)(tensor)
    return keras.layers.BatchNormalization()(tensor)


def feature_maps(tensor: Any) -> list[Any]:
    """Three maps, the finest first, each of which has seen the coarser ones."""
    tensor = keras.layers.Conv2D(STEM_CHANNELS, 3, strides=2, padding="same", use_bias=False)(tensor)
    tensor = activate(tensor)
    stages = []
    for channels in BLOCK_CHANNELS:
        tensor = keras.layers.ReLU(6.0)(separable_block(tensor, channels, stride=2))
        residual = separable_block(tensor, channels)
        tensor = keras.layers.ReLU(6.0)(keras.layers.Add()([tensor, residual]))
        stages.append(tensor)
    maps: list[Any] = []
    for stage in reversed(stages[-len(MAPS) :]):
        own = keras.layers.Conv2D(PYRAMID_CHANNELS, 1, use_bias=False)(stage)
        own = keras.layers.BatchNormalization()(own)
        if maps:
            own = keras.layers.Add()([own, keras.layers.UpSampling2D(2, interpolation="bilinear")(maps[0])])
        maps.insert(0, keras.layers.ReLU(6.0)(own))
    return maps


def build_network() -> Any:
    """The detector up to the encoded boxes [anchors, 4] and the scores before the sigmoid [anchors, classes]."""
    inputs = keras.layers.Input((INPUT_SIDE, INPUT_SIDE, 3))
    rarely = keras.initializers.Constant(-4.0)
    boxes, scores = [], []
    for tensor in feature_maps(inputs):
        head = keras.layers.ReLU(6.0)(separable_block(tensor, PYRAMID_CHANNELS))
        box = keras.layers.Conv2D(4 * ANCHORS_PER_CELL, 1)(head)
        boxes.append(keras.layers.Reshape((-1, 4))(box))
        score = keras.layers.Conv2D(len(OBJECT_NAMES) * ANCHORS_PER_CELL, 1, bias_initializer=rarely)(head)
        scores.append(keras.layers.Reshape((-1, len(OBJECT_NAMES)))(score))
    outputs = {
        "boxes": keras.layers.Concatenate(axis=1, name="boxes")(boxes),
        "scores": keras.layers.Concatenate(axis=1, name="scores")(scores),
    }
    return keras.Model(inputs, outputs)
