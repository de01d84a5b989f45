"""What makes figures of several results comparable: the same examples, the same machine, the same software."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from evaltools.gates.baseline import digest_of_examples
from evaltools.report.tables.models import ModelRow, ModelRows
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.result.device_run import DeviceRun
from evaltools.result.evaluation import Environment, EvaluationResult, RuntimeUsed
from evaltools.result.model import Model
from evaltools.result.places import machine_of
from evaltools.task_kind import OWN, kind_of


class Setting(Struct, frozen=True):
    """Where and with what something was measured; ``versions`` are those of evaltools and of the runtimes, by name."""

    machine: str
    versions: Mapping[str, str]

    def fits(self, other: Setting) -> bool:
        """Whether times of both can be compared: one machine, and nothing that both have in two versions."""
        common = self.versions.keys() & other.versions.keys()
        return self.machine == other.machine and all(self.versions[name] == other.versions[name] for name in common)

    def joined(self, other: Setting) -> Setting:
        """With the versions of another one that fits."""
        return replace(self, versions={**self.versions, **other.versions})

    @property
    def software(self) -> str:
        """Names and versions in a line."""
        return ", ".join(f"{name} {version}" for name, version in self.versions.items())


def setting_of(
    environment: Environment, runtimes: Iterable[RuntimeUsed | None], run: DeviceRun | None, place: str = ""
) -> Setting:
    """That of configurations with these ``runtimes``; ``place`` is the serial of the device that ran them, if any."""
    versions = {"evaltools": environment.evaltools}
    versions |= {used.package: used.version for used in runtimes if used is not None}
    return Setting(machine_of(environment, run, place), versions)


class Data(Struct, frozen=True):
    """What figures are of: so many ``examples`` of a task, told apart by ``digest``; both empty where none counts."""

    task: str
    examples: int = 0
    digest: str = ""

    @property
    def in_words(self) -> str:
        """The number of examples; empty where figures of other examples are as good."""
        return f"{self.examples} examples" if self.digest else ""


def data_of(result: EvaluationResult) -> Data:
    """Where a figure of the task is compared, its examples count; verdicts on outputs are each on its own inputs.

    A result in which nothing was measured has no figure, but is of the same examples as others of its task.
    """
    kind = kind_of(result.task)
    evidence = kind.evidence
    has_figures = kind.accuracy is not None or result.task == OWN
    if not has_figures and ModelRows.of({"": result}).figure is None:
        return Data(evidence.subject(result))
    digest = "\n".join(
        [digest_of_examples(result), *(f"{name}={text}" for name, text in evidence.setup(result).items())]
    )
    return Data(evidence.subject(result), result.examples_done, digest)


Row = TypeVar("Row", bound=ModelRow | BenchmarkRow)


class Measured(Struct, Generic[Row], frozen=True):
    """A configuration of one of several results: ``source`` names that, ``name`` is its own without the place."""

    source: str
    name: str
    model: Model
    about: Data
    setting: Setting
    row: Row


def evaluated(results: Mapping[str, EvaluationResult]) -> list[Measured[ModelRow]]:
    """All configurations of evaluations, which are given by name."""
    found = []
    for source, result in results.items():
        about = data_of(result)
        for entry in result.configurations:
            runtimes = [other.runtime for other in result.configurations if other.place == entry.place]
            setting = setting_of(result.environment, runtimes, result.device_run, entry.place)
            name = entry.name.removesuffix(f"@{entry.place}")
            found.append(Measured(source, name, result.model, about, setting, ModelRow(source, result, entry)))
    return found


def benchmarked(results: Mapping[str, BenchmarkResult]) -> list[Measured[BenchmarkRow]]:
    """All rows of benchmarks, which are given by name; those of several devices are called ``NAME@SERIAL``."""
    found = []
    for source, result in results.items():
        serials = [facts.serial for facts in result.device_run.devices] if result.device_run is not None else []
        for row in result.rows:
            place = next((serial for serial in serials if row.name.endswith(f"@{serial}")), "")
            setting = setting_of(result.environment, [row.runtime], result.device_run, place)
            name, model = row.name.removesuffix(f"@{place}"), result.models[row.model]
            found.append(Measured(source, name, model, Data("benchmark"), setting, row))
    return found


class Group(Struct, Generic[Row], frozen=True):
    """Rows that can be compared: of the same data, on one machine, with the same software."""

    about: Data
    setting: Setting
    rows: Sequence[Measured[Row]]

    @property
    def sources(self) -> list[str]:
        """The names of the results that have a part in it."""
        return list(dict.fromkeys(row.source for row in self.rows))

    @property
    def in_words(self) -> str:
        """What all of it shares."""
        return "; ".join(filter(None, (self.about.in_words, self.setting.machine, self.setting.software)))


def groups_of(rows: Iterable[Measured[Row]]) -> list[Group[Row]]:
    """Each row in the first group that it can be compared with."""
    groups: list[Group[Row]] = []
    for row in rows:
        for place, group in enumerate(groups):
            if group.about == row.about and group.setting.fits(row.setting):
                groups[place] = Group(group.about, group.setting.joined(row.setting), [*group.rows, row])
                break
        else:
            groups.append(Group(row.about, row.setting, [row]))
    return groups


def differences(groups: Sequence[Group[Row]]) -> list[str]:
    """For each group, in what it differs from the others; all empty for a single one."""
    shared = [
        len({group.about.digest for group in groups}) < 2,
        len({group.setting.machine for group in groups}) < 2,
        len({group.setting.software for group in groups}) < 2,
    ]
    return [
        ", ".join(text for text, is_shared in zip(_facts(group, groups), shared, strict=True) if text and not is_shared)
        for group in groups
    ]


def _facts(group: Group[Row], groups: Sequence[Group[Row]]) -> tuple[str, str, str]:
    """Data, machine and software of a group; examples of the same number are told apart by their checksum."""
    about = group.about
    are_alike = any(about.examples == other.about.examples and about != other.about for other in groups)
    checksum = hashlib.sha256(about.digest.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    data = f"{about.in_words} (data {checksum})" if are_alike and about.digest else about.in_words
    return data, group.setting.machine, group.setting.software
