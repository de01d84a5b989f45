"""What a device says of itself, and the programs by which it says so."""

from __future__ import annotations

import shlex

from msgspec import Struct


class Facts(Struct, frozen=True):
    """What a device says of itself.

    Attributes:
        model: e.g. of a telephone
        sdk: Android's API level
        soc: the processor's model
        abi: the processor's instruction set, as Android calls it
        temperature: of the battery, tenths of a degree Celsius
        thermal_status: Android's, 0 (none) to 6 (shutdown)
    """

    model: str = "Real daemon"
    sdk: int = 34
    soc: str = "EV100"
    abi: str = "x86_64"
    temperature: int = 287
    thermal_status: int = 0

    @property
    def properties(self) -> dict[str, str]:
        """Names and values of ``getprop``."""
        return {
            "ro.product.cpu.abi": self.abi,
            "ro.product.model": self.model,
            "ro.build.version.sdk": str(self.sdk),
            "ro.soc.model": self.soc,
        }


def getprop(facts: Facts) -> str:
    """A program that answers like Android's of that name."""
    cases = [f"  {name}) echo {shlex.quote(value)} ;;" for name, value in facts.properties.items()]
    lines = [f"  echo {shlex.quote(f'[{name}]: [{value}]')}" for name, value in facts.properties.items()]
    return "\n".join(
        ["#!/bin/sh", "if [ $# = 0 ]; then", *lines, "  exit", "fi", 'case "$1" in', *cases, "  *) echo ;;", "esac", ""]
    )


def dumpsys(facts: Facts) -> str:
    """A program that answers like Android's of that name, for two services."""
    celsius = facts.temperature / 10
    return f"""#!/bin/sh
case "$1" in
battery) cat <<'END'
Current Battery Service state:
  AC powered: false
  USB powered: true
  status: 2
  health: 2
  present: true
  level: 93
  scale: 100
  voltage: 4341
  temperature: {facts.temperature}
  technology: Li-ion
END
;;
thermalservice) cat <<'END'
IsStatusOverride: false
Thermal Status: {facts.thermal_status}
Cached temperatures:
HAL Ready: true
HAL connection:
\tThermalHAL 2.0 connected: yes
Current temperatures from HAL:
\tTemperature{{mValue={celsius}, mType=2, mName=battery, mStatus={facts.thermal_status}}}
Current cooling devices from HAL:
END
;;
*) echo "Can't find service: $1" >&2 ;;
esac
"""
