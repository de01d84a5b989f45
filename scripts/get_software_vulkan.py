"""Unpack a software Vulkan driver into a folder of the tree: ``evaltools doctor --install=software-gpu --folder=...``.

``python scripts/get_software_vulkan.py [FOLDER] [lavapipe|swiftshader]``, then ``. FOLDER/env.sh``

Exit codes: 0 done, 2 wrong arguments, 3 a package cannot be had.
"""

from __future__ import annotations

import sys

from evaltools.cli.main import main

DEFAULT_FOLDER = ".vulkan"

if __name__ == "__main__":
    folder, *drivers = sys.argv[1:] or [DEFAULT_FOLDER]
    further = [f"--driver={driver}" for driver in drivers]
    sys.exit(main(["doctor", "--install=software-gpu", f"--folder={folder}", *further]))
