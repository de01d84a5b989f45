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
from evaltools.report.environment import describe_environment
from evaltools.report.json_file import read_result
from evaltools.report.result import EvaluationResult

_REFERENCE: Final = "reference"
_OF_CONFIGURATIONS: Final = frozenset({*CONFIGURATION_PARAMETERS, "config", "configs", "allow_fallback"})
_OF_THE_DESK: Final = frozenset(
    {"output_file_path", "run_dir", "progress", "noise_floor_runs", "max_avg_error", "max_quanta", "min_snr_db"}
)
_OF_INPUTS: Final = frozenset(
    {"seed", "input_range", "input_files", "input_images", "normalization", "reference", "reference_model_file"}
)
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
    kept = [(name, text) for name, text in flags.given if name not in _OF_INPUTS]
    mismatch = [("allow_model_mismatch", "true")] if "reference_model_file" in flags else []
    return replace(flags, given=(*kept, ("load_reference", str(saved)), *mismatch))


def _save(flags: GivenFlags, saved: Path) -> None:
    kept = [
        f"--{name}={text}" for name, text in flags.given if name not in _OF_CONFIGURATIONS and name not in _OF_THE_DESK
    ]
    own = ["--config=host: kernels=builtin", f"--save_outputs={saved}", "--noise_floor_runs=0", "--progress=none"]
    run_here(["inference-diff", *kept, *own], _WITH_OUTPUTS)


def result_of_device(path: Path, model_file: str) -> EvaluationResult:
    """The whole result that a device wrote, with the model's name and the environment of this computer."""
    result = read_result(path)
    own = result.environment
    return replace(
        result,
        model=replace(result.model, file=model_file),
        environment=describe_environment(own.command, own.started_at, own.elapsed_s),
    )
