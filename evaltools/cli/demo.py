"""``evaltools demo``: both tasks on the embedded sample, with what this machine has."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import shlex
from typing import Final

from evaltools.cli import exit_codes, imagenet, inference_diff
from evaltools.cli.flags import parse_flags
from evaltools.cli.streams import complain
from evaltools.datasets.sample import MODELS, ground_truth_file, images_dir, labels_file, model_file
from evaltools.errors import UsageError
from evaltools.parameter import Parameter

DESCRIPTION: Final = """\
Evaluates the four models of the embedded sample (200 drawn pictures, 12 classes): the builtin CPU kernels against
XNNPACK, plain C++ kernels, a second runtime if one is installed, and an external delegate if one is given. First how
far apart the numbers are (inference-diff), then whether it matters (imagenet)."""
PARAMETERS: Final = (
    Parameter("models", "string", ",".join(MODELS), "Models to evaluate, separated by commas."),
    Parameter("external_delegate_path", "string", "", "Shared library of a delegate to evaluate too."),
)
NEXT_STEPS: Final = """
What to look at:
  verdict     inference-diff: whether a difference is more than the CPU variants' own, and which precision explains it
  delegated   nodes that ran on a delegate: proof that it did the work
  agrees      share of pictures with the same first answer as the reference; lost and gained are its flips
  int8        an external delegate for float models takes nothing of it, so it is not measured: never a CPU number
Next: the same on your own model and pictures, with any of the flags in docs/delegate-flags.md:
  evaltools inference-diff --model_file=... --config "mine: use_xnnpack=true"
  evaltools imagenet --model_file=... --ground_truth_images_path=... --ground_truth_labels=... \\
    --model_output_labels=... --config "mine: use_xnnpack=true" --output_file_path=result.json
"""


def run(arguments: list[str]) -> int:
    """Run the demo; configurations that cannot run here are shown as such and do not count as an error.

    The native lines on stdout are left out: the tables say it all.
    """
    flags = parse_flags("demo", DESCRIPTION, "", {"flags": PARAMETERS}, arguments)
    names = flags.text("models").split(",")
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        raise UsageError(f"--models: {unknown[0]!r} is no model of the sample; use some of {','.join(MODELS)}")
    for name in names:
        configurations = _configurations(flags.text("external_delegate_path"))
        pictures = [
            f"--ground_truth_images_path={images_dir()}",
            f"--ground_truth_labels={ground_truth_file()}",
            f"--model_output_labels={labels_file()}",
        ]
        for task, run_task, data in (
            ("inference-diff", inference_diff.run, [f"--input_images={images_dir()}", "--num_runs=20"]),
            ("imagenet", imagenet.run, pictures),
        ):
            command = [f"--model_file={model_file(name)}", *data, *configurations]
            complain(f"\n$ evaltools {task} {shlex.join(command)}")
            with contextlib.redirect_stdout(io.StringIO()):
                code = run_task(command)
            if code not in (exit_codes.OK, exit_codes.NOT_MEASURED):
                return code
    complain(NEXT_STEPS)
    return exit_codes.OK


def _configurations(external_delegate: str) -> list[str]:
    configurations = ["xnnpack: use_xnnpack=true", "plain C++: kernels=reference"]
    if importlib.util.find_spec("ai_edge_litert") and importlib.util.find_spec("tflite_runtime"):
        configurations.append("tflite_runtime: runtime=tflite_runtime")
    if external_delegate:
        options = shlex.quote("precision:bf16")
        path = shlex.quote(external_delegate)
        configurations.append(
            f"bf16 delegate: external_delegate_path={path} external_delegate_options={options} use_xnnpack=false"
        )
    return [f"--config={configuration}" for configuration in configurations]
