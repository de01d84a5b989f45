"""The speed beside the fastest configuration on the CPU."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evaltools.metrics.latency import summarise_latency
from evaltools.report.screen.first import first_screen
from evaltools.report.words.next_steps import after_evaluation
from evaltools.result.facts import DelegateUsed
from evaltools.result.places import fastest_on_cpu, with_cpu_ratios
from evaltools.result.result import Result, Row
from tests.report.tables.cases import judged
from tests.results import configuration, result, row_with


def timed(name: str, us: float, *delegates: str, role: str = "test") -> Row:
    made = configuration(name, "reference") if role == "reference" else judged(name, "equivalent", "top1")
    used = [DelegateUsed(delegate, True, {}, 5, 1) for delegate in delegates]
    return row_with(made, latency=summarise_latency([us] * 3), delegates=used)


REFERENCE = timed("reference", 4000, role="reference")
XNNPACK = timed("xnnpack", 1000, "XNNPACK")
GPU = timed("gpu", 2000, "GPU")


def test_what_is_faster_than_plain_kernels_may_be_slower_than_what_apps_use() -> None:
    made = beside_cpu(result(REFERENCE, XNNPACK, GPU))
    ratios = {row.name: row.value("latency_cpu_ratio") for row in made.rows}
    assert ratios == {"reference": 4.0, "xnnpack": None, "gpu": 2.0}
    beside = {note.of: note.text for note in first_screen({"m": made}).notes if "the fastest on the CPU" in note.text}
    assert {name: text.rpartition("; ")[2] for name, text in beside.items()} == {
        "gpu": "about 0.5x as fast as xnnpack, the fastest on the CPU"
    }


def beside_cpu(made: Result) -> Result:
    return replace(made, rows=with_cpu_ratios(made.rows, {}))


def test_times_on_the_same_examples_go_before_medians() -> None:
    rows = with_cpu_ratios([REFERENCE, XNNPACK, GPU], {("xnnpack", "gpu"): 1.5})
    assert rows[-1].value("latency_cpu_ratio") == 1.5


@pytest.mark.parametrize(
    "changes", [{"fallback": "no GPU"}, {"status": "not measured"}, {"place": "R58"}, {"latency": None}]
)
def test_what_did_not_run_there_as_asked_is_not_the_fastest(changes: dict[str, object]) -> None:
    broken = row_with(XNNPACK, **changes)
    found = fastest_on_cpu([REFERENCE, broken, GPU], "")
    assert found is not None
    assert found.name == "reference"


def test_beside_plain_kernels_alone_what_apps_use_is_suggested() -> None:
    alone, beside = (beside_cpu(result(*found)) for found in ((REFERENCE, GPU), (REFERENCE, XNNPACK, GPU)))
    assert any("xnnpack: use_xnnpack=true" in step.command for step in after_evaluation(alone, alone.rows[-1]))
    assert not any("xnnpack: " in step.line for step in after_evaluation(beside, beside.rows[-1]))
