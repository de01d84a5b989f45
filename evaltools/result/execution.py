"""How a pass was carried out: facts that are shown with a result, and that change times, never figures."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field


class InferenceSeconds(Struct, frozen=True):
    """Where the inference of a configuration went, in seconds over all workers.

    ``run`` is within the runtime's runs, ``read_back`` is reading their outputs, ``copy`` the rest: inputs and outputs
    on their way between processes and into the model, waiting for the other process, and starting it where a worker
    opens its own.
    """

    copy: float
    run: float
    read_back: float


class ProcessMemory(Struct, frozen=True):
    """Resident memory of a process during the pass: ``mb``, in units of 1024 * 1024 bytes, at each of ``seconds``.

    ``configuration`` is the one that it runs; null for the process of the run, which is called ``evaltools``, and for
    those that make inputs. What several processes share is counted in each.
    """

    name: str
    configuration: str | None
    seconds: list[float]
    mb: list[float]


class ExecutionUsed(Struct, frozen=True):
    """How the evaluation was carried out, which changes times, never figures.

    ``examples_run`` were finished by this process, not by an earlier part of the run; they and ``workers`` are 0 where
    shards were merged. ``quiet_latency_examples`` is how many examples the latencies are of, measured apart from the
    pass; None where they are those of the pass, which is quiet with one worker, and busy where several were stopped.

    ``startup_seconds`` is what passed until the first example was finished, by phase. ``stage_seconds`` is the work of
    all workers in read, decode, resize, prepare (the rest of an input's making), inference, metrics and journal;
    ``bound`` says which part of it is the largest. ``worker_seconds`` has the same by worker, without the journal,
    which no worker writes; ``inference_seconds`` says where the inference of each configuration went; ``memory`` is
    that of processes over time. The three are empty where shards were merged. ``one_worker``: the runs depended on
    those before them, so that more workers are refused.
    """

    workers: int = 0
    examples_run: int = 0
    quiet_latency_examples: int | None = None
    startup_seconds: dict[str, float] = field(default_factory=dict)
    stage_seconds: dict[str, float] = field(default_factory=dict)
    bound: Literal["input", "inference", "metrics", "journal"] | None = None
    one_worker: bool = False
    worker_seconds: list[dict[str, float]] = field(default_factory=list)
    inference_seconds: dict[str, InferenceSeconds] = field(default_factory=dict)
    memory: list[ProcessMemory] = field(default_factory=list)
