"""What a comparison makes of the rule: which variants count, outputs of 0, a reference that is wrong, Ctrl-C."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import verdicts
from evaltools.configuration import Configuration
from evaltools.tasks.inference_diff.judgement import kernels_of
from evaltools.tasks.inference_diff.noise_floor import FEW_ROUNDINGS, KEPT_TENSORS
from tests.command import evaltools_here
from tests.runtime.fake import open_here
from tests.tasks.facts import diff_of, evaluate
from tests.tasks.inference_diff.fakes import SHAPE, Opener, asked, three_times
from tests.tasks.observers import Silent

SAMPLE = Path(__file__).resolve().parents[3] / "datasets" / "sample" / "models" / "float32.tflite"
VARIANTS = ("plain C++ kernels", "builtin kernels, 2 threads")


NOT_REPEATABLE = "not repeatable: a second time, the same inputs gave other outputs"


@pytest.mark.parametrize(("answer", "kind"), [(0.0, "not decided"), (2.0, "identical")])
def test_zeros_in_every_output_are_not_decided(tmp_path: Path, answer: float, kind: str) -> None:
    """A model that is never run gives zeros as well, equal in every bit."""
    alike = dict.fromkeys(("reference", "test", *VARIANTS), lambda: lambda _values: np.full(SHAPE, answer))
    verdict = evaluate(asked(tmp_path), Silent(), Opener(**alike)).rows[1].verdicts[0]
    assert verdict.kind == kind
    assert ("all outputs are 0 everywhere" in verdict.why) == (kind == "not decided")


@pytest.mark.parametrize(
    ("text", "kernels"),
    [("use_xnnpack=true", "default"), ("", "default"), ("use_xnnpack=false", "builtin"), ("use_gpu=true", "")],
)
def test_the_kernels_of_a_configuration(text: str, kernels: str) -> None:
    assert kernels_of(Configuration.from_text("test", text)) == kernels


def test_a_kernel_is_no_variant_of_itself(tmp_path: Path) -> None:
    """XNNPACK that is wrong, on one thread and on two, is not excused by itself; builtin kernels that are it excuse."""
    wrong = lambda: lambda values: three_times(values) * np.float32(1.05)  # noqa: E731
    tests = (Configuration("test"), Configuration("other", kernels="builtin", num_threads=2))
    makers = {"test": wrong, "other": wrong, "XNNPACK": wrong, "XNNPACK, 2 threads": wrong}
    result = evaluate(asked(tmp_path, tests=tests), Silent(), Opener(**makers))
    kinds = {entry.name: entry.verdicts[0].kind for entry in result.rows if entry.role == "test"}
    assert (kinds["test"], kinds["other"]) == ("diverged", "equivalent")


@pytest.mark.parametrize(
    ("names", "verdict"),
    [
        (["test"], ("diverged", NOT_REPEATABLE)),
        (
            ["test", "reference"],
            ("not decided", f"{NOT_REPEATABLE[16:]}, of the reference too"),
        ),
    ],
)
def test_every_third_inference_by_two_percent_is_diverged_however_small_that_is(
    tmp_path: Path, names: list[str], verdict: tuple[str, str]
) -> None:
    """The pass and the second time meet other inputs in the third place; bf16 explains so small a difference."""

    def every_third() -> Callable[[Any], Any]:
        calls = itertools.count()
        return lambda values: three_times(values) * np.float32(1.02 if next(calls) % 3 == 0 else 1)

    request = asked(tmp_path, num_runs=20)
    result = evaluate(request, Silent(), Opener(**dict.fromkeys(names, every_third)))
    (found,) = result.rows[-1].verdicts
    assert (found.kind, found.texts[0].partition(";")[0]) == verdict


def test_a_first_inference_that_gives_other_outputs_is_diverged(tmp_path: Path) -> None:
    """The warm-up hides it from the pass; each session gives zeros once."""

    def zeros_once() -> Callable[[Any], Any]:
        answers = iter([np.float32(0)])
        return lambda values: three_times(values) * next(answers, np.float32(1))

    result = evaluate(asked(tmp_path), Silent(), Opener(test=zeros_once))
    (verdict,) = result.rows[-1].verdicts
    assert (verdict.kind, verdict.texts[0][:19]) == ("diverged", "the first inference")


@pytest.mark.once
def test_real_kernels_leave_broken_variants_out(tmp_path: Path) -> None:
    """A plain C++ kernel that gives zeros is named, and excuses nothing."""

    class Zeroing(Opener):
        def __call__(self, model, configuration):  # type: ignore[no-untyped-def]
            if configuration.name in ("plain C++ kernels", "test"):
                return super().__call__(model, configuration)
            return open_here(model, configuration)

    zeros = {"plain C++ kernels": lambda: lambda values: values * np.float32(0)}
    opener = Zeroing(**zeros, test=lambda: lambda values: values * np.float32(-3))
    result = evaluate(asked(tmp_path), Silent(), opener)
    assert any("plain C++ kernels does not count for output" in warning for warning in result.warnings)
    assert result.rows[-1].verdicts[0].kind == "diverged"


def _times(factor: float) -> Callable[[Any], Any]:
    return lambda values: values * np.float32(factor)


def test_variants_that_no_verdict_needs_are_not_run(tmp_path: Path) -> None:
    """Beside the second time one that shows a wrong reference; the model has no constants to round."""
    measured = []
    for factor in (3.0, 3.000001, 3.3):
        opener = Opener(test=partial(_times, factor))
        details = diff_of(evaluate(asked(tmp_path), Silent(), opener))
        measured.append({variant.name for variant in details.noise_floor})
        repeated = details.comparisons[0].repeatability
        assert repeated is not None
        assert repeated.identical
    assert measured[0] == measured[1] == {KEPT_TENSORS}
    assert measured[2] > {*VARIANTS, KEPT_TENSORS}


def five_times(values: Any) -> Any:
    return np.asarray(values * np.float32(5), np.float32)


def test_a_reference_that_its_own_kernels_with_all_tensors_kept_contradict_is_the_odd_one_out(tmp_path: Path) -> None:
    """Those that share its memory plan are wrong as well; a test that is wrong in another way stays so."""
    wrong = dict.fromkeys(("reference", *VARIANTS, FEW_ROUNDINGS, "fp16", "bf16"), lambda: five_times)
    tests = (Configuration("test"), Configuration("other"))
    opener = Opener(**wrong, other=lambda: lambda values: -three_times(values))
    result = evaluate(asked(tmp_path, tests=tests), Silent(), opener)
    odd, other = (entry.verdicts[0] for entry in result.rows[1:])
    assert (odd.kind, other.kind) == ("the reference is the odd one out", "diverged")
    assert "its own kernels with all tensors kept give what the test gives" in odd.why
    assert any("the reference itself may be wrong" in warning for warning in result.warnings)


OWN = ("reference", "builtin kernels, 2 threads", KEPT_TENSORS, FEW_ROUNDINGS, "fp16", "bf16")


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (OWN, "the reference is the odd one out"),
        (("test", "plain C++ kernels"), "diverged"),
        (("test", "XNNPACK"), "diverged"),
        ((*OWN, "plain C++ kernels"), "diverged"),
    ],
)
def test_other_kernels_that_agree_with_the_test_are_witnesses_unless_some_agree_with_the_reference(
    tmp_path: Path, wrong: tuple[str, ...], kind: str
) -> None:
    """The test is one of another library, which no variant is; builtin kernels are wrong in all that run them."""
    own = Configuration("test", kernels="builtin", num_threads=3) if "test" in wrong else Configuration("test")
    opener = Opener(**dict.fromkeys(wrong, lambda: five_times))
    (verdict,) = evaluate(asked(tmp_path, tests=(own,)), Silent(), opener).rows[-1].verdicts
    assert verdict.kind == kind
    assert ("the outputs of plain C++ kernels are those of the test" in verdict.why) == (wrong == OWN)


def test_the_sentence_is_about_the_kernels_that_ran(tmp_path: Path) -> None:
    reference = Configuration("reference", kernels="reference")
    opener = Opener(**dict.fromkeys(("reference", FEW_ROUNDINGS), lambda: five_times))
    result = evaluate(asked(tmp_path, reference=reference), Silent(), opener)
    assert result.rows[-1].verdicts[0].texts[0].startswith("the outputs of builtin kernels are those of the test")
    assert not any("with the same kernels" in warning for warning in result.warnings)


def test_after_ctrl_c_in_the_pass_nothing_is_decided(tmp_path: Path) -> None:
    runs = []

    def interrupted(values: Any) -> Any:
        runs.append(1)
        if len(runs) == 4:
            raise KeyboardInterrupt
        return three_times(values) * np.float32(1.001)

    result = evaluate(asked(tmp_path), Silent(), Opener(test=lambda: interrupted))
    (verdict,) = result.rows[-1].verdicts
    assert (result.stopped, verdict.kind, verdict.texts[0][:18]) == ("interrupted", "not decided", "interrupted before")


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
    found = verdicts.verdicts_of(
        SAMPLE, ["--num_runs=8", "--noise_floor_runs=4"], faults, lambda words: evaltools_here(*words).err
    )
    assert found is not None
    assert {name: verdict.kind for name, verdict in found.items()} == {fault.__name__: "diverged" for fault in faults}
