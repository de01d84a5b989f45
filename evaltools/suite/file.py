"""``suite.toml``: which models, in which configurations, and what is done with them.

::

    models = ["models/*.tflite"]

    [configurations]
    xnnpack = "use_xnnpack=true"

    [jobs.accuracy]
    command = "imagenet --images=images --ground_truth=ground_truth.txt --labels=labels.txt"
    models = ["mobilenet*"]
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from evaltools.configuration import Configuration, configurations_from_yaml
from evaltools.documents import toml_values
from evaltools.errors import DataError, UsageError
from evaltools.file_content import Unreadable, text_of

ENDING: Final = ".toml"


class Job(Struct, frozen=True):
    """What is done with models: the words of a command without its model, which are meant from ``folder``.

    It is about the models whose file names fit one of the patterns ``models``, in the ``configurations`` of these
    names; empty ones are all.
    """

    name: str
    words: tuple[str, ...]
    folder: Path
    models: tuple[str, ...] = ()
    configurations: tuple[str, ...] = ()


class SuiteFile(Struct, frozen=True):
    """A file of a suite; paths in its configurations are meant from its folder."""

    models: tuple[Path, ...]
    configurations: tuple[Configuration, ...]
    jobs: tuple[Job, ...]


class _Job(msgspec.Struct, forbid_unknown_fields=True):
    command: str
    models: list[str] = []
    configurations: list[str] = []


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    models: list[str]
    configurations: dict[str, str] = {}
    jobs: dict[str, _Job] = {}


def read_suite_file(path: Path) -> SuiteFile:
    """Read a suite.toml.

    Raises :class:`DataError` for a file that cannot be read or is not TOML, and :class:`UsageError` naming the place
    for anything that would not take effect.
    """
    try:
        document = toml_values(text_of(path))
    except Unreadable as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    except ValueError as error:
        raise DataError(f"{path} is not TOML: {error}") from error
    try:
        read = msgspec.convert(document, _Document)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}; see docs/results.md for what a suite holds") from None
    configurations = configurations_from_yaml(read.configurations, str(path)) if read.configurations else []
    return SuiteFile(
        models=tuple(model for pattern in read.models for model in _models(pattern, path)),
        configurations=tuple(configurations),
        jobs=tuple(_job(name, job, path) for name, job in read.jobs.items()),
    )


def _models(pattern: str, path: Path) -> list[Path]:
    """The models of a pattern, which is that of a file name, of a path, or names a folder."""
    folder = path.parent / pattern
    try:
        found = models_below(folder) if folder.is_dir() else sorted(path.parent.glob(pattern))
    except (ValueError, NotImplementedError) as error:
        raise UsageError(f"{path}: models {pattern!r}: {error}; use a pattern from the file's folder on") from None
    if not found:
        raise UsageError(f"{path}: no model fits {pattern!r}, from {path.parent.absolute()} on")
    return found


def models_below(folder: Path) -> list[Path]:
    """The .tflite files in a folder and all below it, by name."""
    return sorted(path for path in folder.rglob("*.tflite") if path.is_file())


def _job(name: str, job: _Job, path: Path) -> Job:
    place = f"{path}: jobs.{name}"
    return Job(name, words_of(job.command, place), path.parent, tuple(job.models), tuple(job.configurations))


def words_of(command: str, place: str) -> tuple[str, ...]:
    """The words of a job's command; raises :class:`UsageError`, which names the ``place``, where there are none."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"{place}: {command!r} cannot be split into words: {error}") from None
    words = words[1:] if words[:1] == ("evaltools",) else words
    if not words:
        raise UsageError(f"{place}: {command!r} is not a command; write such as 'diff --num_runs=20'")
    return words
