"""The words of a command as a device must be given them: files under the names that they have there."""

from __future__ import annotations

import posixpath
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from evaltools.cli.flags import GivenFlags
from evaltools.cli.yaml_file import read_yaml
from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration, configurations_from_yaml
from evaltools.device.store import remote_path
from evaltools.errors import DataError, UsageError
from evaltools.parameter import Parameter, split_flag


@dataclass
class DeviceWords:
    """A command for devices: its words, the files that they name with their paths there, and folders by their names.

    ``pictures`` are folders of which a part gets its own pictures, ``folders`` are sent whole.
    """

    root: str
    words: list[str] = field(default_factory=list)
    files: dict[Path, str] = field(default_factory=dict)
    pictures: dict[str, Path] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)

    def take_file(self, path: Path) -> str:
        """The path that a file will have on the device."""
        if path not in self.files:
            self.files[path] = remote_path(self.root, path)
        return self.files[path]

    def take_folder(self, path: Path) -> str:
        """The name that a folder will have in the folder of a part."""
        name = next((name for name, known in self.folders.items() if known == path), f"folder-{len(self.folders)}")
        self.folders[name] = path
        return name


def device_words(flags: GivenFlags, root: str) -> DeviceWords:
    """The command for devices, from flags as typed here; ``root`` is the folder for evaltools there.

    Raises :class:`UsageError` for configurations that cannot be read, :class:`DataError` for files that are missing.
    """
    made = DeviceWords(root)
    native = ("compat", "native") in flags.given
    for name, text in _sent(flags):
        if name == "configs":
            for configuration in configurations_from_yaml(read_yaml(Path(text), "--configs"), text, native):
                made.words.append(f"--config={_config_of(configuration, made)}")
        else:
            made.words.append(f"--{name}={_value(flags.parameters[name], text, made)}")
    return made


def host_words(flags: GivenFlags) -> list[str]:
    """The same command for this computer, where files keep their names; call it after :func:`device_words`."""
    return [f"--{name}={text}" for name, text in _sent(flags)]


def _sent(flags: GivenFlags) -> list[tuple[str, str]]:
    return [(name, text) for name, text in flags.given if flags.parameters[name].is_sent]


def _value(parameter: Parameter, text: str, made: DeviceWords) -> str:
    if parameter.name == "config":
        head, colon, flags = text.partition(":")
        return f"{head}{colon} {_configuration_text(flags, made)}"
    if parameter.name == "reference" and text.strip() not in ("", "none"):
        return _configuration_text(text, made)

    def take(path: Path) -> str:
        if parameter.role == "pictures":
            made.pictures[parameter.name] = path
            return parameter.name
        if parameter.role == "library" and not path.is_file():
            return _there(parameter, text)
        if parameter.role == "input_folder" or path.is_dir():
            return made.take_folder(path)
        return made.take_file(path)

    return text if parameter.role == "machine_path" else str(parameter.rewrite(text, take))


def _there(library: Parameter, text: str) -> str:
    """A library that is not here, and so must be on the device."""
    if posixpath.isabs(text):
        return text
    raise DataError(f"--{library.name}={text}: there is no such file here, and it is no absolute path on the device")


def _configuration_text(text: str, made: DeviceWords) -> str:
    try:
        pairs = [split_flag(word, CONFIGURATION_PARAMETERS) for word in shlex.split(text)]
    except ValueError as error:
        raise UsageError(f"{text!r} cannot be split into flags: {error}") from None
    return shlex.join(f"{name}={_value(CONFIGURATION_PARAMETERS[name], value, made)}" for name, value in pairs)


def _config_of(configuration: Configuration, made: DeviceWords) -> str:
    if ":" in configuration.name or "=" in configuration.name:
        raise UsageError(f"--configs: {configuration.name!r} holds ':' or '='; give it another name for devices")
    return f"{configuration.name}: {_configuration_text(shlex.join(configuration.to_flags()), made)}"
