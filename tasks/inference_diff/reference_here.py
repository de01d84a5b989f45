"""The reference's outputs computed here, so that devices that all do everything are held against the same numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from evaltools.configuration import Configuration
from evaltools.parameter import Parameter
from evaltools.request import Request
from evaltools.tasks.inference_diff.result import InferenceDiff, loaded_from
from evaltools.tasks.shared.names_here import NamesHere

_LOADED: Final = "load_reference="
"""What a flag is only good with that states what a loaded reference brings along."""


def saving_reference(request: Request, folder: Path) -> Request | None:
    """What gives the outputs in ``folder``, None where outputs are loaded anyway."""
    if "load_reference" in request.options:
        return None
    parameters = request.options.parameters.values()
    saving = request.without(*(each.name for each in parameters if not _is_of_inputs(each)))
    saving = saving.stating(save_outputs=folder, noise_floor_runs=0, progress="none")
    return replace(saving, tests=(Configuration("host", kernels="builtin"),), devices=None, command=())


def _is_of_inputs(parameter: Parameter) -> bool:
    """Whether an option is about models and inputs, and not about tests, or what becomes of them."""
    return parameter.about == "records" and parameter.in_parts is None


def against_saved(request: Request, folder: Path) -> Request:
    """The same held against the outputs in ``folder``, which bring their inputs along."""
    parameters = request.options.parameters.values()
    brought = [each.name for each in parameters if _LOADED in each.only_with]
    loading = request.without(*brought).stating(load_reference=folder)
    if "reference_model_file" in request.options:
        loading = loading.stating(allow_model_mismatch=True)
    return replace(loading, reference=None)


def named_here(diff: InferenceDiff, names: NamesHere) -> InferenceDiff:
    """The same with the names here of what inputs come from, and of the folder of a loaded reference."""
    folder = diff.reference_loaded_from
    if folder is None:
        return replace(diff, inputs=[replace(used, source=names.text(used.source)) for used in diff.inputs])
    here = names.reference or names.text(folder)
    source = names.reference or loaded_from(here)
    return replace(diff, inputs=[replace(used, source=source) for used in diff.inputs], reference_loaded_from=here)
