"""The embedded sample: pictures and models to try the evaluations with, without any download.

Classification
--------------

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

Detection
---------

* 60 JPEG pictures in ``detection``, 160 to 320 pixels per side, with up to six figures of seven
  classes in each. Three pictures are empty, two objects are crowd regions.
* ``instances.json``: what is in the pictures, in the format of the COCO instances.
* ``labels.txt``: the names of the categories, each on the line of its id.
* One small detector in two flavours, float32 and int8. Input ``[1, 128, 128, 3]``, to which pictures
  are stretched without a crop; 10 detections per picture, by TFLite_Detection_PostProcess.

mAP (IoU 0.50:0.95) on the 60 pictures, on the CPU with one thread, by the kernels that ran:

=======  ===================  =========  =======  =======
model    runtime              reference  builtin  XNNPACK
=======  ===================  =========  =======  =======
float32  both                 0.4223     0.4223   0.4223
int8     tflite_runtime 2.14  0.4147     0.4130   0.4130
int8     ai_edge_litert 2.3   0.4147     0.4130   0.4155
=======  ===================  =========  =======  =======

Smaller tasks
-------------

Each has a model of a few operators whose weights are written by hand.

* ``segmentation``: 10 pictures of 48 by 48 pixels with coloured discs, and ``masks`` of their classes.
* ``keypoints``: 10 pictures with up to 17 discs, whose places ``annotations.json`` has as keypoints of a person.
* ``noise``: 10 pictures, and the same without noise in ``targets``.
* ``audio``: 15 recordings of three tones in noise, in a folder for each label.
* ``text``: 20 rows of tokens with a label in ``texts.csv``.

Everything here is made by the scripts in ``scripts/sample`` of the repository.
"""

from __future__ import annotations

from pathlib import Path

__all__ = [
    "DETECTION_MODELS",
    "MODELS",
    "detection_annotations_file",
    "detection_images_dir",
    "detection_labels_file",
    "detection_model_file",
    "ground_truth_file",
    "images_dir",
    "labels_file",
    "model_file",
]

MODELS: tuple[str, ...] = ("float32", "float16", "dynamic_range", "int8")
"""The names that :func:`model_file` knows."""

DETECTION_MODELS: tuple[str, ...] = ("float32", "int8")
"""The names that :func:`detection_model_file` knows."""

_SAMPLE_DIR = Path(__file__).resolve().parent
_DETECTION_DIR = _SAMPLE_DIR / "detection"


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
    return _model_file(_SAMPLE_DIR, name, MODELS, "sample model")


def detection_images_dir() -> Path:
    """The folder of the pictures of the detection sample, and of nothing else."""
    return _DETECTION_DIR / "images"


def detection_annotations_file() -> Path:
    """What is to be found in the pictures, in the format of the COCO instances.

    >>> import json
    >>> sorted(json.loads(detection_annotations_file().read_text(encoding="utf-8")))
    ['annotations', 'categories', 'images']
    """
    return _DETECTION_DIR / "instances.json"


def detection_labels_file() -> Path:
    """The names of the categories, each on the line of its id; line 0 stands for none.

    >>> detection_labels_file().read_text(encoding="utf-8").splitlines()[:3]
    ['???', 'checkerboard', 'cross']
    """
    return _DETECTION_DIR / "labels.txt"


def detection_model_file(name: str) -> Path:
    """The .tflite file of one of :data:`DETECTION_MODELS`; any other name is a ValueError.

    >>> [detection_model_file(name).name for name in DETECTION_MODELS]
    ['float32.tflite', 'int8.tflite']
    """
    return _model_file(_DETECTION_DIR, name, DETECTION_MODELS, "detection model of the sample")


def _model_file(folder: Path, name: str, names: tuple[str, ...], what: str) -> Path:
    if name not in names:
        raise ValueError(f"no {what} is named {name!r}; the names are {', '.join(names)}")
    return folder / "models" / f"{name}.tflite"
