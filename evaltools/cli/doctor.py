"""``evaltools doctor``: what can be measured on this machine, proven by running a small model."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict

from evaltools.cli.shared.streams import complain, say_wrapped
from evaltools.exit_codes import NOT_MEASURED, NOT_WRITTEN, OK
from evaltools.parameter import Parameter
from evaltools.report.files.output_file import require_writable, write_file
from evaltools.request.flags import GivenFlags, parse_flags

if TYPE_CHECKING:
    from evaltools.inspection.machine_check import Finding

DESCRIPTION: Final = (
    "Which runtimes, delegates and tools are usable here. Each runtime and delegate runs a small model in a process of "
    "its own, and its numbers are compared with plain kernels. What is missing is named with the next step."
)
PARAMETERS: Final = (
    Parameter("output_file_path", "JSON file for what was found.", role="output_file", about="result", short="output"),
)
_SOFTWARE_GPU: Final = "software-gpu"
_NPU: Final = "npu-qualcomm"
INSTALL: Final = (
    Parameter(
        "install",
        f"Nothing is checked; {_SOFTWARE_GPU}: unpack a Vulkan driver that needs no GPU, from Debian's packages, as "
        f"any user. Where Vulkan has no driver here, evaltools takes it by itself. {_NPU}: the command that installs "
        "Qualcomm's emulator of NPUs.",
        choices=("", _SOFTWARE_GPU, _NPU),
    ),
    Parameter(
        "folder",
        "Where it is unpacked; else evaltools/software-gpu in the user's cache.",
        role="output_folder",
        only_with=(f"install={_SOFTWARE_GPU}",),
    ),
)
_EXIT_CODES: Final = """\
exit codes:
  0    a runtime works; with --install: it is there
  2    a flag is wrong, or --folder cannot be made a folder
  3    no runtime works; with --install: a package cannot be had here
  5    a file, or stdout, could not be written"""
_TITLES: Final = {
    "runtime": "runtimes",
    "delegate": "delegates",
    "extension": "from other packages",
    "tool": "tools",
    "package": "optional packages",
}
_MARKS: Final = {"works": "yes", "missing": "no", "elsewhere": "-"}


def run(arguments: list[str]) -> int:
    """Print each finding as soon as it is known, or install something.

    Exit code 3: no runtime works, or what was to be installed cannot be had.
    """
    given = parse_flags("doctor", DESCRIPTION, _EXIT_CODES, {"flags": PARAMETERS, "install": INSTALL}, arguments)
    if given.text("install") == _SOFTWARE_GPU:
        return _install(given)
    if given.text("install") == _NPU:
        return _say_how_to_install_npu()
    output = given.path("output_file_path")
    if output is not None:
        require_writable(output, "--output_file_path")
    from evaltools.inspection.machine_check import environment, findings

    is_written = say_wrapped(environment())
    found: list[Finding] = []
    for finding in findings():
        if not found or found[-1].kind != finding.kind:
            is_written = say_wrapped(f"\n{_TITLES[finding.kind]}") and is_written
        is_written = say_wrapped("\n".join(_lines(finding, found))) and is_written
        found.append(finding)
    if output is not None:
        write_file(output, json.dumps([asdict(finding) for finding in found], indent=2).encode() + b"\n")
    if not any(finding.state == "works" for finding in found if finding.kind == "runtime"):
        complain("evaltools: no runtime works here, so nothing can be measured; pip install ai-edge-litert")
        return NOT_MEASURED
    return OK if is_written else NOT_WRITTEN


def _install(given: GivenFlags) -> int:
    from evaltools.inspection.software_gpu import install
    from evaltools.runtime.compiled.gpu import default_folder

    by_itself = default_folder(os.environ)
    folder = (given.path("folder") or by_itself).absolute()
    environment = f". {shlex.quote(str(install(folder)))}"
    lines = [f"lavapipe is in {folder}"]
    if folder == by_itself.absolute():
        lines.append("evaltools takes it by itself where Vulkan has no driver here, and calls its device software")
        lines.append(f"for other programs, and beside other drivers: {environment}")
        lines.append("next: evaltools doctor")
    else:
        lines.append(f"before evaltools: {environment}")
    return OK if say_wrapped("\n".join(lines)) else NOT_WRITTEN


def _say_how_to_install_npu() -> int:
    python = ".".join(map(str, sys.version_info[:2]))
    machine = f"{sys.platform} on {platform.machine()} with Python {python}"
    if not (sys.platform == "linux" and platform.machine() == "x86_64" and (3, 11) <= sys.version_info[:2] <= (3, 13)):
        complain(f"evaltools: the extra {_NPU} needs x86-64 Linux and Python 3.11 to 3.13; this is {machine}")
        return NOT_MEASURED
    return OK if say_wrapped(f"pip install 'evaltools[{_NPU}]'") else NOT_WRITTEN


def _lines(finding: Finding, earlier: Sequence[Finding]) -> list[str]:
    """The lines about delegates.

    Neighbours that say the same about this machine say it once, and the same advice is printed once for all delegates
    that need it.
    """
    lines = [f"  {_MARKS[finding.state]:<3}  {finding.name:<31} {finding.proof}".rstrip()]
    is_repeated = bool(earlier) and earlier[-1].here == finding.here
    if finding.here and not is_repeated:
        lines.append(f"         here: {finding.here}")
    if finding.state == "missing" and finding.next_step:
        alike = next((entry.name for entry in earlier if entry.next_step == finding.next_step), None)
        lines.append(f"         {finding.next_step if alike is None else f'for the same reason as {alike}'}")
    return lines
