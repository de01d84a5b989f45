"""Parses command lines: words become flags, and flags become the options and configurations of a request.

The configurations are the command line's own, and those of ``--sweep``, ``--config`` and ``--configs``.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NoReturn

from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration, configurations_from_yaml
from evaltools.errors import UsageError
from evaltools.parameter import BOOLEANS, Parameter, described, did_you_mean, split_flag
from evaltools.request import Options, Stated, require_apart
from evaltools.text import columns_of, in_paragraphs, wrapped

TEST_NAME: Final = "test"
_HERE: Final = Path()
HELP_OF_ALL: Final = "--help=all"
_MOST_LISTED: Final = 45
"""A command with more flags has a short help."""


class GivenFlags(Options, frozen=True):
    """The options of a command line, and as ``given`` all flags as typed, ``(name, text)`` from left to right.

    A flag that was given with several texts, and takes one, has these; whoever reads its value is told so.
    """

    given: tuple[tuple[str, str], ...] = ()

    @classmethod
    def typed(cls, given: Sequence[tuple[str, str]], parameters: Mapping[str, Parameter]) -> GivenFlags:
        """Parse flags; raises :class:`UsageError` for values that do not fit."""
        texts: dict[str, list[str]] = {}
        for name, text in given:
            texts.setdefault(name, []).append(text)
        stated: dict[str, Stated] = {}
        for name, own in texts.items():
            parameter = parameters[name]
            different = own if parameter.positional else set(own)
            is_one = len(different) == 1 and not parameter.repeatable
            stated[name] = parameter.parse(own[0]) if is_one else tuple(own)
        return cls(stated, parameters, tuple(given))

    def options(self, leave_out: Collection[str] = ()) -> Options:
        """The options alone; raises :class:`UsageError` for one that was stated twice."""
        return Options({name: self.value(name) for name in self.stated if name not in leave_out}, self.parameters)

    @property
    def missing(self) -> list[str]:
        """The flags that are required and not given, ``--name=...``."""
        needed = [parameter.name for parameter in self.parameters.values() if parameter.required]
        return [f"--{name}=..." for name in needed if not self.text(name)]

    def refuse_one_file_of_two(self) -> None:
        """Raise :class:`UsageError` where two flags would write to the same path."""
        roles = {name: parameter.role for name, parameter in self.parameters.items()}
        require_apart(
            (f"--{name}", Path(text))
            for name, text in self.given
            if text and roles[name] in ("output_file", "output_folder")
        )

    def among(self, names: Mapping[str, Parameter]) -> list[tuple[str, str]]:
        """The flags given whose names are in ``names``, in order."""
        return [(name, text) for name, text in self.given if name in names]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


class _TerminalHelp(argparse.RawDescriptionHelpFormatter):
    """Help text whose lines break at spaces only."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_long_words=False, break_on_hyphens=False)


class _Collect(argparse.Action):
    """Appends (name, text) to one list for all flags, which keeps their order."""

    def __call__(self, _parser: Any, namespace: Any, values: Any, _option: str | None = None) -> None:
        namespace.given = [*namespace.given, (self.dest, values)]


def parse_flags(
    command: str,
    description: str,
    epilog: str,
    groups: Mapping[str, Sequence[Parameter]],
    arguments: Sequence[str],
    is_whole: bool = True,
) -> GivenFlags:
    """Parse a command line; raises :class:`UsageError` for what is unknown or without effect. ``--help`` prints, exits.

    Where there are many flags it lists those that most people need; ``--help=all`` lists every one.
    ``--use_gpu=true``, ``--use_gpu true``, ``--use_gpu``, ``--nouse_gpu``, dashes for underscores and short names are
    accepted; words that are not flags are values of the parameter that is positional, if there is one. A flag that has
    no effect without another one is refused where the words are the whole command.
    """
    parameters = {parameter.name: parameter for group in groups.values() for parameter in group}
    by_name = {name: parameter for parameter in parameters.values() for name in parameter.names} | parameters
    columns = columns_of(sys.stdout)
    if HELP_OF_ALL not in arguments and len(parameters) > _MOST_LISTED and _asks_for_help(arguments):
        from evaltools.request.help import short_help

        print(short_help(command, description, groups, columns))
        raise SystemExit(0)
    parser = _Parser(
        prog=f"evaltools {command}",
        usage=f"evaltools {command} --flag=value ...",
        description=wrapped(description if columns is None else in_paragraphs(description), columns),
        epilog=wrapped(epilog, columns),
        formatter_class=argparse.RawDescriptionHelpFormatter if columns is None else _TerminalHelp,
        allow_abbrev=False,
    )
    parser.set_defaults(given=[])
    for title, group in groups.items():
        section = parser.add_argument_group(title)
        for parameter in group:
            names = [name for name, found in by_name.items() if found is parameter]
            _add(section, parameter, sorted(names, key=parameter.name.__ne__))
    words = ["--help" if word == HELP_OF_ALL else word for word in arguments]
    known, others = parser.parse_known_args(_normalised(words, by_name))
    positional = next((parameter.name for parameter in parameters.values() if parameter.positional), None)
    for word in others:
        if positional is None or word.startswith("-") or word.partition("=")[0].replace("-", "_") in by_name:
            raise UsageError(_unknown_flag(word, by_name, command.partition(" ")[0]))
    flags = GivenFlags.typed((*((str(positional), word) for word in others), *known.given), parameters)
    if is_whole:
        flags.refuse_without_effect()
    flags.refuse_one_file_of_two()
    return flags


