"""The result of a suite: every model in every configuration, small enough to be held against a later one."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, field

from evaltools.gates.baseline import Baseline
from evaltools.result.evaluation import Environment
from evaltools.result.json_file import read_json
from evaltools.result.verdict import Verdict, VerdictKind
from evaltools.stats.interval import Interval

SUITE_VERSION: Final = "1"


class SuiteRow(Struct, frozen=True):
    """One configuration of an entry.

    ``reason`` says why it was not measured, or why some of its runs failed, of which there are ``failed_examples``.
    ``verdict`` is that against the reference, null where nothing was judged; it stands whole in ``not_decided`` where
    it is none. ``accuracy`` is the figure of a task with a ground truth, 0..1. ``p50_us`` is the median time with its
    interval where there is one, in microseconds; null where nothing was timed, and where several entries ran at a
    time. ``speed`` is how many times as fast it is as the reference, of a benchmark as the first configuration.
    ``runtime`` is the package and its version. ``not_clean`` says why
    measured figures are no clean pass, as in the result.
    """

    configuration: str
    role: Literal["reference", "test"]
    flags: list[str]
    status: Literal["measured", "not measured"]
    reason: str | None = None
    verdict: VerdictKind | None = None
    not_decided: Verdict | None = None
    accuracy: float | None = None
    p50_us: float | None = None
    p50_interval: Interval | None = None
    speed: float | None = None
    speed_interval: Interval | None = None
    delegates: list[str] = field(default_factory=list)
    delegated_nodes: int | None = None
    total_nodes: int | None = None
    fallback: str | None = None
    failed_examples: int = 0
    runtime: str = ""
    not_clean: str = ""


class SuiteEntry(Struct, frozen=True):
    """One job with one model, which is a run of its own.

    ``state`` is ``done`` where there is a result, which lies at ``result`` in the run folder; ``failed`` where the run
    gave none, with ``reason``; ``skipped`` where it was not run to its end.
    ``command`` does it again. ``baseline`` has the figures of an evaluation, to be held against those of a later suite.
    ``is_timed``: no other run was made beside it, so that its rows have times.
    """

    model: str
    model_file: str
    model_sha256: str
    job: str
    command: list[str]
    state: Literal["done", "failed", "skipped"]
    reason: str = ""
    exit_code: int | None = None
    elapsed_s: float = 0.0
    result: str = ""
    rows: list[SuiteRow] = field(default_factory=list)
    baseline: Baseline | None = None
    is_timed: bool = True


ChangeKind = Literal["worse", "slower", "lost", "changed", "better", "faster", "new"]


class SuiteChange(Struct, frozen=True):
    """One difference from an earlier suite, of one configuration of a model.

    ``before`` and ``now`` are what was found: a verdict, ``measured`` or ``not measured``; or figures, of ``figure``;
    empty where there was nothing. ``ratio`` is how many times as long it takes, from ``low`` to ``high`` with 95 %
    confidence.
    """

    kind: ChangeKind
    model: str
    job: str
    configuration: str
    before: str = ""
    now: str = ""
    reason: str = ""
    figure: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


class SuiteChanges(Struct, frozen=True):
    """What changed since an earlier suite, of which there is the file's name and when it was ``started_at``.

    ``setup`` says in words what was set up in another way. ``compared`` is how many rows both have, ``timed`` how many
    of these have times on both sides that can tell which is slower. ``slower`` is the factor from which on a
    configuration is slower.
    """

    file: str
    started_at: str
    setup: list[str]
    compared: int
    timed: int
    slower: float
    changes: list[SuiteChange]

    @property
    def regressions(self) -> list[SuiteChange]:
        """What became worse or slower, or is not measured any more."""
        return [change for change in self.changes if change.kind in ("worse", "slower", "lost")]


class SuiteResult(Struct, frozen=True):
    """Every entry in order; ``workers`` is how many ran at a time. ``stopped`` says why some were skipped.

    ``changes`` are those since an earlier suite, null where there is none to compare with.
    """

    suite_version: Literal["1"]
    environment: Environment
    workers: int
    stopped: str
    entries: list[SuiteEntry]
    changes: SuiteChanges | None = None


def read_suite(path: Path) -> SuiteResult:
    """Read and check the result of a suite; raises :class:`~evaltools.errors.DataError` for a file that is none."""
    return read_json(path, SuiteResult, "result of evaltools suite", "; --output of evaltools suite makes it")
