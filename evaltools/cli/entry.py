"""Where the command begins and ends: no signal leaves it without its exit code, or what it made for itself behind."""

import gc
import sys


def main() -> int:
    """Run one command; returns the exit code."""
    from evaltools.signals import heed_interrupts, ignore_interrupts

    try:
        heed_interrupts()
        from evaltools.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("evaltools: interrupted before anything was done", file=sys.stderr)
        return 130
    finally:
        ignore_interrupts()  # Python still removes the temporary folders
        gc.freeze()  # and would look for garbage, which takes a tenth of a short run's time


if __name__ == "__main__":
    sys.exit(main())
