"""Pictures per second of the ImageNet task beside the rate at which the runtime alone could go.

``python benchmarks/imagenet_throughput.py [--model_file=... --ground_truth_images_path=... ...]``

Without flags the embedded sample is measured. Three rates, each the median of several rounds that take turns:

* raw, one thread: ``invoke()`` of one interpreter on ready inputs;
* raw, all cores: one interpreter per core, each in a thread of its own (``invoke()`` releases the GIL): the limit;
* evaltools: the whole pass, from JPEG to ranked answer, with one configuration and no reference.
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

from evaltools.cli.flags import parse_flags
from evaltools.configuration import Configuration
from evaltools.datasets.labels import read_labels
from evaltools.datasets.sample import ground_truth_file, images_dir, labels_file, model_file
from evaltools.engine import run_pass
from evaltools.model import ModelFile, read_model
from evaltools.parameter import Parameter
from evaltools.runtime import open_session
from evaltools.runtime.session import Array
from evaltools.tasks.imagenet import ImagenetOptions, ImagenetTask, build_task, load_labelled_images

PARAMETERS = (
    Parameter("model_file", "string", str(model_file("int8")), "The .tflite model."),
    Parameter("ground_truth_images_path", "string", str(images_dir()), "Folder of pictures."),
    Parameter("ground_truth_labels", "string", str(ground_truth_file()), "Labels of the pictures."),
    Parameter("model_output_labels", "string", str(labels_file()), "Labels of the outputs."),
    Parameter("configuration", "string", "", "Flags of the configuration to measure."),
    Parameter("rounds", "int32", 5, "Rounds of each measurement."),
)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("imagenet_throughput", "", "", {"flags": PARAMETERS}, arguments)
    model = read_model(Path(flags.text("model_file")))
    options = ImagenetOptions(
        Path(flags.text("ground_truth_images_path")),
        Path(flags.text("ground_truth_labels")),
        Path(flags.text("model_output_labels")),
    )
    labels = read_labels(options.model_output_labels, "--model_output_labels")
    task = build_task(model, load_labelled_images(options), labels.lines, options)
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


def preprocessing_rate(task: ImagenetTask) -> float:
    """Pictures per second from file to tensor, on one thread."""
    start = time.perf_counter()
    checksum = sum(int(np.asarray(task.prepare(example).inputs[0]).size) for example in task.examples)
    assert checksum > 0
    return len(task.examples) / (time.perf_counter() - start)


def pass_rate(model: ModelFile, configuration: Configuration, task: ImagenetTask) -> float:
    """Pictures per second of a pass with one configuration."""
    session = open_session(model, configuration)
    outcome = run_pass(task, {configuration.name: session})
    session.close()
    return len(task.examples) / outcome.elapsed_s


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
