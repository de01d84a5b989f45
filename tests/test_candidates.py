"""What is tried where nothing says what to test."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import evaltools as et
from evaltools import candidates
from evaltools.candidates import found_here, with_tests_here
from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.errors import ConfigurationUnavailable
from evaltools.model import ModelFile, read_model
from evaltools.runtime.delegation import DelegateCoverage, Delegation
from evaltools.runtime.process.ahead import OpenedAhead
from evaltools.runtime.process.isolated import open_isolated
from tests import tiny_models
from tests.cli.evaluate.sample_runs import figures
from tests.command import evaltools_here
from tests.requests import request_of
from tests.runtime.emulated.bare import emulator_or_skip

INT8, FLOAT = sample.model_file("int8"), sample.model_file("float32")
GROUPS = candidates.groups()


def rows(*models: Path) -> list[str]:
    """What is tried of the CPU's delegates, which every machine has that tests run on."""
    found = found_here([read_model(model) for model in models])
    assert not [delegate for delegate in found.missing if "XNNPACK" in delegate], "nothing is to be said of it"
    return [entry.name for entry in found.tests if not entry.name.startswith(("gpu", "npu"))]


def test_fp16_is_tried_where_a_model_computes_with_floats() -> None:
    assert rows(FLOAT) == ["xnnpack", "xnnpack fp16"]
    assert rows(INT8) == ["xnnpack"]
    assert rows(FLOAT, INT8) == ["xnnpack"], "of several models what works with all"


def test_where_nothing_works_the_request_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "whole_numbers.tflite"
    model.write_bytes(tiny_models.add_chain(dtype="int32"))
    asked = request_of("inference_diff").stating(model_file=model)
    monkeypatch.setattr(candidates, "groups", lambda: GROUPS[:2])
    request, missing = with_tests_here(asked)
    assert request == asked
    assert "XNNPACK (not with this model)" in missing
    gone = request_of("inference_diff").stating(model_file="nowhere.tflite")
    assert with_tests_here(gone) == (gone, ""), "who reads the model tells what is wrong"


@pytest.mark.parametrize(
    ("installed", "works"),
    [((), []), (("tflite_runtime",), ["xnnpack"]), (("litert", "compiled"), ["xnnpack", "xnnpack fp16"])],
)
def test_a_delegate_needs_a_runtime_that_has_it(
    monkeypatch: pytest.MonkeyPatch, installed: tuple[str, ...], works: list[str]
) -> None:
    monkeypatch.setattr("evaltools.runtime.registry.installed_runtimes", lambda: list(installed))
    monkeypatch.setattr(candidates, "_opened", gpu(is_software=False))
    monkeypatch.setattr(candidates, "groups", lambda: GROUPS[:2])
    found = found_here([read_model(FLOAT)])
    assert [entry.name for entry in found.tests] == works
    assert set(found.missing.values()) == (set() if len(works) == 2 else {"needs ai-edge-litert"})


def gpu(is_software: bool, fails_with: str = "") -> Callable[..., Delegation]:
    """What opens models on a GPU, but one."""

    def opened(configuration: Configuration, model: ModelFile, *_opener: object) -> Delegation:
        if model.path.name == fails_with:
            raise ConfigurationUnavailable("the driver says no", "GPU")
        return Delegation(1, (DelegateCoverage("GPU", True, 1, 1, "a GPU", is_software),), {})

    return opened


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no driver is looked for")
@pytest.mark.parametrize(
    ("driver", "device", "opened", "missing"),
    [
        (True, True, gpu(is_software=False), ""),
        (False, True, gpu(is_software=False), "no Vulkan driver"),
        (True, False, gpu(is_software=False), 'only in software: --config "gpu: use_gpu=true" runs it'),
        (True, True, gpu(is_software=True), 'only in software: --config "gpu: use_gpu=true" runs it'),
        (True, True, gpu(is_software=False, fails_with=FLOAT.name), "no GPU that its driver finds"),
        (True, True, gpu(is_software=False, fails_with=INT8.name), "not with this model"),
    ],
)
def test_a_gpu_is_tried_where_it_is_one(
    monkeypatch: pytest.MonkeyPatch, driver: bool, device: bool, opened: Callable[..., Delegation], missing: str
) -> None:
    monkeypatch.setattr(candidates, "has_drivers", lambda _environment: driver)
    monkeypatch.setattr(candidates, "_DEVICES", ("null",) if device else ())
    monkeypatch.setattr(candidates, "_opened", opened)
    monkeypatch.setattr(candidates, "groups", lambda: [group for group in GROUPS if group.delegate == "GPU"])
    found = found_here([read_model(INT8)])
    assert [entry.name for entry in found.tests] == ([] if missing else ["gpu fp16", "gpu fp32"])
    assert [entry.delegates.value("gpu_precision_loss_allowed") for entry in found.tests] == [True, False][
        : len(found.tests)
    ]
    assert found.missing == ({"GPU": missing} if missing else {})


