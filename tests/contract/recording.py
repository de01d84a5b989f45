"""Carries out one case and describes what came of it."""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from evaltools.datasets import sample
from tests.command import evaltools_here
from tests.contract.blanking import blank_text, facts
from tests.contract.cases import REAL_DATA, Case

RECORDINGS: Final = Path(__file__).resolve().parent / "recordings"
_SAMPLE: Final = Path(str(sample.__path__[0]))


def recording_of(case: Case) -> str:
    """The case's exit code, stdout, screen and result as text, after it was carried out in a new folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        if case.prepare is not None:
            case.prepare(folder)
        for words in case.before:
            evaltools_here(*words, cwd=folder)
        done = evaltools_here(*case.words, cwd=folder)
        names = {str(_SAMPLE): "SAMPLE", str(REAL_DATA): "REALDATA", str(folder): "FOLDER"}
        parts = [
            f"$ {shlex.join(['evaltools', *case.words])}\nexit code {done.code}\n",
            f"\n== stdout\n{blank_text(_with_words(done.out, names))}",
        ]
        if case.has_screen:
            parts.append(f"\n== stderr\n{blank_text(_with_words(done.err, names))}")
        if case.result:
            document = json.loads((folder / case.result).read_text())
            lines = [line for line in facts(document) if not re.search(case.left_out, line)]
            parts.append("\n== result\n" + "".join(f"{line}\n" for line in lines))
        return _with_words("".join(parts), names)


def _with_words(text: str, names: Mapping[str, str]) -> str:
    for path, word in names.items():
        text = text.replace(path, word)
    return text
