"""Makes the tables of the fault benchmarks again: ``python -m tests.contract.tables``; it takes ten minutes.

They are compared by eye with those in ``recordings``: a harmful fault that was noticed and is not any more is a
regression, and so is a healthy model that becomes ``diverged``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.contract.recording import RECORDINGS

_ZOO: Final = Path(os.environ.get("EVALTOOLS_REALDATA", "/nowhere")) / "realdata" / "zoo"
_OF_VERDICTS: Final = (
    "ad01_fp32", "kws_ref_model", "kws_ref_model_float32", "mobilenet_v1_0.25_128_quant", "vww_96_int8",
)  # fmt: skip
_OF_LOCATE: Final = ("kws_ref_model", "vww_96_int8", "kws_ref_model_float32")


def _table(name: str, *words: str) -> None:
    done = subprocess.run([sys.executable, "-m", "benchmarks", *words], capture_output=True, text=True, check=True)
    (RECORDINGS / f"{name}.txt").write_text(done.stdout)


def main() -> int:
    """Write both tables; returns the exit code."""
    if not _ZOO.is_dir():
        print("EVALTOOLS_REALDATA names no folder with the models of the tables", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        for model in _OF_VERDICTS:
            shutil.copy(_ZOO / f"{model}.tflite", folder)
        _table("verdicts", "verdicts", f"--models={folder}")
    _table("locate_faults", "locate_faults", *(str(_ZOO / f"{model}.tflite") for model in _OF_LOCATE), "--operators=4")
    return 0


if __name__ == "__main__":
    sys.exit(main())
