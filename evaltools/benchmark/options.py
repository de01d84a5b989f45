"""The options of a benchmark, and a model with a configuration."""

from __future__ import annotations

from msgspec import Struct, field

from evaltools.benchmark.inputs import BenchmarkInputOptions
from evaltools.benchmark.loop import PhaseLimits, RunPace
from evaltools.configuration import Configuration
from evaltools.model import ModelFile


class BenchmarkOptions(Struct, frozen=True):
    """How every model is measured with every configuration.

    ``dry_run`` opens the model and runs nothing. ``affinity`` are the CPUs that the measuring process may use; empty
    means all. ``memory_interval_ms`` None: peak memory is not watched. ``rounds`` is the number of measurements of each
    configuration, each in a fresh process. In a round the configurations take turns, ``delay_s`` before each; with
    ``shuffle`` every round has an order of its own. ``profile_runs`` 0: operators are not profiled. ``timeout_s``
    limits the opening, and each run beyond the time of its phase.
    """

    warm_up: PhaseLimits
    regular: PhaseLimits
    pace: RunPace = field(default_factory=RunPace)
    dry_run: bool = False
    inputs: BenchmarkInputOptions = field(default_factory=BenchmarkInputOptions)
    affinity: tuple[int, ...] = ()
    memory_interval_ms: int | None = None
    rounds: int = 1
    shuffle: bool = False
    delay_s: float = -1.0
    profile_runs: int = 0
    keep_outputs: bool = False
    allow_fallback: bool = False
    require_full_delegation: bool = False
    timeout_s: float = 300.0

    @property
    def phases(self) -> tuple[PhaseLimits, PhaseLimits]:
        """The limits of warm-up and regular runs; both are empty in a dry run."""
        if self.dry_run:
            none = PhaseLimits(0, -1.0, self.regular.max_secs)
            return none, none
        return self.warm_up, self.regular


class Candidate(Struct, frozen=True):
    """A model with a configuration. ``model`` has the shapes that are run; ``model_number`` is its place."""

    model_number: int
    model: ModelFile
    configuration: Configuration
