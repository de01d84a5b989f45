"""The search as a kind of request: its options, and the request that its flags make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration
from evaltools.delegates import COMPILED, LITERT
from evaltools.errors import UsageError
from evaltools.locate.options import GROUPS, PARAMETERS
from evaltools.parameter import Parameter
from evaltools.request import Options, Request
from evaltools.request.flags import GivenFlags, read_tests
from evaltools.tasks.inference_diff.options import GIVEN_TO_A_SEARCH

if TYPE_CHECKING:
    from evaltools.result.evaluation import EvaluationResult  # imports NumPy, which no help needs

REFERENCE: Final = "kernels=builtin num_threads=1"
_NOTHING_TO_FIND: Final = ("identical", "equivalent", "better", "not measured", "not judged")
_TAKEN_OVER: Final = ("model_file", *GIVEN_TO_A_SEARCH, "example_timeout")


class _Locate:
    """A search; it implements :class:`evaltools.task_kind.RequestKind`."""

    name = command = "locate"
    groups: Mapping[str, Sequence[Parameter]] = GROUPS
    parameters: Mapping[str, Parameter] = MappingProxyType(PARAMETERS)
    modules_on_devices: Sequence[str] = ()

    def moved(self, task: str, take: Callable[[Path], str]) -> str:  # noqa: ARG002
        """The name of the search, which is the same everywhere: it is not in a file of its own."""
        return task

    def files_beside(self) -> Sequence[Path]:
        """No files: a search is not in a file of its own."""
        return ()


KIND: Final = _Locate()


def request_of_flags(flags: GivenFlags, command: Sequence[str], folder: Path | None = None) -> Request:
    """What a command line asks for; raises :class:`UsageError` for flags that are wrong."""
    folder = folder or Path.cwd()
    if not flags.text("model_file"):
        raise UsageError("missing: --model_file, the model; give it, as in evaltools locate MODEL.tflite --use_gpu")
    tests = read_tests(flags, native=False, folder=folder)
    if len(tests) > 1:
        names = ", ".join(configuration.name for configuration in tests)
        raise UsageError(f"one configuration at a time is looked into, but there are {len(tests)}: {names}")
    options = flags.options(leave_out=("config", "configs", *CONFIGURATION_PARAMETERS))
    return search_request(options, tests[0], folder, tuple(command))


def search_request(options: Options, tested: Configuration, folder: Path, command: tuple[str, ...] = ()) -> Request:
    """The request for a search that looks into one configuration.

    The reference is of the same version of the runtime's package, for one process runs both.
    """
    reference = Configuration.from_text("reference", REFERENCE)
    if tested.runtime_version:
        runtime = LITERT if tested.runtime == COMPILED else tested.runtime
        reference = replace(reference, runtime=runtime, runtime_version=tested.runtime_version)
    return Request(KIND.name, options, reference, (tested,), folder, None, command)


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