def _asks_for_help(words: Sequence[str]) -> bool:
    return any(word in ("--help", "-h") for word in words)


def _add(section: Any, parameter: Parameter, names: Sequence[str]) -> None:
    choices, meaning = described(parameter)
    optional = {"nargs": "?", "const": "true"} if parameter.type == "bool" else {}
    section.add_argument(
        *(f"--{name}" for name in names), dest=parameter.name, action=_Collect, default=argparse.SUPPRESS,
        metavar=choices or parameter.type.upper(), help=meaning.replace("%", "%%"), **optional,
    )  # fmt: skip


def _normalised(words: Sequence[str], parameters: Mapping[str, Parameter]) -> list[str]:
    """Each flag as ``--name=value``; a switch takes the word behind it only where that is a value for it."""
    found = []
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        flag = _normalise(word, parameters)
        is_switch = flag.removeprefix("--") in parameters and parameters[flag.removeprefix("--")].type == "bool"
        found.append(f"{flag}=true" if is_switch and following not in BOOLEANS else flag)
    return found


def _normalise(word: str, parameters: Mapping[str, Parameter]) -> str:
    """Bring a flag to the form ``--name=value``; leave anything else to argparse."""
    if not word.startswith("--") or word in ("--help", "--"):
        return word
    head, equals, text = word.partition("=")
    if text == "--":
        # Before Python 3.13 argparse drops such a value.
        raise UsageError(f"{word}: -- is not a value; give {head} one, or leave it out")
    name = head.removeprefix("--").replace("-", "_")
    if equals or name in parameters:
        return f"--{name}{equals}{text}"
    try:
        return "--{}={}".format(*split_flag(word, parameters))
    except UsageError:
        return word


def _unknown_flag(word: str, parameters: Mapping[str, Parameter], command: str) -> str:
    from evaltools.gone import instead_of

    if not word.startswith("-"):
        return f"{word!r} is not a flag; everything is given as --name=value"
    name = word.lstrip("-").partition("=")[0].replace("-", "_")
    if instead := instead_of(name, command):
        return f"--{name} is gone: {instead}"
    if not word.startswith("--") and name in parameters:
        return f"{word}: flags start with two dashes: -{word}"
    nearest = did_you_mean(name, parameters).replace("mean ", "mean --")
    return f"{word}: no such flag.{nearest}" + ("" if nearest else " See --help for the flags")


def read_tests(flags: GivenFlags, native: bool, folder: Path) -> list[Configuration]:
    """All test configurations; raises :class:`UsageError` for wrong flags.

    The configuration flags on the command line describe the configuration ``test``, or all of a sweep. It exists where
    there is such a flag, or where no other configuration is given. Relative paths are meant from ``folder``.
    """
    others = configurations_of_files_and_texts(flags, native, folder)
    own_flags = flags.among(CONFIGURATION_PARAMETERS)
    if texts := flags.texts("sweep"):
        from evaltools.request.sweep import sweep_configurations

        return [*sweep_configurations(texts, own_flags), *others]
    tests = [Configuration.from_flags(TEST_NAME, own_flags, native)] if own_flags or not others else []
    return [*tests, *others]


def configurations_of_files_and_texts(
    flags: GivenFlags, native: bool = False, folder: Path = _HERE
) -> list[Configuration]:
    """The configurations of ``--config`` and ``--configs``; raises :class:`UsageError` for wrong flags."""
    found = [_from_config_text(text, native) for text in flags.texts("config")]
    for file in flags.texts("configs"):
        found.extend(_from_yaml_file(folder / file, native))
    return found


def _from_config_text(text: str, native: bool) -> Configuration:
    name, colon, flags = text.partition(":")
    if not colon or not name.strip() or "=" in name:
        raise UsageError(f'--config={text!r}: expected "NAME: flag=value flag=value", as in "gpu: use_gpu=true"')
    return Configuration.from_text(name.strip(), flags, native)


def _from_yaml_file(path: Path, native: bool) -> list[Configuration]:
    from evaltools.request.yaml_file import read_yaml

    document = read_yaml(path, "--configs")
    return configurations_from_yaml(document, str(path), native)
