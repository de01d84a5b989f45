"""Where the command begins: Ctrl-C while modules are imported ends it without a traceback."""

import sys


def main() -> int:
    """Run one command; returns the exit code."""
    try:
        from evaltools.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("evaltools: interrupted before anything was done", file=sys.stderr)
        return 130
