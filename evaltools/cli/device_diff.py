"""An inference diff on devices: against the device's own reference, or, of several devices, against this computer's."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Final

from evaltools.cli.flags import GivenFlags
from evaltools.cli.host_run import run_here
from evaltools.configuration import CONFIGURATION_PARAMETERS
from evaltools.exit_codes import EXAMPLES_FAILED, LIMIT_BROKEN, OK
from evaltools.parameter import Parameter
from evaltools.result.environment import describe_environment
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.json_file import read_result

_REFERENCE: Final = "reference"
_LOADED: Final = "load_reference="
"""What a flag is only good with that states what a loaded reference brings along."""
_WITH_OUTPUTS: Final = (OK, LIMIT_BROKEN, EXAMPLES_FAILED)


def against_host(flags: GivenFlags, folder: Path) -> GivenFlags:
    """The flags with the reference's outputs computed here, in ``folder``, unless they are stated or there already.

    So every device is held against the same numbers. Raises :class:`UsageError` where they cannot be computed.
    """
    if "load_reference" in flags:
        return flags
    saved = folder / _REFERENCE
    if not saved.is_dir():
        unfinished = folder / f"{_REFERENCE}.part"
        shutil.rmtree(unfinished, ignore_errors=True)
        _save(flags, unfinished)
        unfinished.rename(saved)
    kept = [pair for pair in flags.given if _LOADED not in flags.parameters[pair[0]].only_with]
    mismatch = [("allow_model_mismatch", "true")] if "reference_model_file" in flags else []
    return replace(flags, given=(*kept, ("load_reference", str(saved)), *mismatch))


def _save(flags: GivenFlags, saved: Path) -> None:
    kept = [f"--{name}={text}" for name, text in flags.given if _is_of_inputs(flags.parameters[name])]
    own = ["--config=host: kernels=builtin", f"--save_outputs={saved}", "--noise_floor_runs=0", "--progress=none"]
    run_here(["inference-diff", *kept, *own], _WITH_OUTPUTS)


def _is_of_inputs(parameter: Parameter) -> bool:
    """Whether a flag is about models and inputs, and not about tests, or what becomes of them."""
    return (
        parameter.about == "records" and parameter.in_parts is None and parameter.name not in CONFIGURATION_PARAMETERS
    )


def result_of_device(path: Path, model_file: str) -> EvaluationResult:
    """The whole result that a device wrote, with the model's name and the environment of this computer."""
    result = read_result(path)
    own = result.environment
    return replace(
        result,
        model=replace(result.model, file=model_file),
        environment=describe_environment(own.command, own.started_at, own.elapsed_s),
    )
