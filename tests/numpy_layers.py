"""What operators of TensorFlow Lite compute, in NumPy from their definitions; pictures are NHWC, numbers float64."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Padding = Literal["SAME", "VALID"]


def relu6(values: Array) -> Array:
    """Nothing below 0 and nothing beyond 6."""
    return np.clip(values, 0, 6)


def softmax(logits: Array) -> Array:
    """Shares of 1 along the last axis."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    shares: Array = powers / powers.sum(-1, keepdims=True)
    return shares


def windows(image: Array, size: int, stride: int, padding: Padding) -> Array:
    """The squares of ``size`` that a kernel sees: [batch, rows, columns, channels, size, size]."""
    if padding == "SAME":
        edges = [same_padding(length, size, stride) for length in image.shape[1:3]]
        image = np.pad(image, [(0, 0), *edges, (0, 0)])
    rows = np.lib.stride_tricks.sliding_window_view(image, size, 1)[:, ::stride]
    seen: Array = np.lib.stride_tricks.sliding_window_view(rows, size, 2)[:, :, ::stride]
    return seen


def same_padding(length: int, size: int, stride: int) -> tuple[int, int]:
    """The zeros before and behind an axis: as many as its last window needs, the odd one behind."""
    steps = -(-length // stride)
    total = max(0, (steps - 1) * stride + size - length)
    return total // 2, total - total // 2


def conv(image: Array, weights: Array, bias: Array, stride: int = 1, padding: Padding = "SAME") -> Array:
    """CONV_2D: weights are [filters, size, size, channels]."""
    seen = windows(image.astype(float), weights.shape[1], stride, padding)
    result: Array = np.einsum("bhwcij,fijc->bhwf", seen, weights.astype(float)) + bias
    return result


def depthwise(image: Array, weights: Array, bias: Array) -> Array:
    """DEPTHWISE_CONV_2D with a multiplier of 1 and a stride of 1: weights are [1, size, size, channels]."""
    seen = windows(image.astype(float), weights.shape[1], 1, "SAME")
    result: Array = np.einsum("bhwcij,ijc->bhwc", seen, weights[0].astype(float)) + bias
    return result


def dense(features: Array, weights: Array, bias: Array) -> Array:
    """FULLY_CONNECTED: weights are [outputs, inputs]."""
    result: Array = features.astype(float) @ weights.astype(float).T + bias
    return result


def svdf(frames: Array, feature: Array, time: Array, bias: Array) -> Array:
    """SVDF of rank 1 over consecutive frames [count, inputs]: filters remember results, which ``time`` weighs."""
    state = np.zeros(time.shape)
    results = []
    for frame in frames.astype(float):
        state = np.concatenate([state[:, 1:], (feature @ frame)[:, None]], axis=1)
        results.append((state * time).sum(1) + bias)
    return np.array(results)