def test_a_command_that_says_nothing_is_one_that_says_it_all(tmp_path: Path) -> None:
    """The run folder has what was decided, so that it goes on as if it had been typed."""
    words = ["diff", str(FLOAT), "--num_runs=3", "--noise_floor_runs=0"]
    done = evaltools_here(*words, "--output=unasked.json", "--run_dir=run", cwd=tmp_path)
    assert done.code == 0, done.err
    decided = found_here([read_model(FLOAT)])
    assert (str(decided) in done.err) is bool(decided.missing)
    named = [f"--config={entry.name}: {' '.join(entry.to_flags())}" for entry in decided.tests]
    typed = evaltools_here(*words, *named, "--output=typed.json", cwd=tmp_path)
    assert typed.code == 0, typed.err
    assert figures(tmp_path / "unasked.json") == figures(tmp_path / "typed.json")
    assert evaltools_here(*words, *named, "--run_dir=run", cwd=tmp_path).code == 0, "it is the same run"
    assert [line for line in done.out.splitlines() if "Configuration" in line] == [
        f"INFO: Configuration: {entry.name}" for entry in decided.tests
    ]


def test_python_tries_the_same() -> None:
    result = et.diff(FLOAT, num_runs=2, noise_floor_runs=0)
    times = et.benchmark(FLOAT, num_runs=1, min_secs=0, warmup_runs=0, rounds=1)
    decided = [entry.name for entry in found_here([read_model(FLOAT)]).tests]
    assert [entry.name for entry in result] == ["reference", *decided]
    assert [entry.name for entry in times] == [name for name in decided if not name.startswith("npu")]


def test_an_npu_is_emulated_where_that_takes_a_minute_at_most_and_never_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    emulator_or_skip()
    model = [read_model(INT8)]
    assert "npu SM8750" in [entry.name for entry in found_here(model).tests]
    assert "npu SM8750" not in [entry.name for entry in found_here(model, is_timed=True).tests]
    monkeypatch.setattr(candidates, "_LONGEST_EMULATED_S", 0.0)
    found = found_here(model)
    assert "npu SM8750" not in [entry.name for entry in found.tests]
    assert '--config "npu: use_npu=true npu_vendor=qualcomm npu_soc=SM8750" does it' in str(found)


def test_a_slow_machine_is_no_reason_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "SECONDS", 0.001)
    found = found_here([read_model(INT8)])
    assert found.missing["XNNPACK"] == "not ready within 0.001 s on this machine"


def test_what_was_opened_to_be_tried_is_not_opened_again() -> None:
    with OpenedAhead() as ahead:
        (xnnpack, *_) = found_here([read_model(INT8)], ahead=ahead).tests
        again, other = read_model(INT8), read_model(FLOAT)
        with contextlib.closing(ahead.open(again, xnnpack, 9.0)) as first:
            assert first.timeout_s == 9.0
            assert first.delegation.delegated_nodes > 0
            with contextlib.closing(ahead.open(again, xnnpack)) as second:
                assert second is not first, "each is given once"
        with contextlib.closing(ahead.open(other, xnnpack)) as of_other:
            assert of_other.inputs[0].dtype == "float32"


def test_what_nobody_takes_is_closed() -> None:
    model, configuration = read_model(INT8), GROUPS[0].candidates[0].configuration
    with OpenedAhead() as ahead:
        found_here([model], ahead=ahead)
        left = ahead.open(model, configuration)
        ahead.keep(model, configuration, left)
    late = open_isolated(model, configuration)
    ahead.keep(model, configuration, late)
    assert [left.process_id, late.process_id] == [None, None], "after the end nobody would close the late one"
