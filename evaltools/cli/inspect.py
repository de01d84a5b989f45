"""``evaltools inspect``: what is in a model, of which kind it is, which delegates fit, and what they take of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from evaltools.cli.shared.streams import complain, say
from evaltools.configuration import Configuration
from evaltools.delegates.external import EXTERNAL
from evaltools.errors import UsageError
from evaltools.exit_codes import NOT_MEASURED, NOT_WRITTEN, OK, USAGE, in_words
from evaltools.parameter import Parameter
from evaltools.report.files.output_file import planned_outputs, write_file
from evaltools.request.flags import parse_flags
from evaltools.tasks.framework.common_options import MODEL_FILE

DESCRIPTION: Final = """\
What is in a model, which kind of quantisation it has, which delegates are made for that kind, what XNNPACK, the GPU,
with --external_delegate_path your own delegate, and with --npu_soc the NPUs of phones take of it, and what is known
to go wrong on GPUs and in fp16. Every claim says what it rests on.
The model is given as the first word or as --model_file. stdout: the findings."""
_ASKED: Final = tuple(each for each in EXTERNAL.parameters if each.name != EXTERNAL.per_worker_flag)
PARAMETERS: Final = (
    MODEL_FILE,
    *_ASKED,
    Parameter("run", "Open the model with XNNPACK and the GPU, to see what they take of it.", default=True),
    Parameter(
        "npu_soc",
        "Compile it for the NPUs of these chips, as SM8550,SM8750, or all, with Qualcomm's compiler, and see what they "
        "take; needs no phone.",
    ),
    Parameter(
        "save_compiled",
        "Folder for the compiled files, MODEL_CHIP.tflite, which LiteRT runs on a phone with that chip.",
        role="output_folder",
        about="result",
        only_with=("npu_soc",),
    ),
    Parameter(
        "output_file_path",
        "JSON file with everything that was found.",
        role="output_file",
        about="result",
        short="output",
    ),
)
EXIT_CODES: Final = in_words(
    {
        OK: "the model was inspected; a delegate that could not be tried is named as such",
        USAGE: "a flag, a chip or the model is wrong",
        NOT_MEASURED: "the delegate of --external_delegate_path could not be tried, or a chip of --npu_soc: its "
        "compiler is not installed, died, or was too slow",
        NOT_WRITTEN: "",
    }
)


def run(arguments: list[str]) -> int:
    """Inspect the model, print what was found to stdout, write the JSON file; returns the exit code."""
    given = parse_flags("inspect", DESCRIPTION, EXIT_CODES, {"flags": PARAMETERS}, arguments)
    flags = given.options()
    if not flags.text("model_file"):
        raise UsageError("missing: the model. Give evaltools inspect MODEL.tflite; see evaltools inspect --help")
    from evaltools.cli.shared.terminal import text_for_stdout
    from evaltools.inspection.model import inspect_model
    from evaltools.inspection.npu_chips import CHIP, ChipsAsked
    from evaltools.inspection.taken import BASIS, NOT_TESTED
    from evaltools.inspection.tried import DELEGATE
    from evaltools.report.page.screens import print_sections
    from evaltools.result.json_file import encode_json

    model = Path(flags.text("model_file"))
    files = planned_outputs(flags, ["output_file_path"], [model], "the findings are")
    chips = tuple(part for part in flags.text("npu_soc").split(",") if part)
    asked = ChipsAsked(chips, flags.path("save_compiled")) if chips else None
    delegate = given.among({each.name: each for each in _ASKED})
    own = Configuration.from_flags("inspect", delegate, kernels="builtin") if delegate else None
    command = ("evaltools", "inspect", *arguments)
    result = inspect_model(model, flags.is_on("run"), chips=asked, report=complain, asked=own, command=command)
    for path in files.values():
        write_file(path, encode_json(result))
    if not say(text_for_stdout(partial(print_sections, result))):
        return NOT_WRITTEN
    tried = {role: [row for row in result.rows if row.role == role] for role in (DELEGATE, CHIP)}
    needed = [*tried[DELEGATE][:1] * (own is not None), *tried[CHIP]]
    is_missing = any(row.texts[BASIS] == NOT_TESTED for row in needed) or (bool(chips) and not tried[CHIP])
    return NOT_MEASURED if is_missing else OK
