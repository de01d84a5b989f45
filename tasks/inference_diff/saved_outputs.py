"""Inputs and outputs saved in a folder, so that another machine's outputs can be compared with them.

The folder has ``manifest.json``, ``inputs/00000.npz`` and, per configuration, ``outputs-0-NAME/00000.npz``. A file
holds the arrays of one run in the model's order, named ``arr_0``, ``arr_1``, ... The manifest has the sha256 of the
model and of every file. Devices that all do everything are compared with outputs that the host saves so.
"""

from __future__ import annotations

import hashlib
import io
import re
import threading
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.datasets.input_files import read_arrays
from evaltools.documents import json_as
from evaltools.errors import DataError, ImageError
from evaltools.file_content import DATA_BYTES, MODEL_BYTES, Unreadable, content_of
from evaltools.request import Request
from evaltools.result.facts import RuntimeUsed, Tensor
from evaltools.result.json_file import encode_json
from evaltools.runtime.session import Array

_MANIFEST: Final = "manifest.json"
INPUTS: Final = ""
"""Whose files the inputs are: no configuration has this name."""
_LOADED: Final = "load_reference="
"""``only_with`` of the options that make sense only with a reference that is loaded."""


class SavedFile(Struct, frozen=True):
    """The file with the arrays of one run; ``run`` counts from 0."""

    run: int
    file: str
    sha256: str


class SavedConfiguration(Struct, frozen=True):
    """The outputs of one configuration, ``tensors`` in the order of the files, and the model that gave them."""

    name: str
    role: Literal["reference", "test"]
    model_file: str
    model_sha256: str
    flags: list[str]
    num_threads: int
    runtime: RuntimeUsed
    tensors: list[Tensor]
    outputs: list[SavedFile]


class Manifest(Struct, frozen=True):
    """The content of ``manifest.json``.

    ``invocations_per_run`` and ``warmup_runs`` matter for models that keep a state from one run to the next. ``kinds``
    says what the inputs of a run are, by its number.
    """

    schema_version: Literal["1"]
    signature: str
    invocations_per_run: int
    warmup_runs: int
    inputs: list[Tensor]
    input_files: list[SavedFile]
    configurations: list[SavedConfiguration]
    kinds: dict[str, str] = field(default_factory=dict)


