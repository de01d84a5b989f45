"""What a journal says of a run beside its records: what ran, and how its pass went."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from evaltools.engine.quiet_latency import QuietTimes
from evaltools.engine.run_folder import Fact
from evaltools.result.device import DeviceRun
from evaltools.result.execution import ExecutionUsed
from evaltools.result.facts import Environment, Load
from evaltools.result.result import Row
from evaltools.runtime.session import Crashes

Kind = TypeVar("Kind")


class PassFacts(Struct, frozen=True):
    """How a pass went, and what was measured after it.

    ``is_over`` is false until everything of the run was measured; ``interrupted``: Ctrl-C ended it. ``execution`` says
    how this part of the run was carried out, ``elapsed_s`` is its time, ``environment`` is where it ran.
    ``most_workers`` is over all parts. ``quiet`` has the latencies of the quiet phase, None if there was none: with one
    worker the pass itself is quiet. ``crashes`` and ``peak_memory_kb`` are by configuration; the latter is the largest
    resident memory of one of its processes, in units of 1024 bytes. ``not_clean`` says by configuration what else makes
    figures no clean pass. ``not_traced`` says why the trace could not be written, None if it was or none was wanted.
    ``load`` is what else the machine did while the latencies were measured, None where nobody looked.
    ``unsound`` counts the examples in which the reference's outputs are NaN, infinite or nearly so. ``warnings`` are
    those of runtimes, and about files that changed meanwhile. ``device_run`` is about devices that programs ran on.
    """

    is_over: bool = False
    interrupted: bool = False
    execution: ExecutionUsed = field(default_factory=ExecutionUsed)
    most_workers: int = 0
    elapsed_s: float = 0.0
    environment: Environment | None = None
    quiet: QuietTimes | None = None
    crashes: dict[str, Crashes] = field(default_factory=dict)
    not_clean: dict[str, str] = field(default_factory=dict)
    unsound: int = 0
    not_traced: str | None = None
    peak_memory_kb: dict[str, int] = field(default_factory=dict)
    load: Load | None = None
    warnings: list[str] = field(default_factory=list)
    device_run: DeviceRun | None = None

    def at(self, suffix: str) -> PassFacts:
        """The same with a suffix behind the names of configurations."""
        names = ("crashes", "not_clean", "peak_memory_kb")
        renamed: dict[str, Any] = {name: _renamed(getattr(self, name), suffix) for name in names}
        quiet = self.quiet
        if quiet is not None:
            renamed["quiet"] = QuietTimes(quiet.examples, _renamed(quiet.taken, suffix), quiet.interrupted)
        return PassFacts(**{name: getattr(self, name) for name in self.__struct_fields__} | renamed)


def _renamed(by_name: Mapping[str, Kind], suffix: str) -> dict[str, Kind]:
    return {name + suffix: each for name, each in by_name.items()}


CONFIGURATIONS: Final = Fact[list[Row]]("configurations", list[Row])
"""Those of the run, with what they ran on."""
PASS: Final = Fact[PassFacts]("pass", PassFacts)
