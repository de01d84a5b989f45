"""A request: what is to be measured, as a value that every part of evaltools makes, stores and passes on.

The command line, Python, YAML, pytest and gate files make a :class:`Request`; a run folder keeps it; resume, shards,
Ray and devices read it. Nothing else carries work.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration
from evaltools.errors import UsageError
from evaltools.parameter import Parameter, Value, did_you_mean, format_value

_SAYING_WHAT: Final = frozenset({*CONFIGURATION_PARAMETERS, "config", "configs", "sweep", "perf_options_list"})
_LEAVING_NOTHING_OPEN: Final = ("compat", "shard_count", "executor", "at")
"""Options that, unless they are at their defaults, ask for what the native tools do, or for other machines."""
Own = TypeVar("Own", bound="Options")
Stated = Value | tuple[str, ...]
"""The value of an option that was stated; several texts for one that may be repeated."""


def require_apart(written: Iterable[tuple[str, Path]]) -> None:
    """Raise :class:`UsageError` where two flags, each given with a path that it writes, name the same one."""
    flags: dict[str, str] = {}
    for flag, path in written:
        other = flags.setdefault(os.path.realpath(path), flag)
        if other != flag and os.path.realpath(path) != os.devnull:
            raise UsageError(f"{flag}={path} is the file of {other}, too; give another name")


class Options(Struct, frozen=True):
    """The options that were stated, parsed, by the names of parameters; all others have their defaults.

    >>> known = {"workers": Parameter("workers", "", default=1), "progress": Parameter("progress", "", default=True)}
    >>> options = Options.of({"workers": "4"}, known)
    >>> options.number("workers"), options.is_on("progress"), "progress" in options
    (4, True, False)
    """

    stated: Mapping[str, Stated]
    parameters: Mapping[str, Parameter]

    def __contains__(self, name: str) -> bool:
        return name in self.stated

    @classmethod
    def of(cls, values: Mapping[str, object], parameters: Mapping[str, Parameter]) -> Options:
        """From texts or values of Python by name; raises :class:`UsageError` for what is unknown or does not fit."""
        stated = {name: _parsed(name, value, parameters) for name, value in values.items() if value is not None}
        return cls(stated, parameters)

    def value(self, name: str) -> Stated:
        """The value stated, or the default; raises :class:`UsageError` for one that was stated as several."""
        parameter = self.parameters[name]
        found = self.stated.get(name, parameter.default)
        if isinstance(found, tuple) and not parameter.repeatable:
            both = " and ".join(f"--{name}={text}" for text in found)
            raise UsageError(f"--{name} is given twice, as {both}; the native tools take the first. Keep one")
        return found

    def text(self, name: str) -> str:
        """The value of an option of type string."""
        return str(self.value(name))

    def number(self, name: str) -> int:
        """The value of an option of type int32."""
        return int(self.value(name))  # type: ignore[arg-type]

    def real(self, name: str) -> float:
        """The value of an option of type float."""
        return float(self.value(name))  # type: ignore[arg-type]

    def is_on(self, name: str) -> bool:
        """The value of an option of type bool."""
        return bool(self.value(name))

    def path(self, name: str) -> Path | None:
        """The value of an option of type string as a path, None where it was not stated.

        An empty one, as an unset variable leaves behind, would silently mean something else: :class:`UsageError`.
        """
        if name in self and not self.text(name):
            raise UsageError(f"--{name} is empty; give a path, or leave the flag out")
        return Path(self.text(name)) if self.text(name) else None

    def refuse_without_effect(self) -> None:
        """Raise :class:`UsageError` for the first option that has no effect without another one."""
        for name in self.stated:
            for condition in self.parameters[name].only_with:
                self._require_beside(name, condition)

    def _require_beside(self, name: str, condition: str) -> None:
        other, has_values, texts = condition.partition("=")
        needed = self.parameters.get(other)
        if needed is None:
            return
        value = self.value(other)
        accepted = [needed.parse(text) for text in texts.split("|")] if has_values else []
        if value in accepted or (not has_values and value != needed.default):
            return
        if value == needed.default:
            raise UsageError(f"--{name} has no effect without --{condition}; add that, or leave it out")
        shown = needed.format(value) if not isinstance(value, tuple) else f"--{other}"
        raise UsageError(f"--{name} has no effect with {shown}; leave one of the two out")

    @property
    def leave_tests_open(self) -> bool:
        """Whether nothing says what is to be tested, so that this machine, the only one that runs it, may decide."""
        if any(name in _SAYING_WHAT for name in self.stated):
            return False
        known = [name for name in _LEAVING_NOTHING_OPEN if name in self.parameters]
        return all(self.value(name) == self.parameters[name].default for name in known)

    def texts(self, name: str) -> list[str]:
        """Every value of an option that may be repeated."""
        stated = self.stated.get(name, ())
        return list(stated) if isinstance(stated, tuple) else [str(stated)]

    def content(self, name: str) -> list[Path]:
        """What the value of an option names, where what lies there is read."""
        if not self.parameters[name].is_content:
            return []
        return [Path(text) for text in self.texts(name)]

    def stating(self: Own, values: Mapping[str, object]) -> Own:
        """The options with other values for some of them."""
        return replace(self, stated={**self.stated, **Options.of(values, self.parameters).stated})

    def without(self: Own, names: Collection[str]) -> Own:
        """The options with some of them at their defaults."""
        return replace(self, stated={name: value for name, value in self.stated.items() if name not in names})

    def rewritten(self: Own, rewrite: Callable[[Parameter, Stated], Stated]) -> Own:
        """The options with every stated value replaced by what ``rewrite`` returns for it."""
        return replace(
            self, stated={name: rewrite(self.parameters[name], value) for name, value in self.stated.items()}
        )


def _parsed(name: str, value: object, parameters: Mapping[str, Parameter]) -> Stated:
    if name not in parameters:
        raise UsageError(f"--{name}: no such flag.{did_you_mean(name, parameters)}")
    parameter = parameters[name]
    if not parameter.repeatable:
        return parameter.accept(value)
    several = [value] if isinstance(value, str | Path) or not isinstance(value, Iterable) else value
    return tuple(format_value(each) for each in several)


class Request(Struct, frozen=True):
    """A task with its options, and the configurations that it is to be done with.

    ``reference`` None: there is none, or its outputs are loaded. ``folder`` is where relative paths are meant from.
    ``devices`` are the options of a run on devices, None for one on this computer. ``command`` is only recorded. Raises
    :class:`UsageError` where two configurations have the same name.
    """

    task: str
    options: Options
    reference: Configuration | None
    tests: tuple[Configuration, ...]
    folder: Path = field(default_factory=Path.cwd)
    devices: Options | None = None
    command: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [configuration.name for configuration in self.configurations]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"two configurations are named {name!r}; give each its own name")

    @property
    def is_native(self) -> bool:
        """Whether the run does exactly what the native tool does, even where that misleads."""
        return self.options.text("compat") == "native"

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """The reference, if there is one, and the others."""
        return ((self.reference,) if self.reference else ()) + self.tests

    def stating(self, **values: object) -> Request:
        """The request with other values of options."""
        return replace(self, options=self.options.stating(values))

    @property
    def files_read(self) -> list[Path]:
        """The files and folders whose content is read, as options and configurations name them."""
        of_options = [path for name in self.options.stated for path in self._read_for(name)]
        return of_options + [path for configuration in self.configurations for path in configuration.files]

    def _read_for(self, name: str) -> list[Path]:
        """What is read for an option. ``NAME=PATH`` may also be a path with a ``=`` in it."""
        role = self.options.parameters[name].role
        if role == "named_files":
            words = [text.split("=") for text in self.options.texts(name)]
            return [Path("=".join(each[start:])) for each in words for start in range(len(each))]
        return self.options.content(name)

    def without(self, *names: str) -> Request:
        """The request with some options at their defaults."""
        return replace(self, options=self.options.without(names))

    def for_records(self) -> Request:
        """The request for a place whose records alone are wanted: without what is made of them."""
        parameters = self.options.parameters.values()
        return self.stating(**{each.name: each.for_records for each in parameters if each.for_records is not None})

    def without_run_options(self) -> Request:
        """The request for records that exist: without the options about the run folder, the shard and the executor."""
        known = self.options.parameters
        of_run = {name: each for name, each in known.items() if each.about == "run"}
        lost = [name for name, each in known.items() if any(_needs_one_of(of_run, words) for words in each.only_with)]
        return self.without(*of_run, *lost)


def _needs_one_of(left_out: Mapping[str, Parameter], condition: str) -> bool:
    """Whether an option with that condition has no effect where these options are at their defaults."""
    name, has_values, texts = condition.partition("=")
    if name not in left_out:
        return False
    return not has_values or format_value(left_out[name].default) not in texts.split("|")
