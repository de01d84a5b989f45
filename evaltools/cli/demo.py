"""``evaltools demo``: the questions that evaltools answers, asked of the embedded sample."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evaltools import exit_codes
from evaltools.cli.shared.streams import complain, say
from evaltools.datasets import sample
from evaltools.errors import UsageError
from evaltools.parameter import Parameter
from evaltools.request.flags import GivenFlags, parse_flags

if TYPE_CHECKING:
    from rich.console import Console

DESCRIPTION: Final = """\
Asks four questions of the embedded sample: are the outputs the same with every delegate that works here, does it matter
for a classifier and for a detector, and which operator makes the difference."""
PARAMETERS: Final = (
    Parameter("external_delegate_path", "Shared library of a delegate to compare with the CPU too.", role="library"),
    Parameter("where", "Print the folder of the sample, and evaluate nothing.", default=False),
)
NEXT_STEPS: Final = """
The same of your own model:
  evaltools diff MODEL.tflite
  evaltools imagenet MODEL.tflite --images=DIR --ground_truth=labels_of_pictures.txt --labels=names.txt
  evaltools coco MODEL.tflite --images=DIR --ground_truth=instances.json
  evaltools locate MODEL.tflite --use_gpu
evaltools --help has all questions, evaltools delegates --flags all flags.
"""


class _Step(NamedTuple):
    """A question with the command that answers it; ``{sample}`` stands for the folder of the sample."""

    learned_of: str
    question: str
    words: tuple[str, ...]
    answer: Callable[[list[str], Console], str]


def run(arguments: list[str]) -> int:
    """Run the demo; a configuration that cannot run on this machine is shown as such and is not an error.

    The native lines on stdout are left out: the tables show the same figures.
    """
    flags = parse_flags("demo", DESCRIPTION, "", {"flags": PARAMETERS}, arguments)
    if flags.is_on("where"):
        return _print_folder(flags)
    from evaltools.cli.shared.terminal import make_console
    from evaltools.runtime.process.server import start_server
    from evaltools.signals import interrupts_restored

    start_server()
    console, folder = make_console(), sample.images_dir().parent
    complain(f"Models and pictures are those of the sample, in {folder}, where these commands run.")
    learned = []
    for number, step in enumerate(_steps(flags.text("external_delegate_path")), start=1):
        complain(f"\n{number}. {step.question}")
        complain(f"$ evaltools {shlex.join(word.replace('{sample}/', '') for word in step.words)}")
        words = [word.replace("{sample}", str(folder)) for word in step.words]
        with interrupts_restored(), redirect_stdout(sys.stderr):
            learned.append(f"  {step.learned_of:<12}{step.answer(words, console)}")
    console.print("\n".join(["\nWhat was learned:", *learned]), highlight=False, markup=False)
    complain(NEXT_STEPS.rstrip())
    return exit_codes.OK


def _print_folder(flags: GivenFlags) -> int:
    if "external_delegate_path" in flags:
        raise UsageError("--external_delegate_path: nothing is evaluated with --where; leave one of the two out")
    return exit_codes.OK if say(str(sample.images_dir().parent)) else exit_codes.NOT_WRITTEN


def _steps(external_delegate: str) -> Iterator[_Step]:
    float_model, int8_model = "{sample}/models/float32.tflite", "{sample}/models/int8.tflite"
    xnnpack = "--config=xnnpack: use_xnnpack=true"
    yield _Step(
        "outputs",
        "Are the outputs the same as the CPU's? Every delegate that works here gets the same inputs.",
        ("diff", float_model),
        _evaluated,
    )
    if external_delegate:
        library = Path(external_delegate)  # a name alone is looked for by the loader
        path = shlex.quote(str(library.resolve() if library.exists() else library))
        mine = f"external_delegate_path={path}"
        yield _Step(
            "my own .so",
            "And those of a delegate of my own? This one rounds to bf16.",
            ("diff", float_model, f"--config=mine: {mine} external_delegate_options=precision:bf16 use_xnnpack=false"),
            _evaluated,
        )
    yield _Step(
        "classifier",
        "Does it matter for a classifier? 200 pictures with labels; NNAPI is on phones, so that here it has no number.",
        (
            "imagenet",
            int8_model,
            "--images={sample}/images",
            "--ground_truth={sample}/ground_truth.txt",
            "--labels={sample}/labels.txt",
            xnnpack,
            "--config=nnapi: use_nnapi=true",
        ),
        _evaluated,
    )
    yield _Step(
        "detector",
        "And for a detector? 60 pictures with annotated objects, too few to prove that a small change is none.",
        (
            "coco",
            "{sample}/detection/models/int8.tflite",
            "--images={sample}/detection/images",
            "--ground_truth={sample}/detection/instances.json",
            xnnpack,
        ),
        _evaluated,
    )
    yield _Step(
        "operators",
        "Which operator makes the difference? Each runs by itself, with XNNPACK in fp16.",
        ("locate", float_model, "--use_xnnpack", "--xnnpack_force_fp16"),
        _located,
    )


def _evaluated(words: list[str], console: Console) -> str:
    """Show the sentence and the table of an evaluation, and what was not measured; returns the sentence."""
    from msgspec.structs import replace

    from evaltools.cli.shared.decided import decided_beside
    from evaltools.commands.evaluation import command_of, flags_of_words, request_of_task
    from evaltools.known_tasks import task_command
    from evaltools.report.content import Page
    from evaltools.report.page.rendering.terminal import show_page
    from evaltools.report.screen.answer import answer_of
    from evaltools.report.screen.first import first_screen
    from evaltools.runs.evaluate import measure
    from evaltools.tasks.framework.observer import Observer

    task, *options = words
    command = task_command("inference_diff" if task == "diff" else task)
    flags = flags_of_words(command, options)
    with decided_beside(flags, request_of_task(command, flags, command_of(command, options))) as decided:
        request, missing = decided()
    results = {task: measure(command, request, Observer())}
    first = first_screen(results)
    show_page(Page("", (replace(first, steps=()),), ()), console)
    if missing:
        complain(missing)
    return answer_of(results)


def _located(words: list[str], console: Console) -> str:
    """Show the answer of a search for the operator; returns its first line."""
    from evaltools.cli.locate import print_answer, search
    from evaltools.locate.command import COMMAND, request_of_flags

    flags = parse_flags("locate", "", "", COMMAND.groups, [*words[1:], "--quiet"])
    request = request_of_flags(flags, ("evaltools", *words))
    result = search(request, request.options, console)
    print_answer(result, console)
    verdict = result.rows[0].verdict
    return verdict.texts[0] if verdict is not None else ""
