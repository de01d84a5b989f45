"""The words of a command as a device must be given them: files under the names that they have there."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from evaltools.cli.yaml_file import read_yaml
from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration, configurations_from_yaml
from evaltools.device.store import remote_path
from evaltools.errors import DataError, UsageError
from evaltools.parameter import split_flag

_FILES: Final = frozenset(
    {"model_file", "graph", "ground_truth_labels", "model_output_labels", "denylist_file_path",
     "ground_truth_annotations", "ground_truth_proto", "reference_model_file"}
)  # fmt: skip
_LIBRARIES: Final = frozenset({"external_delegate_path", "stable_delegate_settings_file"})
"""Files that may lie on the device already: a path that is not here is taken for one there."""
_PICTURES: Final = frozenset({"ground_truth_images_path", "input_images"})
_DESK_ONLY: Final = frozenset(
    {"output_file_path", "detections_path", "disagreements_path", "record_examples", "debug_mode", "progress",
     "run_dir", "margin", "output_filepath", "result_file_path", "op_profiling_output_file", "plot", "accuracy",
     "trace", "label_check", "noise_floor_runs", "bootstrap_resamples"}
)  # fmt: skip
"""Flags that say what becomes of the records, or are about what is done once and here."""
_REFUSED: Final = {
    "executor": "the devices are the executor",
    "ray_address": "the devices are the executor",
    "ray_tasks": "the devices are the executor",
    "shard_index": "the parts are made here; see --parts",
    "shard_count": "the parts are made here; see --parts",
    "save_outputs": "outputs stay on the device; save those of this computer, and give the devices --load_reference",
}
_LAYER_AND_PATH: Final = re.compile(r"(?P<layer>(?:[^:]|::)*):(?P<path>(?:[^:]|::)+)")


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


def device_words(given: Sequence[tuple[str, str]], root: str) -> DeviceWords:
    """The command for devices, from flags as typed here; ``root`` is the folder for evaltools there.

    Raises :class:`UsageError` for flags that have no meaning there, :class:`DataError` for files that are missing.
    """
    made = DeviceWords(root)
    native = ("compat", "native") in given
    for name, text in given:
        if name in _REFUSED:
            raise UsageError(f"--{name} has no effect on devices: {_REFUSED[name]}")
        if name in _DESK_ONLY:
            continue
        if name == "configs":
            for configuration in configurations_from_yaml(read_yaml(Path(text), "--configs"), text, native):
                made.words.append(f"--config={_config_of(configuration, made)}")
        else:
            made.words.append(f"--{name}={_value(name, text, made)}")
    return made


def host_words(given: Sequence[tuple[str, str]]) -> list[str]:
    """The same command for this computer, where files keep their names; call it after :func:`device_words`."""
    return [f"--{name}={text}" for name, text in given if name not in _DESK_ONLY]


def _value(name: str, text: str, made: DeviceWords) -> str:
    if not text:
        return text
    if name in _FILES:
        return made.take_file(Path(text))
    if name in _LIBRARIES:
        return _library(name, text, made)
    if name in _PICTURES:
        made.pictures[name] = Path(text)
        return name
    if name == "load_reference":
        return made.take_folder(Path(text))
    if name == "input_files":
        return _input_files(text, made)
    if name == "input_layer_value_files":
        return ",".join(_layer_file(entry, made) for entry in text.split(","))
    if name == "config":
        head, colon, flags = text.partition(":")
        return f"{head}{colon} {_configuration_text(flags, made)}"
    if name == "reference" and text.strip() != "none":
        return _configuration_text(text, made)
    return text


def _library(name: str, text: str, made: DeviceWords) -> str:
    if Path(text).is_file():
        return made.take_file(Path(text))
    if posixpath.isabs(text):
        return text
    raise DataError(f"--{name}={text}: there is no such file here, and it is no absolute path on the device")


def _input_files(text: str, made: DeviceWords) -> str:
    """``NAME=PATH`` or ``PATH``, of a file or a folder; a name may hold ``=`` itself."""
    words = text.split("=")
    for start in range(len(words)):
        if not any(words[start:]):
            break
        path = Path("=".join(words[start:]))
        name = "=".join([*words[:start], ""])
        if path.is_dir():
            return name + made.take_folder(path)
        if path.is_file():
            return name + made.take_file(path)
    raise DataError(f"--input_files={text}: no such file or folder")


def _layer_file(entry: str, made: DeviceWords) -> str:
    """``LAYER:PATH``, where ``::`` stands for a colon in a name or path; what is no such pair stays as it is."""
    pair = _LAYER_AND_PATH.fullmatch(entry)
    if pair is None:
        return entry
    remote = made.take_file(Path(pair["path"].replace("::", ":")))
    return f"{pair['layer']}:{remote.replace(':', '::')}"


def _configuration_text(text: str, made: DeviceWords) -> str:
    try:
        pairs = [split_flag(word, CONFIGURATION_PARAMETERS) for word in shlex.split(text)]
    except ValueError as error:
        raise UsageError(f"{text!r} cannot be split into flags: {error}") from None
    return shlex.join(f"{name}={_value(name, value, made)}" for name, value in pairs)


def _config_of(configuration: Configuration, made: DeviceWords) -> str:
    if ":" in configuration.name or "=" in configuration.name:
        raise UsageError(f"--configs: {configuration.name!r} holds ':' or '='; give it another name for devices")
    return f"{configuration.name}: {_configuration_text(shlex.join(configuration.to_flags()), made)}"
