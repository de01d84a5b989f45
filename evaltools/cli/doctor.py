"""``evaltools doctor``: what can be measured on this machine, proven by running a small model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import asdict

from evaltools.cli.shared.streams import complain, say_wrapped
from evaltools.exit_codes import NOT_MEASURED, NOT_WRITTEN, OK, USAGE, in_words
from evaltools.parameter import Parameter
from evaltools.report.files.output_file import require_writable, write_file
from evaltools.request.flags import parse_flags

if TYPE_CHECKING:
    from evaltools.inspection.machine_check import Finding

DESCRIPTION: Final = (
    "Which runtimes, delegates and tools are usable here. Each runtime and delegate runs a small model in a process of "
    "its own, and its numbers are compared with plain kernels. What is missing is named with the next step."
)
ARM64: Final = "arm64"
PARAMETERS: Final = (
    Parameter("output_file_path", "JSON file for what was found.", role="output_file", about="result", short="output"),
    Parameter(
        "install",
        "arm64: make the ARM64 Python for --at=arm64 in the user's cache; nothing else is installed.",
        choices=("", ARM64),
    ),
    Parameter("remove", "arm64: remove it.", choices=("", ARM64)),
)
_EXIT_CODES: Final = in_words(
    {
        OK: "a runtime works",
        USAGE: "a flag is wrong",
        NOT_MEASURED: "no runtime works, or what was to be installed cannot be had",
        NOT_WRITTEN: "",
    }
)
_TITLES: Final = {
    "runtime": "runtimes",
    "delegate": "delegates",
    "extension": "from other packages",
    "tool": "tools",
    "package": "optional packages",
}
_MARKS: Final = {"works": "yes", "missing": "no", "elsewhere": "-"}


def run(arguments: list[str]) -> int:
    """Print each finding as soon as it is known; exit code 3: no runtime works."""
    given = parse_flags("doctor", DESCRIPTION, _EXIT_CODES, {"flags": PARAMETERS}, arguments)
    output = given.path("output_file_path")
    if output is not None:
        require_writable(output, "--output_file_path")
    if given.text("remove"):
        return _remove()
    if given.text("install"):
        return _install()
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


def _install() -> int:
    """Make the ARM64 Python."""
    from evaltools.arm64.box import users_box
    from evaltools.arm64.install import install

    install(users_box(), say_wrapped)
    is_written = say_wrapped(
        "done; as a phone's CPU: evaltools diff MODEL.tflite --at=arm64:cortex-a76. "
        "evaltools doctor --remove=arm64 removes it"
    )
    return OK if is_written else NOT_WRITTEN


def _remove() -> int:
    from evaltools.arm64.box import users_box

    box = users_box()
    if box.folder.exists():
        shutil.rmtree(box.folder)
        return OK if say_wrapped(f"removed {box.folder}") else NOT_WRITTEN
    return OK if say_wrapped(f"nothing to remove: {box.folder} is not there") else NOT_WRITTEN


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
