"""What else a machine did while latencies were measured."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Load(Struct, frozen=True):
    """The machine beside the run, on average over ``samples`` looks in ``seconds``; null where it does not say.

    ``others_running`` is how many processes of others ran or waited for a core, ``others_cores`` how many cores they
    used. ``steal`` is the share of the time of all cores, 0..1, that a hypervisor gave to others. ``throttled`` counts
    how often a core was slowed down for heat.
    """

    cpu_count: int
    others_running: float | None = None
    others_cores: float | None = None
    steal: float | None = None
    throttled: int | None = None
    seconds: float = 0.0
    samples: int = 0

    @property
    def others(self) -> float | None:
        """How many other processes wanted to run, as far as it is known; None where nothing is."""
        known = (self.others_running, self.others_cores)
        return max((each for each in known if each is not None), default=None)


def load_of_parts(parts: Sequence[Load]) -> Load | None:
    """The load over several stretches of time; None without one that was looked at.

    >>> load_of_parts([Load(2, 1.0, 0.5, samples=1, seconds=1.0), Load(2, 4.0, 2.0, samples=2, seconds=1.0)])
    Load(cpu_count=2, others_running=3.0, others_cores=1.25, steal=None, throttled=None, seconds=2.0, samples=3)
    """
    seen = [part for part in parts if part.samples]
    if not seen:
        return None
    throttled = [part.throttled for part in seen if part.throttled is not None]
    return Load(
        cpu_count=seen[0].cpu_count,
        others_running=_mean([(part.others_running, part.samples) for part in seen]),
        others_cores=_mean([(part.others_cores, part.seconds) for part in seen]),
        steal=_mean([(part.steal, part.seconds) for part in seen]),
        throttled=sum(throttled) if throttled else None,
        seconds=round(sum(part.seconds for part in seen), 3),
        samples=sum(part.samples for part in seen),
    )


def _mean(weighted: Sequence[tuple[float | None, float]]) -> float | None:
    """The mean of the known values by their weights; None where there are none."""
    known = [(value, weight) for value, weight in weighted if value is not None and weight > 0]
    total = sum(weight for _, weight in known)
    return round(sum(value * weight for value, weight in known) / total, 3) if total else None
