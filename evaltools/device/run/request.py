"""A request as devices get it: files under the paths that they have there, and only what is for devices to know."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from evaltools.device.files.store import remote_path, sha256_of, stored_path
from evaltools.errors import DataError, UsageError
from evaltools.parameter import Parameter
from evaltools.request import Request
from evaltools.runs.stored import rewritten
from evaltools.task_kind import request_kind
from evaltools.tasks.shared.names_here import NamesHere

_PICTURES: Final = "evaltools-pictures-"
_FOLDER: Final = "evaltools-folder-"
"""What names of folders on devices begin with, so that no other word in what a device says is one of them."""


def pictures_there(option: str) -> str:
    """The folder that has the pictures of an option on a device, in that of the part."""
    return f"{_PICTURES}{option}"


@dataclass
class SentFiles:
    """What a request names: single files with their paths below ``root`` on a device, and folders.

    ``pictures`` are folders of which a part gets its own pictures, by option; ``folders`` are sent whole, by the names
    that they have there. ``beside`` must lie beside the file of the task.
    """

    root: str
    beside: Sequence[Path] = ()
    files: dict[Path, str] = field(default_factory=dict)
    pictures: dict[str, Path] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)

    def take(self, parameter: Parameter | None, path: Path) -> str:
        """What the value of a parameter is called on the device; None: a file that the task itself is in."""
        if parameter is None:
            return self._take_with_those_beside(path) if self.beside else self.take_file(path)
        if not parameter.is_sent or parameter.role == "machine_path":
            return str(path)
        if parameter.role == "pictures":
            self.pictures[parameter.name] = path
            return pictures_there(parameter.name)
        if parameter.role == "library" and not path.is_file():
            return _there(parameter, path)
        if parameter.role == "input_folder" or path.is_dir():
            return self._take_folder(path)
        return self.take_file(path)

    def take_file(self, path: Path) -> str:
        """The path that a file will have on the device."""
        if path not in self.files:
            self.files[path] = remote_path(self.root, path)
        return self.files[path]

    def _take_with_those_beside(self, path: Path) -> str:
        """The path that the file of the task will have: in one folder with the others, named after all contents."""
        together = sorted({path, *self.beside})
        names = {each: each.relative_to(path.parent).as_posix() for each in together}
        self.files |= {each: stored_path(self.root, self._sum_of(names), name) for each, name in names.items()}
        return self.files[path]

    def _sum_of(self, names: Mapping[Path, str]) -> str:
        checksum = hashlib.sha256()
        for path, name in names.items():
            checksum.update(f"{name}\0{sha256_of(path)}\0".encode("utf-8", "surrogateescape"))
        return checksum.hexdigest()

    def _take_folder(self, path: Path) -> str:
        name = next((name for name, known in self.folders.items() if known == path), f"{_FOLDER}{len(self.folders)}")
        self.folders[name] = path
        return name


def _there(library: Parameter, path: Path) -> str:
    """A library that is not here, and so must be on the device."""
    if posixpath.isabs(path):
        return str(path)
    raise DataError(f"--{library.name}={path}: there is no such file here, and it is no absolute path on the device")


@dataclass(frozen=True)
class DeviceRequest:
    """A ``request`` with the names that files have on devices, and what is sent for it; see :class:`SentFiles`."""

    request: Request
    files: Mapping[Path, str]
    pictures: Mapping[str, Path]
    folders: Mapping[str, Path]

    def names_here(self, reference: str = "") -> NamesHere:
        """What files and folders are called here, by what they are called there; see :class:`NamesHere`."""
        files = {there: str(here) for here, there in self.files.items()}
        pictures = {pictures_there(option): str(here) for option, here in self.pictures.items()}
        folders = {there: str(here) for there, here in self.folders.items()}
        return NamesHere(files | pictures | folders, reference)


def device_request(request: Request, root: str) -> DeviceRequest:
    """The request for devices; ``root`` is the folder for evaltools there.

    Raises :class:`DataError` for files that are missing, :class:`UsageError` for what only other packages here have.
    """
    _require_what_devices_have(request)
    sent = SentFiles(root, request_kind(request.task).files_beside())
    there = rewritten(replace(request, devices=None), sent.take, Path())
    return DeviceRequest(there, sent.files, sent.pictures, sent.folders)


def _require_what_devices_have(request: Request) -> None:
    for configuration in request.configurations:
        others = ", ".join(configuration.flags_from_outside)
        if others:
            raise UsageError(
                f"configuration {configuration.name!r}: {others} comes from another package, which is not on devices; "
                "use a delegate library that is built for them: --external_delegate_path"
            )


def without_host_options(request: Request) -> Request:
    """The request without what is about the result, the run as a whole, or devices."""
    parameters = request.options.parameters.values()
    kept = request.without(*(each.name for each in parameters if not each.is_sent))
    return replace(kept, devices=None, command=())
