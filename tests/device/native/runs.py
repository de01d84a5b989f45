"""Runs of native tools for tests: by the stand-in program, or made up of the times and ranks of single pictures."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import jsonschema
from msgspec import Struct
from msgspec.structs import replace

import evaltools
from evaltools.cli.shared.terminal import make_console
from evaltools.configuration import Configuration
from evaltools.device.native_inputs import NativeInputs
from evaltools.device.native_program import ProgramRun, configuration_flags, task_flags
from evaltools.device.native_result import assemble_native
from evaltools.metrics.latency import summarise_latency
from evaltools.native.lines.evaluation import fill_latency
from evaltools.proto import message_class
from evaltools.report.page.screens import print_configurations, print_result
from evaltools.result.facts import RuntimeUsed
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result, Row
from evaltools.result_file import read_result
from tests.device.native_stand_in import write_stand_in
from tests.results import shares_of

RUNTIME: Final = RuntimeUsed("native", "run_eval", "sha256 0123456789ab", "default")
STARTED: Final = "2024-02-03T04:05:06+00:00"
REFERENCE: Final = Configuration("reference", kernels="builtin")
GPU: Final = Configuration.from_text("gpu", "use_gpu=true")
PLAIN: Final = Configuration("test")


class NativeRun(Struct, frozen=True):
    """A run of a configuration on a device, which has a name where there are several."""

    configuration: Configuration
    ran: ProgramRun
    place: str = ""

    @property
    def proto(self) -> bytes | None:
        """The file that the tool wrote."""
        return self.ran.output

    @property
    def log(self) -> str:
        """What it printed."""
        return self.ran.out

    def as_if(self, **changes: Any) -> NativeRun:
        """The same with something else in what the program did."""
        return replace(self, ran=replace(self.ran, **changes))


SCHEMA = json.loads((Path(evaltools.__file__).parent / "result" / "result.schema.json").read_text())


def run_stand_in(
    folder: Path,
    inputs: NativeInputs[Any],
    configuration: Configuration,
    delegate_lines: Sequence[str] = (),
) -> NativeRun:
    """Run the stand-in on all pictures in a new folder."""
    folder.mkdir(parents=True)
    program, output, truth = write_stand_in(folder, inputs.task, delegate_lines), folder / "out.pb", ""
    if inputs.label_text is not None:
        (folder / "images").mkdir()
        for picture in inputs.pictures:
            (folder / "images" / picture.name).symlink_to(picture.resolve())
        (folder / "labels").write_bytes(inputs.label_text)
        content = inputs.truth
        if content is not None:
            truth = str(folder / "truth")
            (folder / "truth").write_bytes(content)
    command = [str(program), f"--model_file={inputs.model.path}", f"--output_file_path={output}"]
    command += task_flags(inputs.task, f"{folder}/images", f"{folder}/labels", truth, inputs.num_runs)
    command += configuration_flags(configuration, {})
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    written = output.read_bytes() if output.exists() else None
    return NativeRun(configuration, ProgramRun(ended.stdout + ended.stderr, code=ended.returncode, output=written))


def classified_run(
    ranks: Sequence[int | None],
    times_us: Sequence[int],
    configuration: Configuration = PLAIN,
    place: str = "",
    **changes: Any,
) -> NativeRun:
    """What imagenet gives for pictures with these ranks of the right label and times."""
    message = message_class("EvaluationStageMetrics")(num_runs=len(ranks))
    metrics = message.process_metrics.image_classification_metrics
    inference, preprocessing = summarise_latency(times_us), summarise_latency([2 * time for time in times_us])
    fill_latency(metrics.pre_processing_latency, preprocessing, with_std=False)
    fill_latency(metrics.inference_latency, inference)
    metrics.inference_metrics.num_inferences = len(ranks)
    accuracies = shares_of(ranks, 10)
    metrics.topk_accuracy_metrics.topk_accuracies.extend(accuracies)
    lines = [
        f"Num evaluation runs: {len(ranks)}",
        f"Preprocessing latency: avg={preprocessing.avg_us:g}(us), std_dev=0(us)",
        f"Inference latency: avg={inference.avg_us:g}(us), std_dev={inference.std_us}(us)",
        *(f"Top-{k} Accuracy: {accuracy:g}" for k, accuracy in enumerate(accuracies, 1)),
    ]
    ran = ProgramRun("".join(f"INFO: {line}\n" for line in lines), output=message.SerializeToString())
    return NativeRun(configuration, replace(ran, **changes), place)


def stand_ins(
    folder: Path, inputs: NativeInputs[Any], *configurations: Configuration, lines: Sequence[str] = ()
) -> list[NativeRun]:
    return [run_stand_in(folder / each.name, inputs, each, delegate_lines=lines) for each in configurations]


def assembled(inputs: NativeInputs[Any], *runs: NativeRun, elapsed_s: float = 0.0) -> Result:
    """The result of runs, those of each place in the same order; one of the reference is known by its name."""
    by_place: dict[str, list[ProgramRun]] = {}
    for run in runs:
        by_place.setdefault(run.place, []).append(run.ran)
    asked = [run.configuration for run in runs if run.place == runs[0].place]
    request = replace(inputs.request, tests=tuple(each for each in asked if each.name != "reference"))
    if inputs.task != "inference_diff":
        reference = next((each for each in asked if each.name == "reference"), None)
        request = replace(request, reference=reference)
    return assemble_native(replace(inputs, request=request), by_place, RUNTIME, STARTED, elapsed_s)


def printed(result: Result) -> str:
    text = io.StringIO()
    console = make_console(text)
    print_configurations(result.rows, console)
    print_result(result, console, "all")
    return text.getvalue()


def through_every_rendering(result: Result, folder: Path) -> str:
    """The tables; the result must come back from its file, and fit the schema."""
    (folder / "r.json").write_bytes(encode_json(result))
    assert read_result(folder / "r.json") == result
    jsonschema.validate(json.loads((folder / "r.json").read_text()), SCHEMA)
    return printed(result)


def entry_of(result: Result, name: str) -> Row:
    return next(entry for entry in result.rows if entry.name == name)
