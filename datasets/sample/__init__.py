"""The embedded sample: pictures and models to try the evaluation with, without any download.

* 200 JPEG pictures, 120 to 240 pixels per side, each with one of twelve drawn figures (stripes,
  star, spiral ...) on a busy background. There are landscape, portrait and square ones, colour and
  greyscale, baseline and progressive, 4:2:0 and 4:4:4.
* ``labels.txt``: the names of the classes, one per line, in the order of the models' output.
* ``ground_truth.txt``: the class of each picture, one per line, by sorted file name.
* One small convnet in four flavours. Input ``[1, 64, 64, 3]``, output ``[1, 12]``; the operators
  are CONV_2D, DEPTHWISE_CONV_2D, ADD, MEAN, FULLY_CONNECTED and SOFTMAX.

Accuracy on the 200 pictures, on the CPU with one thread. Both tflite_runtime 2.14 (with and without
XNNPACK) and ai_edge_litert 2.3 give these numbers:

==============  =========================  =====  =====
model           what differs               Top-1  Top-5
==============  =========================  =====  =====
float32         nothing                    0.910  0.990
float16         weights are float16        0.910  0.990
dynamic_range   most weights are int8      0.910  0.990
int8            all is int8, input/output  0.905  0.990
==============  =========================  =====  =====

The int8 model takes ``pixel - 128``; the others take ``(pixel - 127.5) / 127.5``.

Everything here is made by the scripts in ``scripts/sample`` of the repository.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["MODELS", "ground_truth_file", "images_dir", "labels_file", "model_file"]

MODELS: tuple[str, ...] = ("float32", "float16", "dynamic_range", "int8")
"""The names that :func:`model_file` knows."""

_SAMPLE_DIR = Path(__file__).resolve().parent


def images_dir() -> Path:
    """The folder of the pictures, and of nothing else."""
    return _SAMPLE_DIR / "images"


def labels_file() -> Path:
    """The class names in the order of the models' output.

    >>> labels_file().read_text(encoding="utf-8").splitlines()[:3]
    ['bricks', 'checkerboard', 'cross']
    """
    return _SAMPLE_DIR / "labels.txt"


def ground_truth_file() -> Path:
    """The class name of each picture, in the order of the sorted file names."""
    return _SAMPLE_DIR / "ground_truth.txt"


def model_file(name: str) -> Path:
    """The .tflite file of one of :data:`MODELS`; any other name is a ValueError.

    >>> [model_file(name).name for name in MODELS]
    ['float32.tflite', 'float16.tflite', 'dynamic_range.tflite', 'int8.tflite']
    """
    if name not in MODELS:
        raise ValueError(f"no sample model is named {name!r}; the names are {', '.join(MODELS)}")
    return _SAMPLE_DIR / "models" / f"{name}.tflite"
