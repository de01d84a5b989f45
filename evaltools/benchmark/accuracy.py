"""The accuracy of a model with a configuration, from results of evaluations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.benchmark.request import BenchmarkRequest
from evaltools.command import Accuracy
from evaltools.errors import DataError, UsageError
from evaltools.known_tasks import task_command
from evaltools.request import Options
from evaltools.result.result import SHARD, Result, Row
from evaltools.result_file import read_result

_THREADS: Final = "--num_interpreter_threads="


class AccuracyGiven(Struct, frozen=True):
    """An accuracy, 0..1, from a result of ours: ``figure`` and ``label`` name it, ``source`` is the file."""

    figure: str
    label: str
    value: float
    source: str


class KnownAccuracy(Struct, frozen=True):
    """The accuracy of one configuration in a result file.

    ``flags`` are the flags that give the configuration again, without the number of threads.
    """

    model_sha256: str
    flags: frozenset[str]
    given: AccuracyGiven


def read_accuracies(results: Sequence[Path]) -> list[KnownAccuracy]:
    """Read the accuracies in result files, each 0..1: the figure that a task calls its accuracy.

    Left out are configurations that were not measured, or not with what they asked for. Raises :class:`DataError` for a
    file that cannot be read, holds no accuracy at all, or is of a part of the examples only.
    """
    return [known for path in results for known in _read(path)]


def accuracy_of(known: Iterable[KnownAccuracy], model_sha256: str, flags: Sequence[str]) -> AccuracyGiven | None:
    """The accuracy of the model with the configuration of these flags; None where none is known.

    Neither the order of flags matters, nor the number of threads, nor the name, which says nothing of what ran. Raises
    :class:`DataError` where there are two that differ; ask before measuring.

    >>> given = AccuracyGiven("top1", "top-1", 0.75, "run.json")
    >>> known = [KnownAccuracy("5f", frozenset({"--kernels=builtin"}), given)]
    >>> accuracy_of(known, "5f", ["--num_interpreter_threads=4", "--kernels=builtin"]) is given
    True
    """
    own = _without_threads(flags)
    found = [entry.given for entry in known if entry.model_sha256 == model_sha256 and entry.flags == own]
    if len({(given.label, given.value) for given in found}) > 1:
        there_are = ", ".join(sorted({f"{given.label} {given.value:.6g} in {given.source}" for given in found}))
        shown = " ".join(flags) or "the defaults"
        raise DataError(f"{shown} has more than one accuracy: {there_are}; give one of these results")
    return found[0] if found else None


def accuracies_of(flags: Options, request: BenchmarkRequest) -> list[AccuracyGiven | None]:
    """The accuracy of each row, from the result files that were given.

    Raises :class:`UsageError` where files were given and none of them is about one of the rows.
    """
    files = [Path(text) for text in flags.texts("accuracy")]
    known = read_accuracies(files)
    found = [
        accuracy_of(known, candidate.model.sha256, candidate.configuration.to_flags())
        for candidate in request.candidates
    ]
    if files and not any(found):
        there_are = "; ".join(sorted({" ".join(sorted(entry.flags)) or "the defaults" for entry in known}))
        is_same = not {entry.model_sha256 for entry in known}.isdisjoint(model.sha256 for model in request.models)
        what = f"has other flags: {there_are}" if is_same else "has another model file"
        raise UsageError(f"--accuracy={files[0]} {what}; measure the same model file with the same flags")
    return found


def _without_threads(flags: Iterable[str]) -> frozenset[str]:
    return frozenset(flag for flag in flags if not flag.startswith(_THREADS))


def _read(path: Path) -> list[KnownAccuracy]:
    result = read_result(path)
    accuracy = task_command(result.command).accuracy if result.is_of_examples else None
    if accuracy is None:
        raise DataError(f"{path} is of {result.command}, which holds no accuracy; give the result of another task")
    obstacle = _why_no_accuracy(result)
    if obstacle is not None:
        raise DataError(f"{path} {obstacle}")
    found = []
    for configuration in result.rows:
        given = _given(accuracy, configuration, path)
        if given is not None:
            found.append(KnownAccuracy(result.model.sha256, _without_threads(configuration.flags), given))
    if not found:
        raise DataError(f"{path} holds no accuracy: none of its configurations was measured on examples with a truth")
    return found


def _why_no_accuracy(result: Result) -> str | None:
    if not result.complete:
        return f"ended early ({result.stopped}): its accuracy is that of a part of the examples; finish that run first"
    if SHARD in result.given:
        shard = result.given[SHARD]
        return f"is shard {shard}, a part of the examples; put all shards together with evaltools merge first"
    return None


def _given(accuracy: Accuracy, configuration: Row, path: Path) -> AccuracyGiven | None:
    if configuration.status != "measured" or configuration.fallback:
        return None
    value = configuration.value(accuracy.figure)
    if value is None:
        return None
    return AccuracyGiven(accuracy.figure, accuracy.label, value, str(path))
