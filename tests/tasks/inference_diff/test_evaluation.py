"""An inference diff with sessions that are not there: verdicts, what is counted, what goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.execution import Execution
from evaltools.errors import ConfigurationUnavailable, InferenceError, ModelError
from evaltools.model import ModelFile
from evaltools.result.result import INVOKE_US, Result
from evaltools.result.section import Table, text_of
from evaltools.runs.evaluate import merge
from evaltools.runs.identity import RunAtPlace
from evaltools.runtime import ProcessSession, TensorSpec
from evaltools.tasks.inference_diff.result import DiffComparison, InferenceDiff
from tests.tasks.facts import diff_of, evaluate
from tests.tasks.inference_diff.fakes import SHAPE, Function, Opener, asked, three_times
from tests.tasks.observers import Silent

IDENTICAL = (
    "identical: 3 times: identical in every element of 5 runs; 95 % confident: fewer than 45 % of such inputs differ"
)
"""The bound by hand: 1 - 0.05 ** (1 / 5) = 0.45."""


def details(result: Result) -> InferenceDiff:
    return diff_of(result)


def comparison(result: Result, place: int = 0) -> DiffComparison:
    return details(result).comparisons[place]


def judged(result: Result) -> list[tuple[str, str]]:
    """The tests with their verdicts in words."""
    tests = [entry for entry in result.rows if entry.role == "test"]
    return [(entry.name, entry.verdict.sentence) for entry in tests if entry.verdict is not None]


def in_fp16(values: Any) -> Any:
    return three_times(np.asarray(values, np.float16).astype(np.float32)).astype(np.float16)


def in_bf16(values: Any) -> Any:
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return three_times(((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32))


def with_nan(values: Any) -> Any:
    wrong = three_times(values)
    wrong.flat[3] = np.nan
    return wrong


@pytest.mark.parametrize(
    ("function", "verdict", "reason"),
    [
        (three_times, "identical", "identical in every element"),
        (
            lambda values: three_times(values) * np.float32(1 + 2**-22),
            "equivalent",
            "no more than CPU kernels explain",
        ),
        (in_fp16, "within expected precision of fp16", "no more than rounding to fp16 explains"),
        (in_bf16, "within expected precision of bf16", "no more than rounding to bf16 explains"),
        (lambda values: three_times(values) * 1.1, "diverged", "more than rounding to bf16 explains"),
        (lambda values: np.zeros(SHAPE), "diverged", "the test's output is 0 everywhere, in every run"),
        (with_nan, "diverged", "the test has 5 NaN of 160 values"),
        (lambda values: three_times(values)[..., :1], "diverged", "the shapes of the outputs differ"),
    ],
)
def test_verdicts(tmp_path: Path, function: Function, verdict: str, reason: str) -> None:
    ((name, words),) = judged(evaluate(asked(tmp_path), Silent(), Opener(test=lambda: function)))
    assert name == "test"
    assert words.startswith(f"{verdict}: 3 times: ")
    assert reason in words


def test_warm_up_runs_are_in_no_figure_but_the_first_run(tmp_path: Path) -> None:
    result = evaluate(asked(tmp_path, num_runs=3, warmup_runs=2), Silent(), Opener())
    for entry in result.rows:
        assert entry.series[INVOKE_US] == [3000, 4000, 5000]
        assert entry.latency is not None
        assert entry.latency.sum_us == 12000
    (section,) = (each for each in result.blocks if each.title == "Times with reading")
    (table,) = section.blocks
    assert isinstance(table, Table)
    assert [[text_of(cell) for cell in row[1:]] for row in table.rows] == [["4 ms", "1 ms"]] * 2
    without = evaluate(asked(tmp_path, num_runs=3, warmup_runs=0), Silent(), Opener())
    assert without.rows[1].series[INVOKE_US] == [1000, 2000, 3000]


def counting() -> Function:
    """Adds the number of calls so far, as a model with a state may."""
    calls = 0

    def add_calls(values: Any) -> Any:
        nonlocal calls
        calls += 1
        return three_times(values) + np.float32(calls)

    return add_calls


@pytest.mark.parametrize("warmup_runs", [0, 3])
def test_a_state_is_repeatable_since_the_second_session_is_driven_the_same_way(
    tmp_path: Path, warmup_runs: int
) -> None:
    opener = Opener(reference=counting, test=counting)
    result = evaluate(asked(tmp_path, warmup_runs=warmup_runs), Silent(), opener)
    repeated = comparison(result).repeatability
    assert repeated is not None
    assert (repeated.runs, repeated.identical, repeated.max) == (5, True, 0.0)
    assert judged(result) == [("test", IDENTICAL)]


@pytest.mark.parametrize("name", ["test", "reference"])
def test_what_is_not_repeatable_is_reported(tmp_path: Path, name: str) -> None:
    offsets = iter(np.arange(100, dtype=np.float32) / 4)

    def other_every_time() -> Function:
        offset = next(offsets)
        return lambda values: three_times(values) + offset

    result = evaluate(asked(tmp_path), Silent(), Opener(**{name: other_every_time}))
    repeated = comparison(result).repeatability
    assert repeated is not None
    assert repeated.identical is (name != "test")
    (warning,) = [entry for entry in result.warnings if "not repeatable" in entry]
    assert warning.startswith(f"{name} is not repeatable: ")
    assert (judged(result)[0][1].startswith("diverged: 3 times: not repeatable")) == (name == "test")


def failing_at(*calls: int) -> Callable[[], Function]:
    def make() -> Function:
        done = 0

        def run(values: Any) -> Any:
            nonlocal done
            done += 1
            if not calls or done in calls:
                raise InferenceError("node 7 failed")
            return three_times(values)

        return run

    return make


def test_a_reference_that_fails_everywhere_leaves_nothing_to_compare_with(tmp_path: Path) -> None:
    request = asked(tmp_path, max_avg_error=("9",))
    result = evaluate(request, Silent(), Opener(reference=failing_at()))
    assert [(entry.status, entry.reason) for entry in result.rows] == [
        ("not measured", "not one example succeeded: node 7 failed"),
        ("not measured", "the reference has no outputs to compare with: node 7 failed"),
    ]
    found = comparison(result)
    assert (found.outputs, found.within_limits) == ([], False)
    assert judged(result) == [("test", f"not measured: {result.rows[1].reason}")]


def test_runs_that_fail_are_left_out_and_counted(tmp_path: Path) -> None:
    """The third call is the second run after one warm-up; it fails the second time, too."""
    result = evaluate(asked(tmp_path), Silent(), Opener(test=failing_at(3)))
    assert (result.rows[1].status, result.rows[1].failed_examples) == ("measured", 1)
    assert [(entry.example, entry.configuration, entry.reason) for entry in result.failed] == [
        ("run 1", "test", "node 7 failed")
    ]
    found = comparison(result)
    assert found.outputs[0].difference.runs == 4
    assert found.repeatability is not None
    assert (found.repeatability.runs, found.repeatability.identical) == (1, True)


def test_a_configuration_that_cannot_be_opened_does_not_stop_the_others(tmp_path: Path) -> None:
    opener = Opener()

    def open_some(model: ModelFile, configuration: Configuration) -> ProcessSession:
        if configuration.name in ("gone", "all tensors kept"):
            raise ConfigurationUnavailable("not here")
        return opener(model, configuration)

    request = asked(tmp_path, tests=(Configuration("gone"), Configuration("test")))
    result = evaluate(request, Silent(), open_some)
    assert judged(result) == [
        ("gone", "not measured: not here"),
        ("test", IDENTICAL),
    ]
    assert "noise floor: all tensors kept not measured: not here" in result.warnings


def test_without_a_reference_that_runs_nothing_is_run(tmp_path: Path) -> None:
    opener = Opener()

    def open_some(model: ModelFile, configuration: Configuration) -> ProcessSession:
        if configuration.name == "reference":
            raise ConfigurationUnavailable("not here")
        return opener(model, configuration)

    result = evaluate(asked(tmp_path), Silent(), open_some)
    assert result.examples_done == 0
    reason = "not measured: the reference does not run, so that there is nothing to compare with"
    assert judged(result) == [("test", reason)]


def test_a_place_where_no_test_can_run_is_merged_as_not_measured(tmp_path: Path) -> None:
    """As a phone whose delegate is refused, beside others."""
    opener = Opener()

    def open_some(model: ModelFile, configuration: Configuration) -> ProcessSession:
        if configuration.name == "test":
            raise ConfigurationUnavailable("not here")
        return opener(model, configuration)

    request = asked(tmp_path)
    run_dir = tmp_path / "run"
    evaluate(replace(request, execution=Execution(run_dir=run_dir)), Silent(), open_some)
    result = merge(request, [RunAtPlace((run_dir,), "phone")], Silent(), open_some)
    assert judged(result) == [("test@phone", "not measured: not here")]


def test_a_constant_reference_is_named_also_where_the_first_test_was_not_measured(tmp_path: Path) -> None:
    opener = Opener(
        **dict.fromkeys(("reference", "test"), lambda: lambda _values: np.full(SHAPE, 2)), gone=failing_at()
    )
    result = evaluate(asked(tmp_path, tests=(Configuration("gone"), Configuration("test"))), Silent(), opener)
    warning = "output '3 times' is 2 everywhere in the reference; these inputs show nothing of it"
    assert warning in result.warnings


def test_a_runtime_that_makes_another_input_than_the_file_states_is_refused(tmp_path: Path) -> None:
    opener = Opener()

    def other_input(model: ModelFile, configuration: Configuration) -> ProcessSession:
        session = opener(model, configuration)
        session.inputs = (TensorSpec("input", np.dtype("int8"), SHAPE),)  # type: ignore[misc]
        return session

    with pytest.raises(ModelError, match=r"the file states the input .*, but fake makes it int8\[1, 4, 4, 2\]"):
        evaluate(asked(tmp_path), Silent(), other_input)
    assert all(session.closed for _, session in opener.opened)
