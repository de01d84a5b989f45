"""A result made by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.gates.evidence import NOTHING_ALLOWED, Allowed, Evidence, RunRows, evidence_of, parts_of
from evaltools.metrics.interval import Interval
from evaltools.metrics.latency import Latency, summarise_latency
from evaltools.report.execution import conditions, pipeline
from evaltools.result.execution import ExecutionUsed
from evaltools.result.facts import DelegateUsed, DelegationProof, Environment, FailedExample, Model, RuntimeUsed
from evaltools.result.figure import Figure
from evaltools.result.metrics import METRICS, figures_of, figures_of_nodes, in_order, latency_figures, of_task
from evaltools.result.result import CHANGED, EXAMPLES, INVOKE, PREPROCESSING, WARNING, Result, Row, warning
from evaltools.result.section import Section, Table
from evaltools.result_file import result_in
from evaltools.tasks.framework.topk import correct
from evaltools.tasks.framework.topk_figures import accuracies
from evaltools.tasks.framework.topk_report import Comparison, sections

Figures = dict[str, Figure]


def classified(*shares: float, count: int = 4, distinct: int = 2) -> Figures:
    """Top-1 and so on of so many examples."""
    found = accuracies([round(share * count) for share in shares or (0.5, 0.75)], count)
    return found | {"distinct_answers": Figure(float(distinct))}


def of_ranks(ranks: Sequence[int | None], most: int, recorded: bool = False) -> Figures:
    """Top-1 to Top-``most`` accuracy of examples with the right label at these places."""
    scores = {
        k: [float(rank is not None and rank < k) for rank in ranks] if recorded else [] for k in range(1, most + 1)
    }
    hits = [round(share * len(ranks)) for share in shares_of(ranks, most)] if ranks else [0] * most
    found = accuracies(hits, len(ranks), scores={k: [*each] for k, each in scores.items()})
    return found | {"distinct_answers": Figure(float(len(set(ranks))))}


def shares_of(ranks: Sequence[int | None], most: int) -> list[float]:
    """The share of examples whose right label is the first, among the first two, and so on."""
    return [sum(rank is not None and rank < k for rank in ranks) / len(ranks) for k in range(1, most + 1)]


def compared(baseline: str, other: str, count: int = 4, same: int = 3, lost: int = 1, gained: int = 0) -> Comparison:
    """Answers of two configurations, of which so many have the same first class."""
    return Comparison(baseline, other, [lost], [gained], count=count, same=same)


def part(made: Result) -> RunRows:
    """What gates are compared with."""
    return parts_of("run", made)["run"]


def evidence(made: Result, name: str, allowed: Allowed = NOTHING_ALLOWED) -> Evidence:
    """The evidence on one configuration."""
    found = part(made)
    return next(evidence_of(found, row, allowed) for row in found.rows if row.name == name)


def configuration(name: str, role: str = "test") -> Row:
    row = Row(
        name,
        role,
        runtime=RuntimeUsed("litert", "ai-edge-litert", "2.3.0", "default"),
        delegates=[DelegateUsed("XNNPACK", False, {"use_xnnpack": False}, 9, 2)],
        delegation=DelegationProof(10, 9, {"SOFTMAX": 1}),
    )
    figures = figures_of_nodes(row.delegates, row.delegation)
    latency = summarise_latency([1000, 3000])
    times = {PREPROCESSING: summarise_latency([]).native}
    row = replace(row, figures=figures, times=times)
    return row_with(row, latency=latency, examples=4, failed_examples=0, nan_outputs=0, crashes=0)


def with_own(row: Row, figures: Figures) -> Row:
    """The row with other figures of its task."""
    shared = {name: figure for name, figure in row.figures.items() if name not in of_task(row)}
    return replace(row, figures=in_order(shared | figures))


def row_with(row: Row, **changes: Any) -> Row:
    """The row with other fields, with figures by their names, with a ``latency`` and a ``first_crash``."""
    figures, times, texts = dict(row.figures), dict(row.times), dict(row.texts)
    if "latency" in changes:
        latency: Latency | None = changes.pop("latency")
        figures = {name: each for name, each in figures.items() if name not in latency_figures(ALL_TIMES)}
        times.pop(INVOKE, None)
        if latency is not None:
            figures |= latency_figures(latency)
            times = {INVOKE: latency.native, **times}
    if "first_crash" in changes:
        texts["first_crash"] = changes.pop("first_crash")
    for name in FIGURES & {*changes}:
        value = changes.pop(name)
        figures.pop(name, None)
        figures |= figures_of({name: value})
    kept: dict[str, Any] = {"figures": in_order(figures), "times": times, "texts": texts}
    return replace(row, **(kept | changes))


FIGURES = {metric.name for metric in METRICS}
ALL_TIMES = summarise_latency([1.0] * 100)


def result(
    *configurations: Row,
    preprocessing: Latency | None = None,
    answered: Mapping[str, Figures] | None = None,
    comparisons: Sequence[Comparison] | None = None,
    folder: str = "d",
) -> Result:
    """Of an ImageNet evaluation; a measured configuration that is not ``answered`` has the accuracies 0.5 and 0.75."""
    baseline, *others = configurations
    found = comparisons if comparisons is not None else [compared(baseline.name, other.name) for other in others]
    correct([each for each in found if not each.corrected])
    of_other = {each.other: each for each in found}
    failed = [FailedExample("bad.jpg", None, "input", "is [no] picture")]
    first = {"first_failed": failed[0].example, "first_failure": failed[0].reason}
    rows = []
    for entry in configurations:
        figures = {**(answered or {}).get(entry.name, classified())} if entry.status == "measured" else {}
        other = of_other.get(entry.name)
        if figures and other is not None:
            figures["agreement"] = Figure(other.same / other.count if other.count else None, is_share=True)
            if comparisons is not None and other.changes and "top1" in figures:
                figures["top1"] = replace(figures["top1"], change=other.changes[0])
        own = entry.figures | figures_of({"model_mb": 1 / 2**20}) | figures
        texts = entry.texts | first | ({"accuracy": "top1"} if "top1" in figures else {})
        times = entry.times | ({} if preprocessing is None else {PREPROCESSING: preprocessing.native})
        rows.append(replace(entry, figures=in_order(own), texts=texts, times=times))
    return Result(
        "imagenet",
        environment=Environment("0", "3", "p", "m", "c", 2, {}, "now", 1.0, []),
        models=[Model("m.tflite", "00", 1, 10, [], [])],
        rows=rows,
        examples_done=4,
        example_count=4,
        failed=failed,
        given={"task": "imagenet", "ground truth": "00", "labels of the model": "00", "normalization": "native"},
        blocks=as_in_a_file([section for section in sections(found, folder) if section.blocks]),
    )


def result_with(made: Result, **changes: Any) -> Result:
    """The result with other fields, with ``warnings``, with the tables ``examples`` and ``changed``."""
    if "warnings" in changes:
        others = [note for note in changes.pop("notes", made.notes) if note.of != WARNING]
        changes["notes"] = [*map(warning, changes.pop("warnings")), *others]
    tables: dict[str, Table] = {name: changes.pop(name) for name in (EXAMPLES, CHANGED) if name in changes}
    if tables:
        changes["tables"] = {name: each for name, each in {**made.tables, **tables}.items() if each}
    return replace(made, **changes)


def assert_contradicts_itself(content: bytes, edits: Mapping[tuple[str | int, ...], Any], said: str) -> None:
    """A result's JSON with other values at some places is refused, and what is said of it has this text."""
    document = json.loads(content)
    for place, value in edits.items():
        parent: Any = document
        for key in place[:-1]:
            parent = parent[key]
        parent[place[-1]] = value
    with pytest.raises(DataError, match="its figures contradict each other") as error:
        result_in(json.dumps(document).encode(), Path("r.json"))
    assert said in str(error.value)


