"""Results that were edited by hand, or by nobody's friend: shown and judged, or refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltools import exit_codes
from evaltools.datasets import sample
from evaltools.errors import DataError
from evaltools.result_file import result_in
from tests.command import evaltools_here
from tests.hostile.edited_results import documents, edited
from tests.hostile.examples import PARTS, numbers_of
from tests.hostile.watched import Watch
from tests.results import assert_contradicts_itself

LIMITS = ("--allow_any_load", "--limit=latency_ratio <= 100 at 97 %", "--limit=delegated_share >= 1 %")


@pytest.mark.parametrize("part", PARTS)
def test_a_result_with_one_field_edited_ends_as_documented(part: int, tmp_path: Path) -> None:
    path, page = tmp_path / "result.json", tmp_path / "page.md"
    ends: dict[int, int] = {}
    watch = Watch()
    for seed in numbers_of(part):
        what, content = edited(seed)
        path.write_bytes(content)
        with watch.case(what):
            shown = evaltools_here("report", str(path), f"--output={page}")
            judged = evaltools_here("gate", str(path), *LIMITS)
        for done in (shown, judged):
            ends[done.code] = ends.get(done.code, 0) + 1
            assert done.code != exit_codes.FAULT, (what, done.err)
            assert "Traceback" not in done.err, (what, done.err)
        assert shown.code in (exit_codes.OK, exit_codes.USAGE), (what, shown.err)
    assert min(ends[exit_codes.OK], ends[exit_codes.USAGE]) > watch.cases // 4, "of both there are many"
    watch.require_little_memory()


def test_a_result_of_too_many_configurations_is_refused() -> None:
    document = json.loads(json.dumps(documents()["imagenet"]))
    document["rows"] *= 2_000
    with pytest.raises(DataError, match="configurations; results of at most 2000 are read"):
        result_in(json.dumps(document).encode(), Path("r.json"))


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("rows", 1, "name"), "reference", "'reference' is the name of 2 rows"),
        (("rows", 1, "verdicts", 0, "against"), "nobody", "judged against 'nobody'"),
        (("rows", 1, "figures", "examples", "value"), 0, "of no examples"),
        (("rows", 1, "figures", "failed_examples", "value"), -1, "failed_examples is -1"),
        (("rows", 1, "figures", "top1", "value"), 1000.0, "top1 is 1000.0, and a share is 0 to 1"),
        (("rows", 1, "figures", "latency_ratio"), {"value": 0.0}, "latency_ratio is 0.0"),
        (("rows", 1, "figures", "latency_ratio", "interval", "low"), -0.5, "latency_ratio is never below 0"),
        (("rows", 1, "figures", "latency_ms", "value"), 0.001, "latency_ms is 0.001, of times from"),
        (("models",), [], "it is of no model"),
    ],
)
def test_a_result_that_contradicts_itself_is_refused(place: tuple[str | int, ...], value: object, said: str) -> None:
    assert_contradicts_itself(json.dumps(documents()["imagenet"]).encode(), {place: value}, said)


def test_a_benchmark_with_a_row_of_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.json"
    words = ("--kernels=default", "--num_runs=1", "--min_secs=0", "--warmup_min_secs=0", f"--output={path}")
    assert evaltools_here("benchmark", str(sample.model_file("float32")), *words).code == exit_codes.OK
    document = json.loads(path.read_text())
    document["rows"][0]["model"] = 7
    path.write_text(json.dumps(document))
    shown = evaltools_here("report", str(path), f"--output={tmp_path / 'page.md'}")
    assert shown.code == exit_codes.USAGE
    assert "its figures contradict each other ('test' is of model 7, and there are 1)" in shown.err
