"""From Python: which operator makes the difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltools.api.configurations import AnyPath, OneConfiguration, read_tests
from evaltools.api.options import options_of, with_options
from evaltools.api.progress import shown_progress
from evaltools.api.result import Located
from evaltools.errors import UsageError
from evaltools.locate.command import COMMAND, search_request, searches_after
from evaltools.locate.request import read_request
from evaltools.locate.run import locate as search
from evaltools.request import Request
from evaltools.result.result import Result

if TYPE_CHECKING:
    pass

OnPart = Callable[[int, int], object]


def located_after(request: Request, result: Result) -> dict[str, Located]:
    """What ``locate=True`` of a diff finds, by configuration."""
    return {name: Located(search(read_request(each))) for name, each in searches_after(request, result).items()}


@with_options(COMMAND.parameters)
def locate(
    model: AnyPath, *, test: OneConfiguration | None = None, progress: bool | OnPart | None = None, **options: Any
) -> Located:
    """Which operator makes the difference between a configuration and the CPU.

    ``test`` is the configuration, default kernels with XNNPACK without one; ``options`` are those of ``evaltools
    locate`` by their names, such as ``operators="0-4"`` or ``bundle="report"``. ``progress`` is True for a bar, or is
    called with the number of parts measured and that of all, as far as is known. Prints nothing else. Raises
    :class:`~evaltools.errors.UsageError` and its kinds before anything runs.
    """
    configurations = read_tests(test)
    if len(configurations) != 1:
        raise UsageError(f"test: one configuration at a time is looked into, got {len(configurations)}")
    options_stated = options_of({"model_file": model}, COMMAND.parameters, options, ("model", "test", "progress"))
    request = read_request(search_request(options_stated, configurations[0], Path.cwd()))
    with shown_progress(progress, "operators", request.expected_parts) as on_step:
        return Located(search(request, on_step))
