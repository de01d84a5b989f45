"""Describes the machine and the software."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from functools import cache
from pathlib import Path
from typing import Final

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
        evaltools=importlib.metadata.version("evaltools"),
        python=platform.python_version(),
        platform=platform.platform(),
        machine=platform.machine(),
        processor=_processor(),
        cpu_count=os.cpu_count() or 1,
        packages=dict(_versions()),
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
def _versions() -> tuple[tuple[str, str], ...]:
    versions = []
    for package in _PACKAGES:
        try:
            versions.append((package, importlib.metadata.version(package)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return tuple(versions)


@cache
def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Hardware")):
                return line.partition(":")[2].strip()
    except OSError:
        return platform.processor()
    return platform.processor()
