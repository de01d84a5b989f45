"""One flag, declared once: everything that prints, reads, checks or documents it is derived from the declaration."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from evaltools.errors import DataError, UsageError

Value = bool | int | float | str
TypeName = Literal["bool", "int32", "float", "string"]
Role = Literal[
    "plain",
    "input_file",
    "input_folder",
    "pictures",
    "named_files",
    "layer_files",
    "library",
    "settings_file",
    "machine_path",
    "program",
    "output_file",
    "output_folder",
]
"""What the value of a flag names.

plain: no path. input_file, input_folder: sent to devices as a whole. pictures: a folder of which a part gets its own
files. named_files: ``NAME=PATH`` or ``PATH``, a file or a folder. layer_files: ``LAYER:PATH,LAYER:PATH``. library: a
file here, or on the device already, or a name that the loader looks up. settings_file: a file here, or on the device
already. machine_path: something where the model runs. program: a path, or a name that is looked up.
"""
About = Literal["records", "candidates", "configurations", "execution", "result", "run"]
"""What a flag decides.

records: what is measured. candidates: models that are measured beside each other. configurations: those beside each
other; requests hold what becomes of such flags. execution: how the work is done; no figure changes with it. result:
what becomes of the records, and what is shown. run: where a run is kept, and which part of it this is.
"""

BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_TYPES: Final[Mapping[type, TypeName]] = {bool: "bool", int: "int32", float: "float", str: "string"}
_INT32_LIMIT: Final = 1 << 31
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_CONTENT: Final = ("input_file", "input_folder", "pictures")
_WITH_VERSION: Final = re.compile(r"==[0-9][0-9A-Za-z.!+-]*\Z")
_LAYER_AND_PATH: Final = re.compile(r"(?P<layer>(?:[^:]|::)*):(?P<path>(?:[^:]|::)+)")


class NotNative(Struct, frozen=True):
    """Why the native tools have nothing of a flag; the ``harmless`` values ask for what they do anyway."""

    reason: str
    harmless: tuple[Value, ...] = ()


class Parameter(Struct, frozen=True):
    """A command-line flag: its name, meaning and default, whose type is that of every value.

    Attributes:
        name: the flag without its dashes, with underscores; an option of that name in Python and YAML.
        help: what it means, in sentences.
        default: its value where nobody states one.
        platforms: where the flag exists or does something in the native tools.
        choices: the accepted values; empty for any.
        repeatable: it may be given several times.
        log: what native logs call it; empty where they do not name it.
        role: what the value names.
        about: what the flag decides.
        required: there is no run without it.
        given_counts: to give the default is not the same as to leave the flag out.
        only_with: flags without which this one has no effect, ``NAME=VALUE|VALUE``, or ``NAME`` for any value but its
            default; those that a command lacks do not count.
        for_records: the value where records alone are wanted: what the option asks for is done with them.
        refused_on_devices: why there is no such thing on devices.
        not_native: why native tools cannot have it.
        declared_type: for a flag whose default is empty, and no string otherwise.
        short: a shorter name beside that of the native tools, or several with blanks between.
        positional: words that are no flags are values of this one.
        in_python: what there is in Python instead.
        limit: the figure that the value limits, from above where less of it is better; ``NUMBER`` or
            ``OUTPUT=NUMBER``.
        has_versions: a choice may have ``==VERSION`` behind it.
        heading: that of the options among which help lists it.
    """

    name: str
    help: str
    default: Value = ""
    platforms: str = "all"
    choices: tuple[Value, ...] = ()
    repeatable: bool = False
    log: str = ""
    role: Role = "plain"
    about: About = "records"
    required: bool = False
    given_counts: bool = False
    only_with: tuple[str, ...] = ()
    for_records: Value | None = None
    refused_on_devices: str = ""
    not_native: NotNative | None = None
    declared_type: TypeName | None = None
    short: str = ""
    positional: bool = False
    in_python: str = ""
    limit: str = ""
    has_versions: bool = False
    heading: str = ""

    @property
    def names(self) -> list[str]:
        """Its name, then the shorter ones."""
        return [self.name, *self.short.split()]

    @property
    def type(self) -> TypeName:
        """Of every value: the declared type, else that of the default."""
        return self.declared_type or _TYPES[type(self.default)]

    @property
    def may_be_several(self) -> bool:
        """Whether several values may be given: by repeating the flag, or as several words."""
        return self.repeatable or self.positional

    @property
    def is_path(self) -> bool:
        """Whether the value names files or folders."""
        return self.role != "plain"

    @property
    def is_content(self) -> bool:
        """Whether the value is known by what lies at its path, not by the path."""
        return self.role in _CONTENT

    @property
    def must_agree(self) -> bool:
        """Whether a resumed run, and every shard of one, must have it alike."""
        return self.about in ("records", "candidates", "configurations")

    @property
    def may_differ(self) -> bool:
        """Whether it may be given anew when a run goes on."""
        return self.about in ("execution", "result")

    @property
    def is_sent(self) -> bool:
        """Whether devices get it; else it is only for this computer, or refused."""
        if self.refused_on_devices or self.for_records is not None:
            return False
        return self.about not in ("configurations", "result", "run")

    @property
    def instead_in_python(self) -> str:
        """What Python has in its place; empty where it is an option there, too."""
        if self.about == "configurations":
            return "give tests="
        written = self.role == "output_file" and self.about == "result"
        return self.in_python or ("only the command line writes it" if written else "")

    def parse(self, text: str) -> Value:
        """Read the text behind ``--name=``; stricter than the native tools, which accept ``4abc`` as 4.

        >>> Parameter("use_gpu", "", default=False).parse("true")
        True
        """
        value = self._read(text)
        named = _WITH_VERSION.sub("", text) if self.has_versions else value
        if self.choices and named not in self.choices:
            accepted = ", ".join(format_value(choice) for choice in self.choices if choice != "")
            hint = did_you_mean(text, [format_value(choice) for choice in self.choices])
            raise UsageError(f"--{self.name}={text}: not an accepted value; use one of {accepted}.{hint}")
        return value

    def accept(self, value: object) -> Value:
        """A value as Python has it; a text as :meth:`parse` reads it.

        >>> Parameter("num_runs", "", default=1).accept(3), Parameter("margin", "", default=0.1).accept(1)
        (3, 1.0)
        """
        if isinstance(value, str | os.PathLike):
            return self.parse(os.fspath(value))
        typed = self._typed(value)
        if typed is None or (self.choices and typed not in self.choices):
            return self.parse(format_value(value))  # which says what is wrong with it
        return typed

    def _typed(self, value: object) -> Value | None:
        """The value in the type of every value, None where it is of another or out of range."""
        if self.type == "bool":
            return value if isinstance(value, bool) else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        if self.type == "float":
            return float(value) + 0.0
        is_whole = isinstance(value, int) and self.type == "int32" and -_INT32_LIMIT <= value < _INT32_LIMIT
        return value if is_whole else None

    def _read(self, text: str) -> Value:
        if self.type == "string":
            return text
        try:
            if self.type == "bool":
                return BOOLEANS[text]
            if self.type == "float":
                return _finite(float(text))
            return _int32(text)
        except (KeyError, ValueError):
            expected = {"bool": "true, false, 1 or 0", "float": "a finite number", "int32": "a whole number (32 bit)"}
            blanks = "; blanks stand between flags, no commas" if "," in text else ""
            message = f"--{self.name}={text}: not a valid value; use {expected[self.type]}{blanks}"
            raise UsageError(message) from None

    def canonical(self, text: str) -> str:
        """The one text of all that mean the same.

        >>> use_gpu = Parameter("use_gpu", "", default=False)
        >>> use_gpu.canonical("1"), Parameter("margin", "", default=0.005).canonical("1e-2")
        ('true', '0.01')
        """
        return format_value(self.parse(text))

    def is_as_left_out(self, value: Value) -> bool:
        """Whether giving this value is the same as not giving the flag."""
        return value == self.default and not self.given_counts

    def rewrite(self, value: Value, take: Callable[[Path], str], folder: Path = Path()) -> Value:
        """The value with ``take`` of each path in it, which is meant from ``folder``.

        Raises :class:`DataError` for named files that are not there.

        >>> files = Parameter("input_layer_value_files", "", role="layer_files")
        >>> files.rewrite("ids:a.bin,in:b.bin", lambda path: f"/data/{path}")
        'ids:/data/a.bin,in:/data/b.bin'
        """
        text = str(value)
        if not text or not self.is_path or self._is_looked_up(text, folder):
            return value
        if self.role == "named_files":
            name, path = self._name_and_path(text, folder)
            return name + take(path)
        if self.role == "layer_files":
            return ",".join(_layer_file(entry, take) for entry in text.split(","))
        return take(Path(text))

    def _is_looked_up(self, text: str, folder: Path) -> bool:
        """Whether the value is a name that is looked up where it is used."""
        if os.sep in text:
            return False
        return self.role == "program" or (self.role == "library" and not (folder / text).exists())

    def _name_and_path(self, text: str, folder: Path) -> tuple[str, Path]:
        """``NAME=`` or nothing, and what is behind it; a name may hold ``=``, and so may a path, which goes first."""
        words = text.split("=")
        for start in range(len(words)):
            path = "=".join(words[start:])
            if path.strip("=") and (folder / path).exists():
                return text.removesuffix(path), Path(path)
        raise DataError(f"--{self.name}={text}: no such file or folder")

    def format(self, value: Value) -> str:
        """Print the flag as the native tools read it, ``--name=value``."""
        return f"--{self.name}={format_value(value)}"

    def logged(self, value: Value) -> str:
        """The flag as native logs name it: booleans as 1 and 0, floats with six digits, ``%g``.

        >>> Parameter("min_secs", "", default=1.0, log="Min runs duration (seconds)").logged(0.5)
        'Min runs duration (seconds): [0.5]'
        """
        return f"{self.log}: [{_as_streamed(value)}]"


def _layer_file(entry: str, take: Callable[[Path], str]) -> str:
    """``LAYER:PATH``, where ``::`` stands for a colon in a name or path; what is not such a pair stays as it is."""
    pair = _LAYER_AND_PATH.fullmatch(entry)
    if pair is None:
        return entry
    taken = take(Path(pair["path"].replace("::", ":")))
    return f"{pair['layer']}:{taken.replace(':', '::')}"


def _int32(text: str) -> int:
    if not _WHOLE_NUMBER.fullmatch(text) or not -_INT32_LIMIT <= int(text) < _INT32_LIMIT:
        raise ValueError(text)
    return int(text)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(value)
    return value + 0.0


def format_value(value: object) -> str:
    """A value as flag text: booleans as ``true`` and ``false``, everything else as ``str`` gives it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _as_streamed(value: Value) -> str:
    """A value as a C++ stream prints it."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return f"{value:g}" if isinstance(value, float) else str(value)


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """`` Did you mean ...?`` for the nearest known word, `` It is gone: ...`` for an earlier flag, or an empty string.

    >>> did_you_mean("use_xnpack", ["use_gpu", "use_xnnpack"])
    ' Did you mean use_xnnpack?'
    """
    from evaltools.gone import instead_of

    if instead := instead_of(wrong):
        return f" It is gone: {instead}."
    nearest = difflib.get_close_matches(wrong, [word for word in known if word], n=1, cutoff=0.6)
    return f" Did you mean {nearest[0]}?" if nearest else ""


def split_flag(word: str, known: Mapping[str, Parameter]) -> tuple[str, str]:
    """``--use-gpu=true``, ``use_gpu=true``, ``--use_gpu`` and ``--nouse_gpu`` -> name and text.

    >>> known = {"use_gpu": Parameter("use_gpu", "", default=False)}
    >>> split_flag("--nouse_gpu", known), split_flag("use-gpu", known), split_flag("--other=a=b", known)
    (('use_gpu', 'false'), ('use_gpu', 'true'), ('other', 'a=b'))
    """
    name, equals, text = word.removeprefix("--").partition("=")
    name = name.replace("-", "_")
    if equals:
        return name, text
    if name in known and known[name].type == "bool":
        return name, "true"
    positive = name.removeprefix("no")
    if name not in known and positive in known and known[positive].type == "bool":
        return positive, "false"
    if name in known:
        raise UsageError(f"--{name} needs a value: --{name}=...")
    raise UsageError(f"{word!r}: no such flag.{did_you_mean(name, known)}")


def described(parameter: Parameter) -> tuple[str, str]:
    """The choices of a flag, ``a|b``, empty for any value; and its help with its default."""
    choices = "|".join(format_value(choice) for choice in parameter.choices if choice != "")
    default = "" if parameter.given_counts else format_value(parameter.default)
    return choices, parameter.help + (f" Default: {default}." if default else "")
