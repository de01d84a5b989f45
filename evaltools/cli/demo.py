"""``evaltools demo``: the three tasks on the embedded sample, with what this machine has."""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from evaltools import exit_codes
from evaltools.cli.evaluate import run_task
from evaltools.cli.shared.streams import complain, say
from evaltools.datasets import sample
from evaltools.errors import UsageError
from evaltools.parameter import Parameter
from evaltools.request.flags import GivenFlags, parse_flags

DESCRIPTION: Final = """\
Evaluates the models of the embedded sample, four classifiers (200 drawn pictures of 12 figures) and two detectors (60
drawn pictures with several figures each): the builtin CPU kernels against every delegate that works here, plain C++
kernels, and an external delegate if one is given. First how far apart the numbers are (inference-diff),
then whether it matters (imagenet, coco)."""
PARAMETERS: Final = (
    Parameter("models", "Classifiers to evaluate, separated by commas.", default=",".join(sample.MODELS)),
    Parameter("detectors", "Detectors to evaluate, separated by commas.", default=",".join(sample.DETECTION_MODELS)),
    Parameter("external_delegate_path", "Shared library of a delegate to evaluate too.", role="library"),
    Parameter("where", "Print the folder of the sample, and evaluate nothing.", default=False),
)
NEXT_STEPS: Final = """
What to look at:
  verdict     inference-diff: whether a difference is more than the CPU variants' own, and which precision explains it
  delegated   nodes that ran on a delegate: proof that it did the work
  agrees      share of pictures with the same first answer as the reference; lost and gained are its flips
  matched     coco: boxes that both find; lost and new are those without a partner, other class those named otherwise
  int8        an external delegate for float models takes nothing of it, so it is not measured: never a CPU number
Next: the same on your own model and pictures, with any of the flags in docs/delegate-flags.md:
  evaltools diff MODEL.tflite --use_xnnpack
  evaltools imagenet MODEL.tflite --images=DIR --ground_truth=val.txt --use_gpu
  evaltools coco MODEL.tflite --images=DIR --ground_truth=val.json --use_gpu
"""


class _Step(NamedTuple):
    """One task of the demo."""

    task: str
    model: Path
    arguments: list[str]


def run(arguments: list[str]) -> int:
    """Run the demo; a configuration that cannot run on this machine is shown as such and is not an error.

    The native lines on stdout are left out: the tables show the same figures.
    """
    flags = parse_flags("demo", DESCRIPTION, "", {"flags": PARAMETERS}, arguments)
    if flags.is_on("where"):
        return _print_folder(flags)
    classifiers = _names(flags, "models", "model", sample.MODELS)
    detectors = _names(flags, "detectors", "detector", sample.DETECTION_MODELS)
    for step in [*_classifier_steps(classifiers), *_detector_steps(detectors)]:
        configurations = _configurations(step.model, flags.text("external_delegate_path"))
        command = [f"--model_file={step.model}", *step.arguments, *configurations]
        complain(f"\n$ evaltools {step.task.replace('_', '-')} {shlex.join(command)}")
        with contextlib.redirect_stdout(io.StringIO()):
            code = run_task(step.task, command)
        if code not in (exit_codes.OK, exit_codes.NOT_MEASURED):
            return code
    complain(NEXT_STEPS)
    return exit_codes.OK


def _print_folder(flags: GivenFlags) -> int:
    for other in PARAMETERS[:-1]:
        if other.name in flags:
            raise UsageError(f"--{other.name}: nothing is evaluated with --where; leave one of the two out")
    return exit_codes.OK if say(str(sample.images_dir().parent)) else exit_codes.NOT_WRITTEN


def _names(flags: GivenFlags, flag: str, what: str, known: tuple[str, ...]) -> list[str]:
    names = [name for name in flags.text(flag).split(",") if name]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f"--{flag}: {unknown[0]!r} is not a {what} of the sample; use some of {','.join(known)}")
    return names


def _classifier_steps(names: list[str]) -> Iterator[_Step]:
    pictures = [
        f"--ground_truth_images_path={sample.images_dir()}",
        f"--ground_truth_labels={sample.ground_truth_file()}",
        f"--model_output_labels={sample.labels_file()}",
    ]
    for name in names:
        model = sample.model_file(name)
        yield _Step("inference_diff", model, [f"--input_images={sample.images_dir()}", "--num_runs=20"])
        yield _Step("imagenet", model, pictures)


def _detector_steps(names: list[str]) -> Iterator[_Step]:
    pictures = [
        f"--ground_truth_images_path={sample.detection_images_dir()}",
        f"--ground_truth_annotations={sample.detection_annotations_file()}",
        f"--model_output_labels={sample.detection_labels_file()}",
    ]
    for name in names:
        yield _Step("coco", sample.detection_model_file(name), pictures)


def _configurations(model: Path, external_delegate: str) -> list[str]:
    """What evaltools tries of itself with a model, and what it does not."""
    from evaltools.candidates import found_here
    from evaltools.model import read_model

    tried = found_here([read_model(model)]).tests
    configurations = [f"{entry.name}: {shlex.join(entry.to_flags())}" for entry in tried]
    configurations.append("plain C++: kernels=reference")
    if external_delegate:
        options = shlex.quote("precision:bf16")
        path = shlex.quote(external_delegate)
        configurations.append(
            f"bf16 delegate: external_delegate_path={path} external_delegate_options={options} use_xnnpack=false"
        )
    return [f"--config={configuration}" for configuration in configurations]