def ratio(value: float, interval: Interval | None = None, pairs: int = 9, withheld: str = "") -> Figure:
    """A time by that of the reference."""
    return Figure(value, "", "lower", interval, withheld, pairs)


def with_ratio(row: Row, found: Figure, processes: int = 1) -> Row:
    """The row with its time by that of the reference."""
    return replace(row, figures=in_order({**row.figures, "latency_ratio": found}), counts={"processes": processes})


def with_ratios(made: Result, found: Mapping[str, Figure], processes: int = 1) -> Result:
    """The result with times by that of the reference, by the names of rows."""
    rows = [with_ratio(row, found[row.name], processes) if row.name in found else row for row in made.rows]
    return replace(made, rows=rows)


def with_execution(made: Result, execution: ExecutionUsed) -> Result:
    """The result with what there is to show of how its pass was carried out."""
    blocks = [each for each in (conditions(made, execution), pipeline(made, execution)) if each is not None]
    return replace(made, blocks=[*made.blocks, *as_in_a_file(blocks)])


def as_in_a_file(blocks: Sequence[Section]) -> list[Section]:
    """Numbers and lists as they are read back."""
    return msgspec.convert(msgspec.to_builtins(blocks), list[Section])


def earlier(made: Result) -> Result:
    """The same figures from an earlier run."""
    return replace(made, environment=replace(made.environment, started_at="2020-01-01T00:00:00+00:00"))
