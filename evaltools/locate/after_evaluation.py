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


def searches_after(request: Request, result: EvaluationResult) -> dict[str, Request]:
    """The searches that a result calls for, by configuration: those that are not equivalent to the reference.

    They have the model and the inputs of the evaluation, and the flags of that configuration.
    """
    differing = [
        entry.name
        for entry in result.configurations
        if entry.role == "test" and entry.verdict is not None and entry.verdict.kind not in _NOTHING_TO_FIND
    ]
    tests = {configuration.name: configuration for configuration in request.tests}
    return {name: _search(request, tests[name]) for name in differing if name in tests}


def _search(request: Request, tested: Configuration) -> Request:
    stated = {name: value for name, value in request.options.stated.items() if name in _TAKEN_OVER}
    return search_request(Options(stated, PARAMETERS), tested, request.folder, request.command)
