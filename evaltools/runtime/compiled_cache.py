"""XNNPACK's file of packed weights: it belongs to one model, which the runtime does not check."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from evaltools.configuration import Configuration
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.errors import ConfigurationUnavailable, UsageError
from evaltools.model import ModelFile

_SUFFIX: Final = ".model"


def require_own_cache(model: ModelFile, configuration: Configuration) -> None:
    """Refuse a file of packed weights that was not made for this model; ``PATH.model`` beside it says for which it was.

    Raises :class:`UsageError` for a path that cannot be written, :class:`ConfigurationUnavailable` for a file that is
    another model's, or anything else.
    """
    settings = configuration.delegates
    if not settings.value("xnnpack_weight_cache_file_path"):
        return
    if settings.value("xnnpack_force_fp16"):
        message = (
            "--xnnpack_weight_cache_file_path and --xnnpack_force_fp16 together end the process; drop one of the two"
        )
        raise ConfigurationUnavailable(message, XNNPACK)
    path = Path(str(settings.value("xnnpack_weight_cache_file_path")))
    if path.is_dir() or not path.parent.is_dir():
        problem = "is a folder" if path.is_dir() else "its folder does not exist"
        raise UsageError(f"--xnnpack_weight_cache_file_path={path}: {problem}; name a file in an existing folder")
    sha256 = hashlib.sha256(model.read()).hexdigest()
    owner = path.with_name(path.name + _SUFFIX)
    if path.exists() and (not owner.exists() or owner.read_text().strip() != sha256):
        message = f"--xnnpack_weight_cache_file_path={path} was not made from this model, and would give wrong numbers"
        raise ConfigurationUnavailable(f"{message}; delete it or name another file", XNNPACK)
    owner.write_text(sha256 + "\n")
