"""What LiteRT's CPU options pass on to XNNPACK: bits, and its file of packed weights.

That file belongs to one model, and the runtime checks neither that nor its content.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from evaltools.configuration import Configuration
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.file_content import Unreadable, sha256_of, text_of
from evaltools.model import ModelFile
from evaltools.model.contents import Graph, read_contents

_QUANTISED: Final = 3
"""QS8 and QU8, which the native tools always set beside other flags: flags replace those of the delegate."""
_FORCE_FP16: Final = 4
_FP16_FLAG: Final = "xnnpack_force_fp16"
_CONVERSIONS: Final = ("QUANTIZE", "DEQUANTIZE")
_CACHE_FLAG: Final = "xnnpack_weight_cache_file_path"
_IN_MEMORY: Final = ":memory:"
_NOTE: Final = ".model"
"""Behind the name of the file, that of a note beside it: the SHA-256 of its model, then that of the file itself."""


def fp16_without_effect(model: ModelFile, configuration: Configuration) -> str:
    """Why fp16, where it is asked for, changes nothing in a model; empty where it does."""
    if not configuration.delegates.value(_FP16_FLAG) or any(map(_has_float_work, read_contents(model).graphs)):
        return ""
    return (
        f"--{_FP16_FLAG}=true had nothing to do: no operator of the model computes with float32, and none was in "
        "fp16; leave it out"
    )


def _has_float_work(graph: Graph) -> bool:
    computing = (node for node in graph.nodes if node.operator not in _CONVERSIONS)
    tensors = (graph.tensor(index) for node in computing for index in (*node.inputs, *node.outputs))
    return any(tensor is not None and tensor.dtype == "float32" and tensor.constant is None for tensor in tensors)


def xnnpack_flags(configuration: Configuration) -> int | None:
    """The bits that a configuration asks for, None where it leaves them to the delegate.

    Raises :class:`UsageError` for a negative number.

    >>> xnnpack_flags(Configuration.from_text("c", "use_xnnpack=true xnnpack_force_fp16=true"))
    7
    """
    asked_for = int(configuration.delegates.value("xnnpack_runtime_flags"))
    if asked_for < 0:
        raise UsageError("--xnnpack_runtime_flags is a set of bits, 0 or more; a negative number is none")
    asked_for |= _FORCE_FP16 if configuration.delegates.value(_FP16_FLAG) else 0
    return asked_for | _QUANTISED if asked_for else None


@contextmanager
def weight_cache(model: ModelFile, configuration: Configuration) -> Iterator[str]:
    """What the runtime is to be given as the file of packed weights, while it loads the model; empty for none.

    A new file is written under another name, so that one with the right name is whole and has its note; the runtime
    writes one of another version of itself anew. Raises :class:`UsageError` for a path that cannot be written,
    :class:`ConfigurationUnavailable` for a file that is another model's, damaged, or anything else.
    """
    stated = str(configuration.delegates.value(_CACHE_FLAG))
    if stated and configuration.delegates.value("xnnpack_force_fp16"):
        message = f"--{_CACHE_FLAG} and --xnnpack_force_fp16 together end the process; drop one of the two"
        raise ConfigurationUnavailable(message, XNNPACK.name)
    if stated in ("", _IN_MEMORY):
        yield stated
        return
    path = Path(stated)
    if path.is_dir() or not path.parent.is_dir():
        problem = "is a folder" if path.is_dir() else "its folder does not exist"
        raise UsageError(f"--{_CACHE_FLAG}={path}: {problem}; name a file in an existing folder")
    owner = hashlib.sha256(model.read()).hexdigest()
    is_there = path.exists()
    if is_there:
        with _file_errors(path):
            is_own = _note_of(path).exists() and text_of(_note_of(path)) == _note_on(path, owner)
        if not is_own:
            message = f"--{_CACHE_FLAG}={path} was not made from this model, or was changed since, and would give wrong"
            raise ConfigurationUnavailable(f"{message} numbers; delete it or name another file", XNNPACK.name)
    used = path if is_there else path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield str(used)
        with _file_errors(path):
            if used.exists():
                _note_of(path).write_text(_note_on(used, owner))
                used.replace(path)
    finally:
        if not is_there:
            used.unlink(missing_ok=True)


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, Unreadable) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        message = (
            f"--{_CACHE_FLAG}={path}, or the note {_note_of(path)}: {reason}; name a file that can be read and written"
        )
        raise UsageError(message) from error


def _note_on(cache: Path, owner: str) -> str:
    return f"{owner}\n{sha256_of(cache)}\n"


def _note_of(path: Path) -> Path:
    return path.with_name(path.name + _NOTE)
