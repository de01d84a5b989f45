"""What follows an evaluation that found a difference: a search for the operator, by configuration."""

from __future__ import annotations

from typing import Final

from evaltools.configuration import Configuration
from evaltools.locate.kind import search_request
from evaltools.locate.options import PARAMETERS
from evaltools.request import Options, Request
from evaltools.result.evaluation import EvaluationResult
from evaltools.tasks.inference_diff.options import GIVEN_TO_A_SEARCH

_NOTHING_TO_FIND: Final = ("equivalent", "better", "not measured", "not judged")
_TAKEN_OVER: Final = ("model_file", *GIVEN_TO_A_SEARCH, "example_timeout")


def searches_after(request: Request, result: EvaluationResult, devices: Options | None = None) -> dict[str, Request]:
    """The searches that a result calls for, by configuration: those that are not equivalent to the reference.

    They have the model and the inputs of the evaluation, and the flags of that configuration. ``devices`` are the
    options of the run on devices that gave the result, None for one on this computer: one of the devices searches.
    """
    differing = [
        entry.name
        for entry in result.configurations
        if entry.role == "test" and entry.verdict is not None and entry.verdict.kind not in _NOTHING_TO_FIND
    ]
    tests = {configuration.name: configuration for configuration in request.tests}
    device = _one_of(devices, result)
    return {name: _search(request, tests[name], device) for name in differing if name in tests}


def _one_of(devices: Options | None, result: EvaluationResult) -> Options | None:
    """The options of a run on one of the devices that did parts, whole there."""
    if devices is None or result.device_run is None:
        return None
    return devices.without(["parts"]).stating({"serials": result.device_run.parts[0].serial})


def _search(request: Request, tested: Configuration, device: Options | None) -> Request:
    stated = {name: value for name, value in request.options.stated.items() if name in _TAKEN_OVER}
    return search_request(Options(stated, PARAMETERS), tested, request.folder, request.command, device)
