"""The reference's outputs, computed on the host: devices that all do everything are compared with the same numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.parameter import Parameter
from evaltools.request import Request
from evaltools.tasks.inference_diff.result import InferenceDiff, loaded_from
from evaltools.tasks.shared.kind import HostNames

_LOADED: Final = "load_reference="
"""``only_with`` of the options that make sense only with a reference that is loaded."""


def saving_reference(request: Request, folder: Path) -> Request | None:
    """The request that saves the reference's outputs to ``folder``; None if ``request`` loads such outputs anyway."""
    if "load_reference" in request.options:
        return None
    parameters = request.options.parameters.values()
    saving = request.without(*(each.name for each in parameters if not _is_of_inputs(each)))
    saving = saving.stating(save_outputs=folder, noise_floor_runs=0, progress="none")
    return replace(saving, tests=(Configuration("host", kernels="builtin"),), devices=None, command=())


def _is_of_inputs(parameter: Parameter) -> bool:
    """Whether an option is about models and inputs, and not about the tests or the result."""
    return parameter.about == "records" and parameter.in_parts is None


def against_saved(request: Request, folder: Path) -> Request:
    """The request that compares with the saved outputs in ``folder``, on the inputs that were saved with them."""
    parameters = request.options.parameters.values()
    brought = [each.name for each in parameters if _LOADED in each.only_with]
    loading = request.without(*brought).stating(load_reference=folder)
    if "reference_model_file" in request.options:
        loading = loading.stating(allow_model_mismatch=True)
    return replace(loading, reference=None)


def with_host_names(diff: InferenceDiff, names: HostNames) -> InferenceDiff:
    """The task's part of a result from devices, with the host's names of inputs and the loaded reference."""
    folder = diff.reference_loaded_from
    if folder is None:
        return replace(diff, inputs=[replace(used, source=names.text(used.source)) for used in diff.inputs])
    loaded = names.reference or names.text(folder)
    source = names.reference or loaded_from(loaded)
    return replace(diff, inputs=[replace(used, source=source) for used in diff.inputs], reference_loaded_from=loaded)
