"""The request that a run folder keeps."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.journal import read_journal
from evaltools.engine.run_folder import IDENTITY, REQUEST
from evaltools.errors import UsageError
from evaltools.known_tasks import moved
from evaltools.parameter import Parameter, Value, did_you_mean, format_value
from evaltools.request import Options, Request, Stated
from evaltools.request.plain import from_plain, stored_in
from evaltools.runs.identity import require_same_code
from evaltools.text import printable


def stored_request(run_dir: Path, device_parameters: Mapping[str, Parameter]) -> Request:
    """The request of the run in a folder, with that folder and its files as they are called from here.

    Raises :class:`UsageError` where there is none, or one of another version.
    """
    journal = read_journal(run_dir)
    plain, identity = REQUEST.read(journal), IDENTITY.read(journal)
    if plain is None and journal.examples():
        raise UsageError(f"the run in {run_dir} was started from a program of its own; start it from there")
    if plain is None:
        raise UsageError(f"the run in {run_dir} ended before its first example; give its command again")
    try:
        if identity is None:
            raise UsageError("it does not say what it is of, as every run does")
        require_same_code(identity, Path(stored_in(plain).folder))
        request = from_plain(plain, device_parameters)
    except UsageError as error:
        why = printable(str(error))
        raise UsageError(f"the run in {run_dir} cannot go on: {why}; start it anew in another folder") from None
    return seen_from(request, Path.cwd()).stating(run_dir=_as_typed(request, run_dir))


def _as_typed(request: Request, run_dir: Path) -> str:
    """The folder's name as the user typed it, if it still leads to the folder."""
    stated = request.options.text("run_dir")
    return stated if stated and (Path.cwd() / stated).resolve() == run_dir.resolve() else str(run_dir.resolve())


def seen_from(request: Request, folder: Path) -> Request:
    """The same request for a process in ``folder``: where that is another one, relative paths become absolute."""
    if folder == request.folder:
        return request
    return rewritten(request, lambda _parameter, path: os.path.join(request.folder, path), folder)


def rewritten(request: Request, take: Callable[[Parameter | None, Path], str], folder: Path) -> Request:
    """The same request with ``take`` of every path that it names, for a process in ``folder``.

    ``take`` is called with the parameter whose value names the path, None for a file that the task itself is in.
    """

    def one(parameter: Parameter, value: Value) -> Value:
        return parameter.rewrite(value, lambda path: take(parameter, path), request.folder)

    def stated(parameter: Parameter, value: Stated) -> Stated:
        if isinstance(value, tuple):
            return tuple(str(one(parameter, each)) for each in value)
        return one(parameter, value)

    def configuration(own: Configuration) -> Configuration:
        return own.with_paths(one)

    return replace(
        request,
        task=moved(request.task, lambda path: take(None, path)),
        folder=folder,
        options=request.options.rewritten(stated),
        reference=None if request.reference is None else configuration(request.reference),
        tests=tuple(map(configuration, request.tests)),
        devices=None if request.devices is None else request.devices.rewritten(stated),
    )


def changed(request: Request, given: Options, allowed: Callable[[Parameter], bool]) -> Request:
    """The request with some options given anew; raises :class:`UsageError` for options that may not change."""
    names = sorted(parameter.name for parameter in given.parameters.values() if allowed(parameter))
    for name, value in given.stated.items():
        if name not in names:
            text = " ".join(value) if isinstance(value, tuple) else format_value(value)
            raise UsageError(
                f"--{name}={text}: a run goes on with the flags that it began with; only flags that change no figure "
                f"may be given anew: {', '.join(names)}.{did_you_mean(name, names)}"
            )
    own = {name: value for name, value in given.stated.items() if name in request.options.parameters}
    others = {name: value for name, value in given.stated.items() if name not in own}
    if others and request.devices is not None:
        request = replace(request, devices=request.devices.stating(others))
    return replace(request, options=request.options.stating(own))
