"""Carries out one case and describes what came of it."""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from pathlib import Path
from typing import Final

from evaltools.datasets import sample
from tests.command import evaltools_here
from tests.contract.blanking import blank_paths, blank_text, facts
from tests.contract.cases import REAL_DATA, Case

RECORDINGS: Final = Path(__file__).resolve().parent / "recordings"
_SAMPLE: Final = Path(str(sample.__path__[0]))


def recording_of(case: Case) -> str:
    """The case's exit code, stdout, screen and result as text, after it was carried out in a new folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        if case.prepare is not None:
            case.prepare(folder)
        for earlier in case.before:
            evaltools_here(*earlier, cwd=folder)
        done = evaltools_here(*case.words, cwd=folder)
        names = {str(_SAMPLE): "SAMPLE", str(REAL_DATA): "REALDATA", str(folder): "FOLDER"}
        words = ["evaltools", *(blank_paths(word, names) for word in case.words)]
        parts = [
            f"$ {shlex.join(words)}\nexit code {done.code}\n",
            f"\n== stdout\n{blank_text(blank_paths(done.out, names))}",
        ]
        if case.has_screen:
            parts.append(f"\n== stderr\n{blank_text(blank_paths(done.err, names))}")
        if case.result:
            document = json.loads((folder / case.result).read_text())
            lines = [line for line in facts(document) if not re.search(case.left_out, line)]
            parts.append("\n== result\n" + "".join(f"{line}\n" for line in lines))
        return blank_paths("".join(parts), names)
