"""Requests as plain values, fit for JSON: what run folders keep, and what is sent to other processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration
from evaltools.errors import UsageError
from evaltools.known_tasks import command_named
from evaltools.parameter import Parameter, split_flag
from evaltools.request import Options, Request

REQUEST_VERSION: Final = 2
"""Changes where stored requests of before cannot be read any more; 1 were command lines."""


class StoredConfiguration(msgspec.Struct):
    """A configuration with its flags, ``--name=value``."""

    name: str
    flags: list[str]


StoredOptions = dict[str, bool | int | float | str | list[str]]


class StoredRequest(msgspec.Struct):
    """A request as it is kept, of which nothing is loaded yet."""

    version: int
    task: str
    folder: str
    options: StoredOptions
    reference: StoredConfiguration | None
    tests: list[StoredConfiguration]
    devices: StoredOptions | None
    command: list[str]


def to_plain(request: Request) -> dict[str, Any]:
    """A request as plain values, fit for JSON.

    >>> request = Request("imagenet", Options({}, {}), None, (Configuration.from_text("x", "use_xnnpack=1"),))
    >>> to_plain(request)["tests"]
    [{'name': 'x', 'flags': ['--use_xnnpack=true']}]
    """
    stored = StoredRequest(
        version=REQUEST_VERSION,
        task=request.task,
        folder=str(request.folder),
        options=_plain_options(request.options),
        reference=None if request.reference is None else _plain_configuration(request.reference),
        tests=[_plain_configuration(configuration) for configuration in request.tests],
        devices=None if request.devices is None else _plain_options(request.devices),
        command=list(request.command),
    )
    plain: dict[str, Any] = msgspec.to_builtins(stored)
    return plain


def stored_in(plain: Any) -> StoredRequest:
    """What plain values hold; raises :class:`UsageError` for what is not a request, or one of another version."""
    version = plain.get("version") if isinstance(plain, dict) else None
    if version != REQUEST_VERSION:
        raise UsageError(f"a request of version {version}; this evaltools reads version {REQUEST_VERSION}")
    try:
        return msgspec.convert(plain, StoredRequest)
    except msgspec.ValidationError as error:
        raise UsageError(f"no request: {error}") from None


def from_plain(plain: Any, device_parameters: Mapping[str, Parameter]) -> Request:
    """The request again, for which the code of a task is loaded.

    Raises :class:`UsageError` as :func:`stored_in` does, and for options that do not fit.
    """
    stored = stored_in(plain)
    parameters = command_named(stored.task).parameters
    return Request(
        task=stored.task,
        options=Options.of(stored.options, parameters),
        reference=None if stored.reference is None else _configuration(stored.reference),
        tests=tuple(map(_configuration, stored.tests)),
        folder=Path(stored.folder),
        devices=None if stored.devices is None else Options.of(stored.devices, device_parameters),
        command=tuple(stored.command),
    )


def _plain_options(options: Options) -> StoredOptions:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.stated.items()}


def _plain_configuration(configuration: Configuration) -> StoredConfiguration:
    return StoredConfiguration(configuration.name, configuration.to_flags())


def _configuration(stored: StoredConfiguration) -> Configuration:
    flags = [split_flag(word, CONFIGURATION_PARAMETERS) for word in stored.flags]
    return Configuration.from_flags(stored.name, flags)
