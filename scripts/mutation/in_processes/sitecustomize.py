"""Loads one module from another text in every Python process that has this folder in its ``PYTHONPATH``.

``EVALTOOLS_MUTANT_OF`` is the path of the module, ``EVALTOOLS_MUTANT`` that of its text with a mistake. Nothing in the
tree changes, so that several mistakes are tried at the same time.
"""

import os
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

_MODULE = Path(os.environ["EVALTOOLS_MUTANT_OF"])
_TEXT = Path(os.environ["EVALTOOLS_MUTANT"])
_get_code = SourceFileLoader.get_code


def _get_code_of_mutant(loader: SourceFileLoader, fullname: str) -> CodeType | None:
    if Path(loader.path).resolve() != _MODULE:
        return _get_code(loader, fullname)
    return compile(_TEXT.read_text(encoding="utf-8"), loader.path, "exec", dont_inherit=True)


SourceFileLoader.get_code = _get_code_of_mutant  # type: ignore[method-assign]
