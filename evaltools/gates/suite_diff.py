"""Compares the result of a suite with that of an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from evaltools.gates.baseline import Baseline, BaselineConfiguration
from evaltools.gates.baseline_diff import compare_with_baseline
from evaltools.gates.baseline_limits import latency_since
from evaltools.gates.suite_result import ChangeKind, SuiteChange, SuiteChanges, SuiteEntry, SuiteResult, SuiteRow
from evaltools.stats.interval import Interval
from evaltools.stats.latency import LatencyRatio
from evaltools.task_kind import kind_of

NOT_MEASURED: Final = "not measured"
MEASURED: Final = "measured"
_RANKS: Final = {
    "better": 0, "equivalent": 0, MEASURED: 0, "fp16": 1, "bf16": 1, "int8": 1,
    "not judged": 2, "not decided": 2, "worse": 3, "diverged": 3, NOT_MEASURED: 4,
}  # fmt: skip
"""The higher the worse; a change within a rank is neither better nor worse."""
Key = tuple[str, str, str]


class _Known(Struct, frozen=True):
    """A row with its entry; ``row`` None: the entry has no result."""

    entry: SuiteEntry
    row: SuiteRow | None

    @property
    def found(self) -> str:
        if self.row is None or self.row.status == "not measured" or self.row.fallback:
            return NOT_MEASURED
        return self.row.verdict or MEASURED

    @property
    def reason(self) -> str:
        if self.row is None:
            return self.entry.reason
        return self.row.fallback or self.row.reason or ""


def compare_suites(
    before: SuiteResult, now: SuiteResult, file: str, margin: float = 0.005, slower: float = 1.1
) -> SuiteChanges:
    """What changed from ``before``, which is called ``file``, to ``now``.

    ``margin`` is the change of accuracy, 0..1, that counts as none; a configuration is slower where it takes more than
    ``slower`` times as long with all of the 95 % interval.
    """
    old, new = _rows(before, now), _rows(now, before)
    both = [key for key in new if key in old]
    ratios = {key: ratio for key in both if (ratio := _ratio(old[key], new[key])) is not None}
    changes = [change for key in both for change in _verdict_change(key, old[key], new[key])]
    changes += _accuracy_changes(before, now, margin)
    changes += [change for key, ratio in ratios.items() for change in _speed_change(key, ratio, slower)]
    changes += [SuiteChange("lost", *key, before=known.found) for key, known in old.items() if key not in new]
    changes += [SuiteChange("new", *key, now=known.found) for key, known in new.items() if key not in old]
    started_at = before.environment.started_at
    return SuiteChanges(file, started_at, _setup(old, new, both), len(both), len(ratios), slower, changes)


def _rows(suite: SuiteResult, other: SuiteResult) -> dict[Key, _Known]:
    """Every configuration of every entry; of an entry without a result, those that the other suite has of it."""
    of_other = {(entry.model, entry.job): [row.configuration for row in entry.rows] for entry in other.entries}
    found: dict[Key, _Known] = {}
    for entry in suite.entries:
        key = (entry.model, entry.job)
        found |= {(*key, row.configuration): _Known(entry, row) for row in entry.rows}
        if not entry.rows and entry.state != "skipped":
            found |= {(*key, name): _Known(entry, None) for name in of_other.get(key, ())}
    return found


def _verdict_change(key: Key, old: _Known, new: _Known) -> Iterator[SuiteChange]:
    if old.found == new.found:
        return
    difference = _RANKS[new.found] - _RANKS[old.found]
    kind: ChangeKind = "worse" if difference > 0 else "better" if difference < 0 else "changed"
    yield SuiteChange(kind, *key, before=old.found, now=new.found, reason=new.reason or old.reason)


def _accuracy_changes(before: SuiteResult, now: SuiteResult, margin: float) -> Iterator[SuiteChange]:
    """Configurations whose accuracy became worse, with the statistics of baselines."""
    earlier = {(entry.model, entry.job): entry.baseline for entry in before.entries}
    for entry in now.entries:
        old = earlier.get((entry.model, entry.job))
        accuracy = None if entry.baseline is None else kind_of(entry.baseline.task).accuracy
        if old is None or entry.baseline is None or accuracy is None or old.task != entry.baseline.task:
            continue
        for change in compare_with_baseline(old, entry.baseline, margin).regressions:
            if change.figure == accuracy.figure:
                key = (entry.model, entry.job, change.configuration)
                then, later = (_number(value) for value in (change.before, change.now))
                yield SuiteChange("worse", *key, before=then, now=later, figure=change.figure)


def _number(value: float | None) -> str:
    return "no number" if value is None else f"{value:.4g}"


def _speed_change(key: Key, ratio: LatencyRatio, slower: float) -> Iterator[SuiteChange]:
    assert ratio.interval is not None
    low, high = ratio.interval.low, ratio.interval.high
    if low > slower:
        yield SuiteChange("slower", *key, ratio=ratio.ratio, low=low, high=high)
    if high < 1 / slower:
        yield SuiteChange("faster", *key, ratio=ratio.ratio, low=low, high=high)


def _ratio(old: _Known, new: _Known) -> LatencyRatio | None:
    """How many times as long it takes now; None where nothing was timed, or nothing says how sure that is."""
    rows = old.row, new.row
    if rows[0] is None or rows[1] is None or not rows[0].p50_us or not rows[1].p50_us:
        return None
    baselines = old.entry.baseline, new.entry.baseline
    if baselines[0] is None or baselines[1] is None:
        return _of_medians(rows[0], rows[1])
    sides = [_configuration(baseline, rows[0].configuration) for baseline in baselines if baseline is not None]
    if sides[0] is None or sides[1] is None:
        return None
    is_paired = baselines[0].examples_sha256 == baselines[1].examples_sha256
    ratio = latency_since(sides[0], sides[1], is_paired)
    return ratio if ratio is not None and ratio.interval is not None else None


def _of_medians(old: SuiteRow, new: SuiteRow) -> LatencyRatio | None:
    """That of two medians with intervals of their own: from the ends that are nearest to those that are farthest."""
    before, now = old.p50_interval, new.p50_interval
    if before is None or now is None or before.low <= 0 or not old.p50_us or not new.p50_us:
        return None
    return LatencyRatio(0, new.p50_us / old.p50_us, Interval(now.low / before.high, now.high / before.low))


def _configuration(baseline: Baseline, name: str) -> BaselineConfiguration | None:
    return next((entry for entry in baseline.configurations if entry.name == name), None)


def _setup(old: dict[Key, _Known], new: dict[Key, _Known], both: list[Key]) -> list[str]:
    """What was set up in another way, in words."""
    found = []
    for key in both:
        if old[key].entry.model_sha256 != new[key].entry.model_sha256:
            found.append(f"{key[0]}: another model file, with other content")
        rows = old[key].row, new[key].row
        if rows[0] is None or rows[1] is None:
            continue
        if rows[0].flags != rows[1].flags:
            flags = [" ".join(row.flags) or "no flags" for row in rows if row is not None]
            found.append(f"{key[2]}: {flags[0]} then, {flags[1]} now")
        if rows[0].runtime != rows[1].runtime and rows[0].runtime and rows[1].runtime:
            found.append(f"{key[2]}: {rows[0].runtime} then, {rows[1].runtime} now")
    return list(dict.fromkeys(found))
