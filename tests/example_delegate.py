"""The external delegates that tests compile: real ones, so that tests see what a delegate on a device would do."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SOURCE_DIR = Path(__file__).resolve().parents[1] / "examples" / "external_delegate"
COMPILERS = ("cc", "gcc", "clang")


class CompilerMissing(RuntimeError):
    """There is no C compiler to build the example delegate with."""


def build_delegate(
    name: str, target_dir: Path, sources: Path = SOURCE_DIR, compilers: Sequence[str] = COMPILERS
) -> Path:
    """Compile a delegate, such as ``rounding_delegate`` or ``faulty_delegate``, into ``target_dir``.

    Returns the path of the shared library. Raises :class:`CompilerMissing` if none of
    ``compilers`` is on the PATH, RuntimeError with the compiler's text if it fails.
    """
    compiler = next(filter(None, map(shutil.which, compilers)), None)
    if compiler is None:
        msg = f"no C compiler found on the PATH, looked for {', '.join(compilers)}"
        raise CompilerMissing(msg)
    library = target_dir / f"{name}.so"
    source = sources / f"{name}.c"
    flags = ["-std=c11", "-ffp-contract=off", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command = [compiler, *flags, f"-I{SOURCE_DIR}", "-o", str(library), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        msg = f"{' '.join(command)} failed:\n{done.stderr}"
        raise RuntimeError(msg)
    return library
