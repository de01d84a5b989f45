"""``python -m benchmarks NAME [--flag=value ...]``: runs the benchmark of that module.

The children of a benchmark import this module again, as they do the ``evaltools`` command; it imports nothing heavy.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run a benchmark; returns the exit code."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))
    if not arguments or arguments[0] not in names:
        print(f"usage: python -m benchmarks NAME [--flag=value ...], with NAME one of {', '.join(names)}")
        return 2
    code: int = importlib.import_module(f"benchmarks.{arguments[0]}").main(arguments[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
