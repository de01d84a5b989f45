"""What bounds a pass: which work takes most of its time, and which flags would make it faster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

from evaltools.result.execution import ExecutionUsed

Kind = Literal["input", "inference", "metrics", "journal"]
_INPUT_STAGES: Final = ("read", "decode", "resize", "prepare")


class Help(Struct, frozen=True):
    """A flag that makes a run at most ``at_most`` times as fast, where every core helps fully."""

    flag: str
    value: int
    at_most: float

    @property
    def typed(self) -> str:
        """The flag as it is typed.

        >>> Help("workers", 4, 4.0).typed
        '--workers=4'
        """
        return f"--{self.flag}={self.value}"


class Bottleneck(Struct, frozen=True):
    """What bounds a pass, and the evidence.

    ``bound`` is the kind of work that takes most of the time, ``share`` its part of all work, 0..1; ``stage`` is the
    largest step of it: of the input read, decode, resize or prepare, of inference copy, run or read back; else the kind
    itself. ``shares`` are those of every stage, with inference as one.

    ``configuration`` is the one with most of the inference, and ``configuration_share`` its part of that; null where
    the result does not say. ``unused_cores`` of the ``cores`` were left over by workers and their threads; whether
    others used them is not known here. ``helps`` are flags that would use them; none where no such flag would help.
    """

    bound: Kind
    share: float
    stage: str
    shares: dict[str, float]
    configuration: str | None
    configuration_share: float | None
    cores: int
    unused_cores: int
    helps: tuple[Help, ...]


def most_threads(asked: Iterable[int], cores: int) -> int:
    """The most threads that a configuration has; -1 lets the runtime take all cores.

    >>> most_threads([1, 2], cores=8), most_threads([1, -1], cores=8), most_threads([], cores=8)
    (2, 8, 1)
    """
    return max([1, *(cores if threads < 0 else threads for threads in asked)])


def bottleneck(execution: ExecutionUsed, cores: int, threads: int) -> Bottleneck | None:
    """What bounded a pass on so many cores, whose configurations had up to so many ``threads``.

    None where no work was measured, as in a result that was merged of shards.

    >>> seconds = {"decode": 3.0, "inference": 1.0}
    >>> found = bottleneck(ExecutionUsed(1, 9, None, {}, seconds, "input"), cores=4, threads=1)
    >>> found.bound, found.share, found.stage
    ('input', 0.75, 'decode')
    >>> found.helps
    (Help(flag='workers', value=4, at_most=4.0),)
    """
    seconds = execution.stage_seconds
    total = sum(seconds.values())
    if execution.bound is None or total <= 0:
        return None
    shares = {stage: spent / total for stage, spent in seconds.items()}
    kinds = _INPUT_STAGES if execution.bound == "input" else (execution.bound,)
    spent = {name: each.copy + each.run + each.read_back for name, each in execution.inference_seconds.items()}
    slowest = max(spent, key=lambda name: spent[name], default=None)
    unused = max(0, cores - execution.workers * threads)
    return Bottleneck(
        bound=execution.bound,
        share=sum(shares.get(stage, 0.0) for stage in kinds),
        stage=_stage(execution, execution.bound),
        shares=dict(sorted(shares.items(), key=lambda entry: -entry[1])),
        configuration=slowest,
        configuration_share=spent[slowest] / sum(spent.values()) if slowest and spent[slowest] else None,
        cores=cores,
        unused_cores=unused,
        helps=_helps(execution, execution.bound, cores, threads),
    )


def _stage(execution: ExecutionUsed, bound: Kind) -> str:
    if bound == "input":
        return max(_INPUT_STAGES, key=lambda stage: execution.stage_seconds.get(stage, 0.0))
    every = execution.inference_seconds.values()
    parts = {
        "run": sum(each.run for each in every),
        "copy": sum(each.copy for each in every),
        "read back": sum(each.read_back for each in every),
    }
    return max(parts, key=lambda part: parts[part]) if bound == "inference" and any(parts.values()) else bound


def _helps(execution: ExecutionUsed, bound: Kind, cores: int, threads: int) -> tuple[Help, ...]:
    """Inputs and inference have processes of their own by worker; metrics and the journal are only this process's.

    More workers than examples have nothing to do, and runs that depend on those before them must have one.
    """
    workers = execution.workers
    if bound not in ("input", "inference") or not workers:
        return ()
    found = []
    more_workers = 1 if execution.one_worker else min(cores // threads, execution.examples_run)
    if more_workers > workers:
        found.append(Help("workers", more_workers, more_workers / workers))
    more_threads = cores // workers
    if bound == "inference" and more_threads > threads:
        found.append(Help("num_threads", more_threads, more_threads / threads))
    return tuple(found)
