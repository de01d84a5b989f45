"""Several models in one command: each a run of its own, then one table over all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.cli.carry_out import carry_out, print_to_stdout
from evaltools.cli.shared.outputs import planned_outputs, write_outputs
from evaltools.cli.shared.streams import complain, stdout_is_terminal
from evaltools.cli.shared.terminal import make_console
from evaltools.errors import EvaltoolsError, UsageError
from evaltools.report.files.evaluation import files_read
from evaltools.report.files.plot import plot_models
from evaltools.report.page.content.sources import Sources
from evaltools.report.page.file import measured_page
from evaltools.report.tables.benchmark import model_names
from evaltools.report.tables.models import print_models
from evaltools.request import Options, Request
from evaltools.request.flags import GivenFlags
from evaltools.result.evaluation import EvaluationResult

_TOGETHER: Final = ("plot", "report")
"""Flags of files about all models."""
_WORST_FIRST: Final = (
    exit_codes.INTERRUPTED,
    exit_codes.USAGE,
    exit_codes.NOT_WRITTEN,
    exit_codes.NOT_MEASURED,
    exit_codes.EXAMPLES_FAILED,
    exit_codes.LIMIT_BROKEN,
)


def flags_of_models(flags: GivenFlags, model_flag: str) -> dict[str, GivenFlags]:
    """The flags of each model's own run by its name, which is put into the names of the files and folders it writes.

    Raises :class:`UsageError` for a model that is given twice, and for one that is no file.
    """
    models = flags.texts(model_flag)
    twice = next((text for place, text in enumerate(models) if text in models[:place]), None)
    if twice is not None:
        raise UsageError(f"{twice} is given twice; give each model once")
    for text in models:
        if not Path(text).is_file():
            raise UsageError(f"model {text}: no such file. Each word without -- is a model to evaluate")
    names = model_names([Path(text) for text in models])
    return {name: _of_one(flags, model_flag, name, text) for name, text in zip(names, models, strict=True)}


def _of_one(flags: GivenFlags, model_flag: str, name: str, model: str) -> GivenFlags:
    given = [(model_flag, model)]
    for flag, text in flags.given:
        written = flags.parameters[flag].role in ("output_file", "output_folder") and text
        if flag not in (model_flag, *_TOGETHER):
            given.append((flag, _with_name(Path(text), name) if written else text))
    return replace(flags, given=tuple(given))


def _with_name(path: Path, name: str) -> str:
    safe_name = re.sub(r"[^\w.-]+", "_", name)
    return str(path.with_name(f"{path.stem}.{safe_name}{path.suffix}"))


def carry_out_each(requests: Mapping[str, Request], options: Options) -> int:
    """Evaluate one model after the other, show a table of all, draw and report it as the options of all say.

    Returns the worst of the exit codes: a model that cannot be evaluated costs no other one.
    """
    console = make_console()
    read = [path for each in requests.values() for path in files_read(each, ())]
    files = planned_outputs(options, _TOGETHER, read)
    results: dict[str, EvaluationResult] = {}
    sources: dict[str, Sources] = {}
    codes = []
    for name, request in requests.items():
        if not stdout_is_terminal() or request.is_native:
            print_to_stdout([f"INFO: Model: {name}"])
        console.print(f"\n{name}", style="bold underline")
        try:
            done = carry_out(request, is_one_model=False)
        except EvaltoolsError as error:
            complain(f"evaltools: {name}: {error}")
            codes.append(error.exit_code)
            continue
        except KeyboardInterrupt:
            complain(f"evaltools: interrupted before there was a result of {name}")
            codes.append(exit_codes.INTERRUPTED)
            break
        results[name] = done.result
        sources[name] = done.sources
        codes.append(done.exit_code)
        if done.exit_code == exit_codes.INTERRUPTED:
            break
    if results:
        console.print()
        print_models(results, console)
        contents = {
            "plot": lambda: plot_models(results, files["plot"]),
            "report": lambda: measured_page(_all_of(sources), files["report"]),
        }
        not_written = write_outputs(files, contents)
        for problem in not_written:
            complain(f"evaltools: {problem}")
        codes += [exit_codes.NOT_WRITTEN] * len(not_written)
    return next((code for code in _WORST_FIRST if code in codes), exit_codes.OK)


def _all_of(sources: Mapping[str, Sources]) -> Sources:
    """What a page tells of all models, each by its name here."""
    return Sources(
        evaluations={name: one for name, each in sources.items() for one in each.evaluations.values()},
        located={name: found for name, each in sources.items() for found in each.located.values()},
        saved={name: one for name, each in sources.items() for one in each.saved.values()},
    )
