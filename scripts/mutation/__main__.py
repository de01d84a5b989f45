"""``python scripts/mutation [--room=NAME] [--count=30] [--seed=1]``: how many planted mistakes the tests notice.

For each room the tests of that room run once to see which of them reach which line. Then mistakes are drawn, and for
each of them the tests that reach its line run, or all of the room where only a process of theirs does. A mistake is
noticed where a test fails or does not end. Exit code 1: less than 85 % are noticed in a room.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from coverage import CoverageData

from plant import Mutant, drawn

_TREE: Final = Path(__file__).resolve().parents[2]
_LOADER: Final = Path(__file__).resolve().parent / "in_processes"
_WANTED: Final = 0.85
_MOST_TESTS: Final = 200
_PATIENCE: Final = 600
_EXAMPLES: Final = "tests/test_doctests.py::test_examples[{}]"
"""The examples in the docstrings of a room."""


class Room(NamedTuple):
    """Modules, as patterns of paths, and the tests that are about them."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS: Final = {
    "metrics": Room(("evaltools/metrics/*.py",), ("tests/metrics", _EXAMPLES.format("metrics"))),
    "judge": Room(
        ("evaltools/gates/*.py", "evaltools/operators/judge.py"),
        ("tests/gates", "tests/operators", "tests/cli/judge", _EXAMPLES.format("gates"), _EXAMPLES.format("operators")),
    ),
    "run": Room(
        ("evaltools/engine/*.py", "evaltools/runs/*.py"),
        ("tests/engine", "tests/runs", "tests/cli/runs", _EXAMPLES.format("engine"), _EXAMPLES.format("runs")),
    ),
    "delegates": Room(
        ("evaltools/delegates/*.py",),
        ("tests/delegates", "tests/test_configuration.py", "tests/test_extensions.py", _EXAMPLES.format("delegates")),
    ),
    "native": Room(("evaltools/native/*/*.py",), ("tests/native", _EXAMPLES.format("native"))),
    "exit codes": Room(
        ("evaltools/exit_codes.py", "evaltools/cli/runs/*.py"), ("tests/test_exit_codes.py", "tests/cli")
    ),
}


def main(arguments: list[str]) -> int:
    """Try the rooms; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python scripts/mutation", description=__doc__)
    parser.add_argument("--room", choices=[*ROOMS], action="append", help="May be repeated; all without it.")
    parser.add_argument("--count", type=int, default=30, help="Mistakes a room.")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    shares = [_tried(name, ROOMS[name], given.count, given.seed) for name in given.room or ROOMS]
    return int(min(shares) < _WANTED)


def _tried(name: str, room: Room, count: int, seed: int) -> float:
    """The share of mistakes in a room that were noticed; prints those that were not."""
    modules = sorted(path for pattern in room.modules for path in _TREE.glob(pattern))
    mutants = drawn(modules, count, seed)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as threads:
        reached = _reached(room, Path(folder))
        noticed = list(threads.map(lambda each: _is_noticed(each, room, reached, Path(folder)), mutants))
    for mutant, is_noticed in zip(mutants, noticed, strict=True):
        if not is_noticed:
            print(f"  {mutant.path.relative_to(_TREE)}:{mutant.line}: {mutant.kind.removeprefix('core/')}", flush=True)
    print(f"{name}: {sum(noticed)} of {len(mutants)} noticed", flush=True)
    return sum(noticed) / len(mutants)


def _reached(room: Room, folder: Path) -> CoverageData:
    """Which tests reach which lines; raises :class:`SystemExit` where they fail without a mistake."""
    settings, data = folder / "settings", folder / "data"
    settings.write_text(f"[run]\nsource = evaltools\ndata_file = {data}\n", encoding="utf-8")
    words = ["--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report="]
    if code := _pytest([*words, *room.tests], os.environ):
        raise SystemExit(f"the tests {' '.join(room.tests)} fail without a mistake: pytest ended with {code}")
    found = CoverageData(str(data))
    found.read()
    return found


def _is_noticed(mutant: Mutant, room: Room, reached: CoverageData, folder: Path) -> bool:
    contexts = reached.contexts_by_lineno(str(mutant.path)).get(mutant.line, [])
    tests = sorted({context.partition("|")[0] for context in contexts if context})
    with tempfile.NamedTemporaryFile("w", suffix=".py", dir=folder, encoding="utf-8") as text:
        text.write(mutant.text())
        text.flush()
        variables = {
            "EVALTOOLS_MUTANT_OF": str(mutant.path),
            "EVALTOOLS_MUTANT": text.name,
            "PYTHONPATH": os.pathsep.join([str(_LOADER), os.environ.get("PYTHONPATH", "")]),
        }
        return (
            _pytest(["-x", *(tests if 0 < len(tests) <= _MOST_TESTS else room.tests)], {**os.environ, **variables}) != 0
        )


def _pytest(words: list[str], environment: os._Environ[str] | dict[str, str]) -> int:
    """The exit code of the tests, 1 where they do not end. Pytest must not load the modules to rewrite assertions."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--assert=plain",
        *words,
    ]
    try:
        return subprocess.run(
            command, env=environment, cwd=_TREE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_PATIENCE
        ).returncode
    except subprocess.TimeoutExpired:
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
