"""The questions that one shell command asks a device, each answer under a heading."""

from __future__ import annotations

from typing import Final

PROPERTIES: Final = (
    "ro.product.model",
    "ro.product.manufacturer",
    "ro.soc.manufacturer",
    "ro.soc.model",
    "ro.board.platform",
    "ro.build.version.sdk",
    "ro.build.version.release",
    "ro.product.cpu.abi",
)
_CPUFREQ: Final = (
    'for d in /sys/devices/system/cpu/cpu[0-9]*/cpufreq; do [ -d $d ] || continue; l=${d%/cpufreq}; l="${l##*/cpu}"; '
    "for f in scaling_governor scaling_cur_freq cpuinfo_min_freq cpuinfo_max_freq; do "
    'v=; { read v < $d/$f; }; l="$l,$v"; done; echo "$l"; done'
)
_ZONES: Final = (
    "command -v dumpsys > /dev/null || for z in /sys/class/thermal/thermal_zone*; do "
    't=; v=; { read t < $z/type; read v < $z/temp; } && echo "$v $t"; done'
)
_COMMANDS: Final = {
    "properties": (
        f'command -v getprop > /dev/null && for p in {" ".join(PROPERTIES)}; do echo "$p=$(getprop $p)"; done'
    ),
    "model": "tr '\\000' '\\n' < /proc/device-tree/model",
    "compatible": "tr '\\000' '\\n' < /proc/device-tree/compatible",
    "identity": "cat /proc/sys/kernel/random/boot_id && ls -di /data/local/tmp && getprop ro.serialno",
    "machine": "uname -m",
    "cpus": "cat /sys/devices/system/cpu/present",
    "cpufreq": _CPUFREQ,
    "battery": "command -v dumpsys > /dev/null && dumpsys battery",
    "thermal": "command -v dumpsys > /dev/null && dumpsys thermalservice",
    "zones": _ZONES,
    "space": "df -k /data/local/tmp",
    "python": 'p=$(command -v python3) && echo "$p" && "$p" --version',
}


def facts_command(mark: str) -> str:
    """All questions in one command, below the 4096 bytes that adb of before Android 7 takes; ``mark`` is new."""
    asked = "; ".join(f"echo; echo {mark} {name}; {command}" for name, command in _COMMANDS.items())
    return f"exec 2> /dev/null; {asked}; exit 0"


def split_sections(text: str, mark: str) -> dict[str, str]:
    r"""The answers by the names of the questions.

    >>> split_sections("\nm machine\naarch64\n\nm cpus\n", "m")
    {'machine': 'aarch64', 'cpus': ''}
    """
    found = {}
    for section in f"\n{text}".split(f"\n{mark} ")[1:]:
        name, _, answer = section.partition("\n")
        found[name.strip()] = answer.strip()
    return found
