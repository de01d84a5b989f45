"""An inference diff as it was asked for: native compatibility, saved outputs, limits, the second look, refusals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.datasets.gaussian import GaussianInputs
from evaltools.errors import DataError, UsageError
from evaltools.model import ModelFile
from evaltools.native.lines.evaluation import native_lines
from evaltools.result.result import INVOKE_US, Result
from evaltools.result.verdict import Verdict
from evaltools.runtime import Inference, ProcessSession, open_session
from evaltools.runtime.session import Array
from evaltools.tasks.framework.request import TaskRequest
from evaltools.tasks.inference_diff.input_options import InputOptions
from evaltools.tasks.inference_diff.material import runs_to_keep
from tests import tiny_models
from tests.runtime.fake import HereSession
from tests.tasks.facts import diff_of, evaluate
from tests.tasks.inference_diff.fakes import Function, Opener, asked, material_of, request_for, three_times
from tests.tasks.observers import Silent


def verdict_of(result: Result) -> Verdict:
    """That on the last test."""
    (verdict,) = result.rows[-1].verdicts
    return verdict


def test_native_compatibility_is_three_invocations_and_no_warm_up(tmp_path: Path) -> None:
    request = asked(tmp_path, num_runs=2, native=True, warmup_runs=0, noise_floor_runs=0)
    opener = Opener()
    result = evaluate(request, Silent(), opener)
    assert [name for name, _ in opener.opened] == ["reference", "test"]
    assert result.rows[1].series[INVOKE_US] == [1000, 2000, 3000, 4000, 5000, 6000]
    assert native_lines(result) == [
        "INFO: Num evaluation runs: 2",
        "INFO: Reference run latency: avg=3500(us), std_dev=1707(us)",
        "INFO: Test run latency: avg=3500(us), std_dev=1707(us)",
        "INFO: OutputDiff[0]: avg_error=0, std_dev=0",
    ]


def saved(folder: Path, **changes: Any) -> Path:
    """Outputs of a reference that gives 0.5 more than the model."""
    opener = Opener(reference=lambda: lambda values: three_times(values) + np.float32(0.5))
    evaluate(asked(folder, save_outputs=folder / "saved", **changes), Silent(), opener)
    return folder / "saved"


def loading(folder: Path, **changes: Any) -> TaskRequest:
    fields = {"reference": None, "inputs": InputOptions(), "load_reference": folder / "saved"}
    return asked(folder, **(fields | changes))


def test_a_saved_reference_stands_in_for_one_that_runs(tmp_path: Path) -> None:
    saved(tmp_path)
    opener = Opener()
    result = evaluate(loading(tmp_path), Silent(), opener)
    assert opener.opened[0][0] == "test"
    reference = result.rows[0]
    assert (reference.role, reference.status, reference.latency) == ("reference", "measured", None)
    found = diff_of(result).comparisons[0].outputs[0].difference
    assert found.runs == 5
    assert found.max == pytest.approx(0.5, abs=1e-6)
    assert diff_of(result).inputs[0].source == f"loaded from {tmp_path / 'saved'}"


def test_a_saved_file_that_was_changed_fails_its_run(tmp_path: Path) -> None:
    np.savez(saved(tmp_path) / "inputs" / "00002.npz", np.zeros((1, 4, 4, 2), np.float32))
    result = evaluate(loading(tmp_path), Silent(), Opener())
    (failed,) = result.failed
    assert (failed.example, failed.configuration, failed.stage) == ("run 2", None, "input")
    assert "its sha256 differs from the manifest's" in failed.reason
    repeated = diff_of(result).comparisons[0].repeatability
    assert repeated is not None
    assert (repeated.runs, repeated.identical) == (4, True), "all but the run that failed"
    assert {found.runs for entry in diff_of(result).noise_floor for found in entry.outputs} == {4}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"warmup_runs": 2}, "was saved with 1 invocations per run and --warmup_runs=1, here there are 1 and 2"),
        ({"native": True, "warmup_runs": 1}, "here there are 3 and 1"),
        ({"inputs": InputOptions(num_runs=2)}, "--num_runs=2: .* has 1 runs; use no more"),
        ({"inputs": InputOptions(seed=2)}, "brings its inputs along; leave --seed and the --input_"),
        ({"inputs": InputOptions(ranges=("input:0:1",))}, "brings its inputs along"),
        ({"reference_model_file": Path("model.tflite")}, "--reference_model_file has no effect without a reference"),
        ({"load_reference": Path("/none")}, "/none/manifest.json cannot be read: No such file"),
    ],
)
def test_a_saved_reference_that_does_not_fit_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    saved(tmp_path, num_runs=1)
    with pytest.raises(UsageError, match=message):
        material_of(loading(tmp_path, **changes))


def test_outputs_of_another_model_are_refused_unless_allowed(tmp_path: Path) -> None:
    saved(tmp_path, num_runs=1)
    other = tmp_path / "other.tflite"
    other.write_bytes(tiny_models.add_chain((1, 4, 4, 2), 3))
    with pytest.raises(DataError, match="add --allow_model_mismatch=true"):
        material_of(loading(tmp_path, model_file=other))
    assert material_of(loading(tmp_path, model_file=other, allow_model_mismatch=True)).loaded is not None
    other.write_bytes(tiny_models.add_chain((1, 4, 4, 3), 3))
    with pytest.raises(DataError, match=r"has inputs that do not fit .*: float32\[1, 4, 4, 2\], here input: float32"):
        material_of(loading(tmp_path, model_file=other, allow_model_mismatch=True))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_avg_error": ("4 time=1",)}, "no output '4 time'; .* Did you mean 3 times?"),
        (
            {"max_quanta": ("1",)},
            "--max_quanta=1: of the outputs that it is about none is compared in quanta",
        ),
        ({"input_shape": ("input:1,4",)}, "cannot have the shape 1,4"),
        ({"input_shape": ("input:1,x",)}, "--input_shape=input:1,x: use NAME:SIZE,SIZE"),
        ({"input_shape": ("image:1,4,4,2",)}, "no input 'image'"),
        ({"input_shape": ("input:1,4,4,2", "0:1,4,4,3")}, "is given two shapes"),
        ({"signature": "main"}, "no signature 'main'"),
        ({"model_file": Path("/none.tflite")}, "/none.tflite cannot be read"),
        ({"reference_model_file": Path("/none.tflite")}, "/none.tflite cannot be read"),
        ({"inputs": InputOptions(ranges=("input:1:0",))}, "--input_range=input:1:0: use NAME:LOW:HIGH with LOW below"),
    ],
)
def test_what_does_not_fit_the_model_is_refused_before_anything_runs(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    opener = Opener()
    with pytest.raises(UsageError, match=message):
        evaluate(asked(tmp_path, **changes), Silent(), opener)
    assert opener.opened == []


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        ((), None),
        (("max_avg_error", "0.2"), False),
        (("max_avg_error", "3 times=0.2"), False),
        (("min_snr_db", "0"), True),
    ],
)
def test_limits(tmp_path: Path, limits: Any, kept: bool | None) -> None:
    changes: dict[str, Any] = {limits[0]: (limits[1],)} if limits else {}
    request = asked(tmp_path, noise_floor_runs=0, **changes)
    opener = Opener(test=lambda: lambda values: three_times(values) + np.float32(0.25))
    details = diff_of(evaluate(request, Silent(), opener))
    assert details.comparisons[0].within_limits is kept


def test_the_second_look_opens_one_session_at_a_time_after_those_of_the_pass(tmp_path: Path) -> None:
    opener = Opener(test=lambda: lambda values: three_times(values) + np.float32(0.25))
    open_at_once: dict[str, int] = {}

    def watching(model: ModelFile, configuration: Configuration) -> ProcessSession:
        open_at_once[configuration.name] = sum(not session.closed for _, session in opener.opened)
        return opener(model, configuration)

    observer = Silent()
    evaluate(asked(tmp_path), observer, watching)
    assert {name: count for name, count in open_at_once.items() if count} == {}
    names = [name for name, _ in opener.opened]
    assert names[:2] == ["reference", "test"]
    assert {"reference", "test"} <= set(names[2:6]), "repeated, beside what every verdict needs"
    assert names[-1] == "plain C++ kernels", "what takes longest"
    assert {"plain C++ kernels", "XNNPACK"} <= set(names)
    assert "builtin kernels" not in names, "the reference itself"
    assert observer.steps == observer.total == 5 + len(names) - 2


def test_ctrl_c_during_the_second_look_keeps_what_was_measured(tmp_path: Path) -> None:
    opener = Opener(test=lambda: lambda values: three_times(values) + np.float32(0.25))

    def interrupted(model: ModelFile, configuration: Configuration) -> ProcessSession:
        if configuration.name == "plain C++ kernels":
            raise KeyboardInterrupt
        return opener(model, configuration)

    result = evaluate(asked(tmp_path), Silent(), interrupted)
    assert (result.stopped, result.complete, result.examples_done) == ("interrupted", False, 5)
    assert (verdict_of(result).kind, verdict_of(result).texts[0][:18]) == ("not decided", "interrupted before")
    measured = [variant.name for variant in diff_of(result).noise_floor]
    assert measured[0] == "XNNPACK"
    assert "plain C++ kernels" not in measured


def test_what_is_not_measured_in_time_is_named_and_decides_nothing(tmp_path: Path) -> None:
    opener = Opener(test=lambda: lambda values: three_times(values) + np.float32(0.25))
    result = evaluate(asked(tmp_path, max_secs=1e-9), Silent(), opener)
    assert (result.stopped, verdict_of(result).kind) == ("", "not decided")
    assert "measured in time" in verdict_of(result).texts[0]
    [warning] = [text for text in result.warnings if "--max_secs" in text]
    assert "XNNPACK" in warning
    assert "plain C++ kernels" in warning
    with pytest.raises(UsageError, match="--max_secs=-1: use a number of seconds, or 0 for no limit"):
        material_of(asked(tmp_path, max_secs=-1.0))


HUGE = 1 << 40


@pytest.mark.parametrize(
    ("total", "count", "stateful", "size", "runs"),
    [
        (50, 3, False, HUGE, (0, 24, 49)),
        (50, 3, True, HUGE, (0, 1, 2)),
        (6, 3, True, 1, (0, 1, 2, 3, 4, 5)),
        (50, 1, False, HUGE, (0,)),
        (2, 10, False, HUGE, (0, 1)),
        (50, 0, False, 1, ()),
        (50, 0, True, 1, ()),
        (11, 10, False, HUGE, (0, 1, 2, 3, 4, 6, 7, 8, 9, 10)),
        (6, 3, False, 1, (0, 1, 2, 3, 4, 5)),
        (100, 1, False, 128 << 20, (0, 99)),
    ],
)
def test_as_many_runs_are_remembered_as_fit_into_memory(
    total: int, count: int, stateful: bool, size: int, runs: tuple[int, ...]
) -> None:
    assert runs_to_keep(total, count, stateful, size) == runs


def wrong_on_rare_inputs(values: Any) -> Any:
    """Off by 0.05 on one of the first 30 random inputs."""
    return three_times(values) + np.float32(0.05 if abs(float(values.sum()) - RARE_SUM) < 1e-3 else 0)


def rare_sum(runs: int = 30) -> float:
    """Sum of an input that is not among ten spread evenly."""
    gaussian = GaussianInputs()
    sums = [float(gaussian.values("float32", 32, -1, 1).sum()) for _ in range(runs)]
    return sums[17]


RARE_SUM = rare_sum()


def test_a_rare_difference_counts_unless_every_kernel_has_it(tmp_path: Path) -> None:
    wrong = {"test": lambda: wrong_on_rare_inputs}
    alone = evaluate(asked(tmp_path, num_runs=30), Silent(), Opener(**wrong))
    also = {name: lambda: wrong_on_rare_inputs for name in ("plain C++ kernels", "builtin kernels, 2 threads")}
    shared = evaluate(asked(tmp_path, num_runs=30), Silent(), Opener(**wrong, **also))
    assert (diff_of(alone).noise_floor_runs, diff_of(shared).noise_floor_runs) == (10, 10)
    assert diff_of(alone).comparisons[0].outputs[0].difference.different == 32, "one run of 30"
    assert (verdict_of(alone).kind, verdict_of(shared).kind) == ("diverged", "equivalent")


def test_of_many_configurations_each_has_its_farthest_runs_sampled(tmp_path: Path) -> None:
    """Each is wrong in a run of its own, more of them than there are runs for the noise floor."""
    names = [f"test {number}" for number in range(12)]
    makers = {name: partial(always, wrong_in_one_run(20 + 3 * number)) for number, name in enumerate(names)}
    tests = tuple(Configuration(name) for name in names)
    result = evaluate(asked(tmp_path, num_runs=60, tests=tests), Silent(), Opener(**makers))
    verdicts = [entry.verdicts[0] for entry in result.rows if entry.role == "test"]
    assert {verdict.kind for verdict in verdicts} == {"diverged"}
    assert 10 < diff_of(result).noise_floor_runs < 60


def always(function: Function) -> Function:
    return function


def wrong_in_one_run(call: int) -> Function:
    """Twice too large for the input of one call, whenever that comes again."""
    seen: list[bytes] = []

    def answer(values: Any) -> Any:
        seen.append(values.tobytes())
        return three_times(values) * np.float32(2 if len(seen) >= call and seen[-1] == seen[call - 1] else 1)

    return answer


@pytest.mark.once
def test_an_output_whose_farthest_run_is_not_sampled_is_judged_by_all_runs(tmp_path: Path) -> None:
    """Eight outputs share five places in the sample, and one output is wrong in a run of its own."""
    outputs = 8
    path = tmp_path / "many.tflite"
    path.write_bytes(tiny_models.add_and_negate(outputs))

    class Wrong(HereSession):
        number = -2

        def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
            self.number += 1
            inference = super().run(inputs, invocations)
            given = list(inference.outputs)
            place = self.number % len(given)
            given[place] = np.multiply(given[place], np.float32(1 + 1e-3))
            if self.number == 33:
                given[-1] = np.multiply(given[-1], np.float32(3))
            return replace(inference, outputs=tuple(given))

    def opener(model: ModelFile, configuration: Configuration) -> HereSession:
        return (Wrong if configuration.name == "test" else HereSession)(open_session(model, configuration))

    request = request_for(
        model_file=path, reference=Configuration("reference", kernels="builtin"), tests=(Configuration("test"),)
    )
    result = evaluate(request, Silent(), opener)
    assert verdict_of(result).kind == "diverged"
