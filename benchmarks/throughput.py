"""Pictures per second of a task beside the rate at which the runtime alone could go.

``python -m benchmarks throughput [--task=coco --model_file=... --ground_truth_images_path=... ...]``

Without flags the embedded sample is measured. Six rates, each the median of several rounds that take turns; a ratio
is the median of those of the rounds, so that a machine that becomes slower or faster meanwhile says little:

* raw, one thread: ``invoke()`` of one interpreter on ready inputs;
* raw, all cores: one interpreter per core, each in a thread of its own (``invoke()`` releases the GIL);
* Pillow decode + invoke, all cores: each thread decodes a picture and runs a ready input, without crop, resize and
  anything else: the limit;
* evaltools: the whole pass, from JPEG to the record in the journal, with one configuration and no reference, by one
  worker per core and by one, in steady state: the processes that decode and run have done so once;
* decode and preprocess: from JPEG to input, in one process.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from msgspec import to_builtins
from PIL import Image

from evaltools.command import TaskCommand
from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.engine.execution import available_cores, sessions_of_workers
from evaltools.engine.journal import temporary_journal
from evaltools.engine.ledger import Ledger
from evaltools.engine.opening import Opened, open_all
from evaltools.engine.preparation import preparers
from evaltools.engine.run import Workers, run_examples
from evaltools.engine.steps import Prepared, Steps
from evaltools.errors import UsageError
from evaltools.model import ModelFile, read_model
from evaltools.parameter import Parameter
from evaltools.request.flags import GivenFlags, parse_flags
from evaltools.runtime import Session, open_session
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.session import Array
from evaltools.tasks import coco, imagenet
from evaltools.tasks.coco.outputs import operator_output_map
from evaltools.tasks.coco.reading import Choice
from evaltools.tasks.framework import loaded_of, own_options
from evaltools.tasks.framework.definition import Setting
from evaltools.tasks.framework.options import values_of
from evaltools.tasks.framework.steps import recipe_of, steps_of
from evaltools.tasks.framework.task import make_task, tensors_of_models

PARAMETERS = (
    Parameter("task", "What to measure.", default="imagenet", choices=("imagenet", "coco")),
    Parameter("model_file", "The .tflite model; without it, the sample's int8 model."),
    Parameter("ground_truth_images_path", "Folder of pictures; without it, the sample's."),
    Parameter("ground_truth_labels", "imagenet: labels of the pictures.", default=str(sample.ground_truth_file())),
    Parameter("model_output_labels", "imagenet: labels of the outputs.", default=str(sample.labels_file())),
    Parameter("configuration", "Flags of the configuration to measure."),
    Parameter("repeat", "How often the pictures are taken again in one pass.", default=1),
    Parameter("rounds", "Rounds of each measurement.", default=5),
)
MOST_READY_INPUTS = 1000
Share = TypeVar("Share")
IMAGENET_ONLY = ("ground_truth_labels", "model_output_labels")


def main(arguments: list[str]) -> int:
    """Measure and print."""
    flags = parse_flags("throughput", "", "", {"flags": PARAMETERS}, arguments)
    ignored = [name for name in IMAGENET_ONLY if name in flags]
    if flags.text("task") == "coco" and ignored:
        raise UsageError(f"--{ignored[0]} is for --task=imagenet: --task=coco reads no labels; leave it out")
    model, steps, pictures = coco_task(flags) if flags.text("task") == "coco" else imagenet_task(flags)
    configuration = Configuration.from_text("measured", flags.text("configuration"))
    inputs = [steps.prepare(example).inputs for example in range(len(steps.names))[:MOST_READY_INPUTS]]
    paths = [path for path in pictures if path.suffix.lower() in (".jpg", ".jpeg")]
    cores = available_cores()
    measurements: dict[str, Callable[[], float]] = {
        "raw invoke(), 1 thread": lambda: raw_rate(model, configuration, inputs, 1),
        f"raw invoke(), {cores} threads": lambda: raw_rate(model, configuration, inputs, cores),
        f"Pillow decode + invoke(), {cores} threads": lambda: bare_rate(model, configuration, inputs[0], paths, cores),
        f"evaltools, {cores} workers": lambda: pass_rate(model, configuration, steps, cores),
        "evaltools, 1 worker": lambda: pass_rate(model, configuration, steps, 1),
        "decode and preprocess, 1 process": lambda: preprocessing_rate(steps),
    }
    rates: dict[str, list[float]] = {name: [] for name in measurements}
    for _ in range(flags.number("rounds")):
        for name, measure in measurements.items():
            rates[name].append(measure())
    medians = {name: statistics.median(values) for name, values in rates.items()}
    print(f"{model.path.name}, {len(steps.names)} pictures, {cores} cores, median of {flags.number('rounds')} rounds")
    for name, values in rates.items():
        print(f"{name:<36} {medians[name]:8.1f}/s   {min(values):8.1f} .. {max(values):8.1f}")
    ours = f"evaltools, {cores} workers"
    raw = f"raw invoke(), {cores} threads"
    for name, measured, against in (
        (f"of raw invoke() on {cores} threads", ours, raw),
        ("of the limit, decode + invoke()", ours, f"Pillow decode + invoke(), {cores} threads"),
        (f"{cores} workers against 1, times", ours, "evaltools, 1 worker"),
    ):
        ratios = [mine / other for mine, other in zip(rates[measured], rates[against], strict=True)]
        print(f"{name:<36} {statistics.median(ratios):8.2f}     {min(ratios):8.2f} .. {max(ratios):8.2f}")
    return 0


Repeated = tuple[ModelFile, Steps[Any], Sequence[Path]]
"""A model, what the pass does with examples that come several times, and their pictures."""


def imagenet_task(flags: GivenFlags) -> Repeated:
    """A classifier and its labelled pictures."""
    options = {
        "ground_truth_images_path": flags.path("ground_truth_images_path") or sample.images_dir(),
        "ground_truth_labels": flags.text("ground_truth_labels"),
        "model_output_labels": flags.text("model_output_labels"),
    }
    return _repeated(imagenet.COMMAND, flags.path("model_file") or sample.model_file("int8"), options, flags)


def coco_task(flags: GivenFlags) -> Repeated:
    """A detector that ends in TFLite_Detection_PostProcess, and pictures."""
    options = {"ground_truth_images_path": flags.path("ground_truth_images_path") or sample.detection_images_dir()}
    path = flags.path("model_file") or sample.detection_model_file("int8")
    outputs = operator_output_map(read_model(path))
    if outputs is None:
        raise UsageError(f"{path} does not end in TFLite_Detection_PostProcess; give a detector that does")
    return _repeated(coco.COMMAND, path, options, flags, to_builtins([Choice(outputs)]))


def _repeated(
    command: TaskCommand, path: Path, options: Mapping[str, Any], flags: GivenFlags, choice: Any = None
) -> Repeated:
    """The task with its examples several times."""
    model, loaded = read_model(path), loaded_of(command)
    setting, values = Setting([model]), values_of(own_options(loaded.function), options, command.name)
    stated = make_task(loaded, values, setting)
    made = stated if choice is None or stated.chosen is None else stated.chosen(choice)
    repeated = tuple(
        dataclasses.replace(example, id=f"{turn} {example.id}")
        for turn in range(flags.number("repeat"))
        for example in made.examples
    )
    task, tensors = dataclasses.replace(made, examples=repeated), tensors_of_models([model], setting)
    steps = steps_of(task, tensors, recipe=recipe_of(loaded, values, task, tensors, choice))
    return model, steps, [example.input for example in repeated]


def raw_rate(model: ModelFile, configuration: Configuration, inputs: list[tuple[Array, ...]], threads: int) -> float:
    """Inferences per second of ``threads`` sessions side by side on ready inputs."""
    shares = [inputs[index::threads] for index in range(threads)]

    def work(session: Session, share: list[tuple[Array, ...]]) -> int:
        for values in share:
            session.run(values)
        return len(share)

    return side_by_side(model, configuration, inputs[0], shares, work)


def bare_rate(
    model: ModelFile, configuration: Configuration, inputs: tuple[Array, ...], paths: Sequence[Path], threads: int
) -> float:
    """Pictures per second that are decoded by Pillow, each followed by an inference on the same ready input."""

    def work(session: Session, share: Sequence[Path]) -> int:
        for path in share:
            with Image.open(path) as picture:
                picture.load()
            session.run(inputs)
        return len(share)

    return side_by_side(model, configuration, inputs, [paths[index::threads] for index in range(threads)], work)


def side_by_side(
    model: ModelFile,
    configuration: Configuration,
    inputs: tuple[Array, ...],
    shares: Sequence[Share],
    work: Callable[[Session, Share], int],
) -> float:
    """How many per second, one thread and one session per share."""
    sessions = [open_session(model, configuration) for _ in shares]
    for session in sessions:
        session.run(inputs)
    with ThreadPoolExecutor(len(shares)) as pool:
        start = time.perf_counter()
        count = sum(pool.map(work, sessions, shares))
        elapsed = time.perf_counter() - start
    for session in sessions:
        session.close()
    return count / elapsed


def preprocessing_rate(steps: Steps[Any]) -> float:
    """Pictures per second from file to tensor, in this process."""
    start = time.perf_counter()
    checksum = sum(int(np.asarray(steps.prepare(example).inputs[0]).size) for example in range(len(steps.names)))
    assert checksum > 0
    return len(steps.names) / (time.perf_counter() - start)


def pass_rate(model: ModelFile, configuration: Configuration, steps: Steps[Any], workers: int) -> float:
    """Pictures per second of a pass with one configuration, journal included; all processes are open and warm."""
    with open_all([(model, configuration)], open_isolated, allow_fallback=False) as entries:
        opened = [entry for entry in entries.values() if isinstance(entry, Opened)]
        sessions = sessions_of_workers(opened, workers, open_isolated)
        journal = temporary_journal()
        with preparers(steps, opened[0].session.inputs, workers, 60.0, len(steps.names)) as makers:
            for own, maker in zip(sessions, makers, strict=True):
                (first,) = maker.make([0])
                assert isinstance(first.prepared, Prepared)
                for session in own.values():
                    session.run(first.prepared.inputs)
            start, todo = time.perf_counter(), range(len(steps.names))
            ledger = Ledger(todo, list(sessions[0]))
            with Workers(steps, sessions, makers, todo, ledger) as at_work:
                done = sum(len(turn.examples) for turn in run_examples(at_work, journal))
            journal.flush()
            elapsed = time.perf_counter() - start
        journal.close()
        for own in sessions:
            for session in own.values():
                session.close()
    return done / elapsed
