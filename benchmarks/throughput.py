"""Pictures per second of a task beside the rate at which the runtime alone could go.

``python benchmarks/throughput.py [--task=coco --model_file=... --ground_truth_images_path=... ...]``

Without flags the embedded sample is measured. Four rates, each the median of several rounds that take turns:

* raw, one thread: ``invoke()`` of one interpreter on ready inputs;
* raw, all cores: one interpreter per core, each in a thread of its own (``invoke()`` releases the GIL): the limit;
* decode and preprocess: from JPEG to input, on one thread;
* evaltools: the whole pass, from JPEG to what is kept of the outputs, with one configuration and no reference.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from evaltools.cli.flags import GivenFlags, parse_flags
from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.datasets.labels import read_labels
from evaltools.engine import run_pass
from evaltools.errors import UsageError
from evaltools.model import ModelFile, read_model
from evaltools.parameter import Parameter
from evaltools.runtime import open_session
from evaltools.runtime.session import Array
from evaltools.tasks.coco import CocoOptions, CocoTask, detector_input
from evaltools.tasks.detection_outputs import operator_output_map
from evaltools.tasks.detection_truth import load_pictures
from evaltools.tasks.imagenet import ImagenetOptions, ImagenetTask, build_task, load_labelled_images

PARAMETERS = (
    Parameter("task", "string", "imagenet", "What to measure.", choices=("imagenet", "coco")),
    Parameter("model_file", "string", "", "The .tflite model; without it, the sample's int8 model."),
    Parameter("ground_truth_images_path", "string", "", "Folder of pictures; without it, the sample's."),
    Parameter("ground_truth_labels", "string", str(sample.ground_truth_file()), "imagenet: labels of the pictures."),
    Parameter("model_output_labels", "string", str(sample.labels_file()), "imagenet: labels of the outputs."),
    Parameter("configuration", "string", "", "Flags of the configuration to measure."),
    Parameter("rounds", "int32", 5, "Rounds of each measurement."),
)
IMAGENET_ONLY = ("ground_truth_labels", "model_output_labels")
PictureTask = ImagenetTask | CocoTask


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("throughput", "", "", {"flags": PARAMETERS}, arguments)
    ignored = [name for name in IMAGENET_ONLY if name in flags]
    if flags.text("task") == "coco" and ignored:
        raise UsageError(f"--{ignored[0]} is for --task=imagenet: --task=coco reads no labels; leave it out")
    model, task = coco_task(flags) if flags.text("task") == "coco" else imagenet_task(flags)
    configuration = Configuration.from_text("measured", flags.text("configuration"))
    inputs = [task.prepare(example).inputs for example in task.examples]
    cores = os.cpu_count() or 1
    measurements: dict[str, Callable[[], float]] = {
        "raw invoke(), 1 thread": lambda: raw_rate(model, configuration, inputs, 1),
        f"raw invoke(), {cores} threads": lambda: raw_rate(model, configuration, inputs, cores),
        "decode and preprocess": lambda: preprocessing_rate(task),
        "evaltools, whole pass": lambda: pass_rate(model, configuration, task),
    }
    rates: dict[str, list[float]] = {name: [] for name in measurements}
    for _ in range(flags.number("rounds")):
        for name, measure in measurements.items():
            rates[name].append(measure())
    limit = statistics.median(rates[f"raw invoke(), {cores} threads"])
    print(f"{model.path.name}, {len(task.examples)} pictures, {cores} cores, median of {flags.number('rounds')} rounds")
    for name, values in rates.items():
        median = statistics.median(values)
        spread = f"{min(values):8.1f} .. {max(values):8.1f}"
        print(f"{name:<24} {median:8.1f}/s   {spread}   {median / limit:.2f} of the limit")
    return 0


def imagenet_task(flags: GivenFlags) -> tuple[ModelFile, ImagenetTask]:
    """A classifier and its labelled pictures."""
    model = read_model(flags.path("model_file") or sample.model_file("int8"))
    options = ImagenetOptions(
        flags.path("ground_truth_images_path") or sample.images_dir(),
        Path(flags.text("ground_truth_labels")),
        Path(flags.text("model_output_labels")),
    )
    labels = read_labels(options.model_output_labels, "--model_output_labels")
    return model, build_task(model, load_labelled_images(options), labels.lines, options)


def coco_task(flags: GivenFlags) -> tuple[ModelFile, CocoTask]:
    """A detector that ends in TFLite_Detection_PostProcess, and pictures."""
    model = read_model(flags.path("model_file") or sample.detection_model_file("int8"))
    outputs = operator_output_map(model)
    if outputs is None:
        raise UsageError(f"{model.path} does not end in TFLite_Detection_PostProcess; give a detector that does")
    options = CocoOptions(flags.path("ground_truth_images_path") or sample.detection_images_dir())
    pictures = load_pictures(options.ground_truth_images_path, None, None)
    return model, CocoTask(model, pictures, detector_input(model, options), outputs, score_threshold=0.0)


def raw_rate(model: ModelFile, configuration: Configuration, inputs: list[tuple[Array, ...]], threads: int) -> float:
    """Inferences per second of ``threads`` sessions side by side on ready inputs."""
    sessions = [open_session(model, configuration) for _ in range(threads)]
    shares = [inputs[index::threads] for index in range(threads)]
    for session in sessions:
        session.run(inputs[0])
    with ThreadPoolExecutor(threads) as pool:
        start = time.perf_counter()
        list(pool.map(lambda job: [job[0].run(values) for values in job[1]], zip(sessions, shares, strict=True)))
        elapsed = time.perf_counter() - start
    for session in sessions:
        session.close()
    return len(inputs) / elapsed


def preprocessing_rate(task: PictureTask) -> float:
    """Pictures per second from file to tensor, on one thread."""
    start = time.perf_counter()
    checksum = sum(int(np.asarray(task.prepare(example).inputs[0]).size) for example in task.examples)
    assert checksum > 0
    return len(task.examples) / (time.perf_counter() - start)


def pass_rate(model: ModelFile, configuration: Configuration, task: PictureTask) -> float:
    """Pictures per second of a pass with one configuration."""
    session = open_session(model, configuration)
    outcome = run_pass(task, {configuration.name: session})
    session.close()
    return len(task.examples) / outcome.elapsed_s


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
