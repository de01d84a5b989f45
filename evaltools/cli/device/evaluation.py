"""``evaltools device run TASK`` with evaltools itself on devices."""

from __future__ import annotations

from evaltools.cli.carry_out import Terminal, carry_out
from evaltools.cli.shared.terminal import make_console
from evaltools.device.evaluation import records_of_devices
from evaltools.device.flags import DeviceFlags
from evaltools.exit_codes import EXAMPLES_FAILED, LIMIT_BROKEN, NOT_MEASURED, OK
from evaltools.request import Request
from evaltools.signals import interrupts_restored


def evaluate_on_devices(request: Request, flags: DeviceFlags) -> int:
    """Run evaltools there, make a result of the records; returns the exit code."""
    console = make_console()
    observer = Terminal(console, request.options)
    with interrupts_restored(), records_of_devices(request, flags, console, observer) as found:
        merge_request, records, are_all = found
        code = carry_out(merge_request, records).exit_code
    return NOT_MEASURED if code in (OK, LIMIT_BROKEN, EXAMPLES_FAILED) and not are_all else code