class OutputsWriter:
    """Writes the arrays of each run to a folder, and the manifest at the end.

    A file that cannot be written does not end the run: nothing more is written then, and ``failure`` says why. Several
    threads may save at a time.
    """

    def __init__(self, folder: Path) -> None:
        self.failure: str | None = None
        self.folder: Final = folder
        self._files: dict[str, dict[int, SavedFile]] = {}
        self._has_begun = False
        self._lock = threading.Lock()

    def files(self, name: str) -> list[SavedFile]:
        """The files with the outputs of a configuration, or :data:`INPUTS`, in the order of the runs."""
        return [file for _, file in sorted(self._files.get(name, {}).items())]

    def save(self, name: str, run: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Write the outputs of one configuration in a run, and the inputs, unless they were written before."""
        with self._lock:
            if run not in self._files.setdefault(INPUTS, {}):
                self._files[INPUTS][run] = self._write("inputs", run, inputs)
            files = self._files.setdefault(name, {})
            number = list(self._files).index(name) - 1
            files[run] = self._write(f"outputs-{number}-{re.sub(r'[^A-Za-z0-9_-]+', '_', name)}", run, outputs)

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest, without which the folder cannot be read."""
        self._write_bytes(_MANIFEST, encode_json(manifest))

    def _write(self, part: str, run: int, arrays: Sequence[Array]) -> SavedFile:
        content = _packed(arrays)
        file = f"{part}/{run:05d}.npz"
        self._write_bytes(file, content)
        return SavedFile(run, file, hashlib.sha256(content).hexdigest())

    def _write_bytes(self, file: str, content: bytes) -> None:
        if self.failure is not None:
            return
        path = self.folder / file
        try:
            # Another run may have begun in the same folder meanwhile.
            path.parent.mkdir(exist_ok=self._has_begun or path.parent == self.folder)
            self._has_begun = True
            path.write_bytes(content)
        except OSError as error:
            self.failure = f"--save_outputs: {path} cannot be written: {error.strerror}; the folder is of no use"


class SavedReference(Struct, frozen=True, dict=True):
    """The inputs in a folder and the outputs of its reference; each file is checked when it is read.

    ``input_order`` and ``output_order`` are the saved positions of the tensors, in the order of this model's tensors;
    None: as they were saved.
    """

    folder: Path
    manifest: Manifest
    configuration: SavedConfiguration
    input_order: Sequence[int] | None = None
    output_order: Sequence[int] | None = None

    @cached_property
    def runs(self) -> list[int]:
        """The runs that have inputs and outputs."""
        with_inputs = {entry.run for entry in self.manifest.input_files}
        return [entry.run for entry in self.configuration.outputs if entry.run in with_inputs]

    def inputs(self, index: int) -> tuple[Array, ...]:
        """Inputs of the run number ``index`` of :attr:`runs`.

        Raises :class:`ImageError` for a file that cannot be read.
        """
        return self._arrays(self.manifest.input_files, self.runs[index], self.manifest.inputs, self.input_order)

    def __getitem__(self, index: int) -> tuple[Array, ...]:
        """The reference's outputs of the run number ``index`` of :attr:`runs`; raises :class:`ImageError` as well."""
        saved = self.configuration
        return self._arrays(saved.outputs, self.runs[index], saved.tensors, self.output_order)

    def _arrays(
        self, files: Sequence[SavedFile], run: int, tensors: Sequence[Tensor], order: Sequence[int] | None
    ) -> tuple[Array, ...]:
        entry = next(file for file in files if file.run == run)
        path = self.folder / entry.file
        try:
            content = content_of(path, MODEL_BYTES)
            if hashlib.sha256(content).hexdigest() != entry.sha256:
                raise ImageError(f"{path} is not the file that was saved: its sha256 differs from the manifest's")
            archive = read_arrays(content)
            arrays = [_unpacked(archive[f"arr_{position}"]) for position in range(len(tensors))]
        except (ValueError, KeyError, TypeError) as error:
            raise ImageError(f"{path} cannot be read: {error}") from error
        for array, tensor in zip(arrays, tensors, strict=True):
            dtype = "string" if array.dtype == object else array.dtype.name
            if dtype != tensor.dtype:
                raise ImageError(f"{path} has {dtype} where the manifest states {tensor.dtype} ({tensor.name})")
        return tuple(arrays if order is None else [arrays[position] for position in order])


def read_saved_reference(folder: Path) -> SavedReference:
    """Open a folder written by ``--save_outputs``; raises :class:`DataError` for any other folder.

    The outputs are those of the reference, or of the first configuration if there was no reference.
    """
    path = folder / _MANIFEST
    try:
        manifest = json_as(content_of(path, DATA_BYTES), Manifest)
    except Unreadable as error:
        raise DataError(f"--load_reference: {path} cannot be read: {error}") from error
    except ValueError as error:
        raise DataError(f"--load_reference: {path} is not a manifest of saved outputs: {error}") from error
    for entry in (*manifest.input_files, *(file for saved in manifest.configurations for file in saved.outputs)):
        if not re.fullmatch(r"[A-Za-z0-9_-]+/[0-9]+\.npz", entry.file):
            raise DataError(f"--load_reference: {path} names the file {entry.file!r}, which is not inside the folder")
    ordered = sorted(manifest.configurations, key=lambda saved: saved.role != "reference")
    if not ordered or not manifest.input_files:
        raise DataError(f"--load_reference: {path} names no outputs; save them again")
    reference = SavedReference(folder, manifest, ordered[0])
    if not reference.runs:
        raise DataError(f"--load_reference: {path} has no run with both inputs and outputs; save them again")
    return reference


def _packed(arrays: Sequence[Array]) -> bytes:
    """The content of an ``.npz`` file with the arrays; texts become arrays of bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, *(array.astype("S") if array.dtype.kind == "O" else array for array in arrays))
    return buffer.getvalue()


def _unpacked(array: Array) -> Array:
    if array.dtype.kind != "S":
        return array
    texts = np.empty(array.size, object)
    texts[:] = array.ravel().tolist()
    restored: Array = texts.reshape(array.shape)
    return restored


def saving_reference(request: Request, folder: Path) -> Request | None:
    """The request that saves the reference's outputs to ``folder``; None if ``request`` loads such outputs anyway."""
    if "load_reference" in request.options:
        return None
    parameters = request.options.parameters.values()
    saving = request.without(*(each.name for each in parameters if each.about != "records"))
    saving = saving.stating(save_outputs=folder, noise_floor_runs=0, progress="none")
    return replace(saving, tests=(Configuration("host", kernels="builtin"),), devices=None, command=())


def for_places(request: Request) -> Request:
    """The request for each of several places: the noise floor is measured on the host, for all."""
    return request.stating(noise_floor_runs=0)


def against_saved(request: Request, folder: Path) -> Request:
    """The request that compares with the saved outputs in ``folder``, on the inputs that were saved with them."""
    parameters = request.options.parameters.values()
    brought = [each.name for each in parameters if _LOADED in each.only_with]
    loading = request.without(*brought).stating(load_reference=folder)
    if "reference_model_file" in request.options:
        loading = loading.stating(allow_model_mismatch=True)
    return replace(loading, reference=None)
