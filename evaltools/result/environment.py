"""Describes the machine and the software."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import Final

from evaltools.extensions import package_version
from evaltools.result.facts import Environment, Load

_PACKAGES: Final = ("ai-edge-litert", "tflite-runtime", "numpy", "pillow", "scipy", "pycocotools", "protobuf")


def describe_environment(
    command: list[str],
    started_at: str,
    elapsed_s: float,
    trace: Path | None = None,
    load: Load | None = None,
) -> Environment:
    """Facts about this machine; ``command`` is the command line as typed, ``trace`` a file that was written.

    ``load`` is what else the machine did while latencies were measured, None where nobody looked.
    """
    return Environment(
        evaltools=package_version("evaltools"),
        python=platform.python_version(),
        platform=platform.platform(),
        machine=platform.machine(),
        processor=_processor(),
        cpu_count=os.cpu_count() or 1,
        packages=_versions(),
        started_at=started_at,
        elapsed_s=elapsed_s,
        command=command,
        folder=_folder(),
        trace="" if trace is None else str(trace),
        load=load,
    )


def _folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # the folder was deleted meanwhile
        return ""


@cache
def _versions() -> dict[str, str]:
    return {package: version for package in _PACKAGES if (version := package_version(package))}


@cache
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Hardware")):
                return line.partition(":")[2].strip()
    except OSError:
        return platform.processor()
    return platform.processor()
