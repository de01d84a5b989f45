"""What a verdict would have noticed, and that nothing is its own yardstick."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks import verdicts
from evaltools.configuration import Configuration
from evaltools.model import ModelFile
from evaltools.report.words.verdicts import reasons_in_words
from evaltools.runtime import open_session
from evaltools.tasks.inference_diff.evaluation import prepare_diff
from evaltools.tasks.inference_diff.judgement import withhold_blind
from evaltools.tasks.inference_diff.like_the_cpu import kernels_of
from evaltools.tasks.inference_diff.result import PlantedFault, Sensitivity
from evaltools.tasks.inference_diff.sensitivity import unlike_runs
from evaltools.tasks.inference_diff.table import sensitivity_in_words
from evaltools.tasks.shared.evaluation import evaluate
from tests.command import evaltools_here
from tests.runtime.fake import FakeSession
from tests.tasks.inference_diff.fakes import SHAPE, Answering, Opener, asked, three_times
from tests.tasks.observers import Silent

SAMPLE = Path(__file__).resolve().parents[3] / "datasets" / "sample" / "models" / "float32.tflite"
SHAKEN = {
    name: lambda: lambda values: three_times(values) * np.float32(0.75)
    for name in ("plain C++ kernels", "builtin kernels, 2 threads")
}


def sensitivity(folder: Path, opener: Opener) -> Sensitivity:
    result = evaluate(prepare_diff, asked(folder), Silent(), opener)
    found: Sensitivity | None = result.part.comparisons[0].sensitivity
    assert found is not None
    return found


def test_exact_kernels_would_notice_every_fault(tmp_path: Path) -> None:
    found = sensitivity(tmp_path, Opener())
    assert [fault.name for fault in found.faults if not fault.noticed] == []
    assert len(found.faults) == 15
    assert found.smallest_noise is not None
    assert found.smallest_noise <= 2**-5


def test_kernels_that_differ_much_notice_less(tmp_path: Path) -> None:
    """CPU variants that differ by a quarter of the output explain small faults, not zeros for ever."""
    exact, rough = sensitivity(tmp_path, Opener()), sensitivity(tmp_path, Opener(**SHAKEN))
    assert rough.smallest_noise is None or rough.smallest_noise > (exact.smallest_noise or 0)
    missed = {fault.name for fault in rough.faults if fault.noticed is False}
    assert "the middle channel x 1.5" in missed
    assert "the middle channel x 1.5" in {fault.name for fault in exact.faults if fault.noticed}
    assert not missed & {"the first output for ever", "the output of the run before", "all zero"}


def test_an_equivalence_is_weak_where_much_noise_would_be_one_too(tmp_path: Path) -> None:
    """The CPU variants differ by 7 %, and four times that is granted."""
    variants = ("plain C++ kernels", "builtin kernels, 2 threads")
    mixing = {name: lambda: lambda values: three_times(0.95 * values + 0.05 * values[..., ::-1]) for name in variants}
    differing = {"test": lambda: lambda values: three_times(values) * np.float32(1.0001)}
    assert "weak: outputs with 12 % of noise would be called so too" in reasons(tmp_path, Opener(**mixing, **differing))
    assert "weak" not in reasons(tmp_path, Opener(**differing))
    assert "weak" not in reasons(tmp_path, Opener(**mixing))


def reasons(folder: Path, opener: Opener) -> str:
    verdict = evaluate(prepare_diff, asked(folder), Silent(), opener).configurations[1].verdicts[0]
    return reasons_in_words(verdict.reasons)


def test_inputs_that_are_all_alike_are_named(tmp_path: Path) -> None:
    class Constant(Opener):
        def __call__(self, model: ModelFile, configuration: Configuration) -> FakeSession:
            return Answering(lambda values: np.arange(values.size, dtype=np.float32).reshape(values.shape))

    found = sensitivity(tmp_path, Constant())
    assert len(found.alike) == 1
    unseen = {fault.name for fault in found.faults if fault.noticed is None}
    assert {"the first output for ever", "the output of the run before"} <= unseen


@pytest.mark.parametrize(("answer", "kind"), [(0.0, "not decided"), (2.0, "equivalent")])
def test_zeros_in_every_output_are_not_decided(tmp_path: Path, answer: float, kind: str) -> None:
    """A model that is never run gives zeros as well, equal in every bit."""
    alike = dict.fromkeys(("reference", "test", *SHAKEN), lambda: lambda _values: np.full(SHAPE, answer))
    verdict = evaluate(prepare_diff, asked(tmp_path), Silent(), Opener(**alike)).configurations[1].verdicts[0]
    assert verdict.kind == kind
    assert ("zeros would pass as well" in reasons_in_words(verdict.reasons)) == (kind == "not decided")


@pytest.mark.parametrize(("gain", "grade"), [(1.0 + 1e-7, "not decided"), (1.0, "equivalent"), (-1.0, "diverged")])
def test_an_output_that_zeros_would_pass_for_is_not_decided(tmp_path: Path, gain: float, grade: str) -> None:
    """It passes only where it is equal in every bit; what has diverged stays so."""
    opener = Opener(test=lambda: lambda values: three_times(values) * np.float32(gain))
    comparison = evaluate(prepare_diff, asked(tmp_path), Silent(), opener).part.comparisons[0]
    blind = replace(comparison.sensitivity, faults=[PlantedFault("all zero", False, ["3 times"])])
    assert withhold_blind(comparison) == comparison
    assert withhold_blind(replace(comparison, sensitivity=blind)).outputs[0].verdict.grade == grade


def test_one_run_has_nothing_to_be_planted_in(tmp_path: Path) -> None:
    result = evaluate(prepare_diff, asked(tmp_path, num_runs=1), Silent(), Opener())
    assert result.part.comparisons[0].sensitivity is None


@pytest.mark.parametrize(
    ("text", "kernels"),
    [("use_xnnpack=true", "default"), ("", "default"), ("use_xnnpack=false", "builtin"), ("use_gpu=true", "")],
)
def test_the_kernels_of_a_configuration(text: str, kernels: str) -> None:
    assert kernels_of(Configuration.from_text("test", text)) == kernels


def test_a_kernel_is_not_its_own_yardstick(tmp_path: Path) -> None:
    """XNNPACK that is wrong, on one thread and on two, is not excused by itself; builtin kernels that are it excuse."""
    wrong = lambda: lambda values: three_times(values) * np.float32(1.05)  # noqa: E731
    tests = (Configuration("test"), Configuration("other", kernels="builtin", num_threads=2))
    makers = {"test": wrong, "other": wrong, "XNNPACK": wrong, "XNNPACK, 2 threads": wrong}
    result = evaluate(prepare_diff, asked(tmp_path, tests=tests), Silent(), Opener(**makers))
    kinds = {entry.name: entry.verdicts[0].kind for entry in result.configurations if entry.role == "test"}
    assert (kinds["test"], kinds["other"]) == ("diverged", "equivalent")


def test_an_output_that_is_another_a_second_time_is_diverged(tmp_path: Path) -> None:
    opened = []

    def other_each_time() -> object:
        opened.append(1)
        factor = np.float32(1 + 0.2 * (len(opened) - 1))
        return lambda values: three_times(values) * factor

    result = evaluate(prepare_diff, asked(tmp_path), Silent(), Opener(test=other_each_time))  # type: ignore[arg-type]
    (verdict,) = result.configurations[-1].verdicts
    assert (verdict.kind, verdict.reasons[0].kind) == ("diverged", "not_repeatable")


@pytest.mark.once
def test_the_sample_says_what_would_have_been_noticed(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    completed = evaltools_here("diff", f"--model_file={SAMPLE}", "--num_runs=8", f"--output_file_path={path}")
    assert "test: would have noticed " in completed.err
    (comparison,) = json.loads(path.read_text())["part"]["comparisons"]
    noticed = {fault["name"]: fault["noticed"] for fault in comparison["sensitivity"]["faults"]}
    assert [noticed[name] for name in ("the first output for ever", "one run zero")] == [True, True]


@pytest.mark.once
def test_real_kernels_leave_broken_variants_out(tmp_path: Path) -> None:
    """A plain C++ kernel that gives zeros is named, and excuses nothing."""

    class Zeroing(Opener):
        def __call__(self, model, configuration):  # type: ignore[no-untyped-def]
            if configuration.name == "plain C++ kernels":
                return super().__call__(model, configuration)
            return open_session(model, configuration)

    zeros = Zeroing(**{"plain C++ kernels": lambda: lambda values: values * np.float32(0)})
    request = replace(asked(tmp_path), tests=(Configuration("test", kernels="builtin", num_threads=2),))
    result = evaluate(prepare_diff, request, Silent(), zeros)
    assert any("plain C++ kernels is no yardstick for output" in warning for warning in result.warnings)
    assert result.configurations[-1].verdicts[0].kind == "equivalent"


@pytest.mark.once
def test_faults_in_saved_outputs_are_seen_by_the_whole_command(tmp_path: Path) -> None:
    """A short form of ``python -m benchmarks verdicts``."""
    faults = (
        verdicts.one_run_zero,
        verdicts.flattest_zero,
        verdicts.one_stale,
        verdicts.best_swapped,
        verdicts.corner_zero,
        verdicts.saturated,
    )
    found = verdicts.verdicts_of(SAMPLE, ["--num_runs=8", "--noise_floor_runs=4"], faults)
    assert found is not None
    assert {name: verdict.kind for name, verdict in found.items()} == {fault.__name__: "diverged" for fault in faults}


def test_runs_with_unlike_outputs_come_first() -> None:
    outputs = {10 + place: (np.array([value]),) for place, value in enumerate((0, 0, 0, 1, 0, 2, 3))}
    first_four = {run: outputs[run] for run in range(10, 14)}
    assert list(unlike_runs(outputs, 3)) == [10, 13, 15]
    assert list(unlike_runs(first_four, 3)) == [10, 11, 13]


def test_an_output_that_is_alike_in_the_first_runs_alone_is_not_called_so(tmp_path: Path) -> None:
    """The first eleven of twenty inputs give the same; faults that need another output are planted in the others."""

    class FirstAlike(Opener):
        def __call__(self, model: ModelFile, configuration: Configuration) -> FakeSession:
            seen: dict[bytes, int] = {}

            def answer(values: Any) -> Any:
                number = seen.setdefault(values.tobytes(), len(seen))
                return three_times(np.ones_like(values) * np.arange(2)) + max(0, number - 10)

            return Answering(answer)

    result = evaluate(prepare_diff, asked(tmp_path, num_runs=20), Silent(), FirstAlike())
    found = result.part.comparisons[0].sensitivity
    assert found is not None
    assert found.alike == []
    noticed = {fault.name: fault.noticed for fault in found.faults}
    assert (noticed["the first output for ever"], noticed["the output of the run before"]) == (True, True)


def test_inputs_that_hardly_change_an_output_are_named(tmp_path: Path) -> None:
    """From run to run it changes by a thousandth, and bf16 rounds by more: a run given again is within that."""

    class Steady(Opener):
        def __call__(self, model: ModelFile, configuration: Configuration) -> FakeSession:
            return Answering(lambda values: np.linspace(1, 2, values.size).reshape(values.shape) + 1e-3 * values)

    found = sensitivity(tmp_path, Steady())
    assert len(found.hardly_change) == 1
    assert "hardly changes on these inputs: try others (--input_images, --input_files)" in sensitivity_in_words(found)
    noticed = {fault.name: fault.noticed for fault in found.faults}
    assert noticed["the output of the run before"]
    assert not noticed["that of the run before, rounded"]
    assert sensitivity(tmp_path, Opener()).hardly_change == []


def test_that_no_noise_would_be_noticed_is_said() -> None:
    faults = [PlantedFault("all zero", True, [])]
    said = "would have noticed 1 of 1 planted faults"
    assert sensitivity_in_words(Sensitivity(4, faults, None, [], "int8")) == (
        f"{said}; not even noise as large as the output"
    )
    assert sensitivity_in_words(Sensitivity(4, faults, None, [])) == said, "a detector"
