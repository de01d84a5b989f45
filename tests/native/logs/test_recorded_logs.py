"""Whole logs of runs with delegates, of benchmark_model and of an evaluation tool, in all styles of prefixes."""

from __future__ import annotations

import pytest

from evaltools.native.logs.delegates import delegate_lines, family_of, read_delegate_log, taken_by, undelegated
from tests.native.logs.log_styles import STYLES, recorded

RESTORED: str = "Restored original execution plan after delegate application failure."
PROVEN = {
    "gpu_full": ("GPU", 31),
    "gpu_partial": ("GPU", 63),
    "nnapi_accelerator": ("NNAPI", 31),
}
REFUTED = {
    "gpu_unsupported": ("GPU", "GPU acceleration is unsupported on this platform."),
    "nnapi_unsupported": ("NNAPI", "NNAPI acceleration is unsupported on this platform."),
    "nnapi_reference": ("NNAPI", None),
    "hexagon_missing": ("Hexagon", "Hexagon Delegate is not supported."),
}
FIRST_WORD_ON_THE_REFERENCE = {
    "benchmark": "NNAPI accelerators available: [nnapi-reference]",
    "eval": "NNAPI accelerator name: [nnapi-reference]",
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("tool", ["benchmark", "eval"])
@pytest.mark.parametrize("run", PROVEN)
def test_whole_logs_that_prove_delegation(run: str, tool: str, style: str) -> None:
    delegate, nodes = PROVEN[run]
    found = read_delegate_log(delegate_lines(STYLES[style](recorded(f"{tool}_{run}"))))
    assert undelegated(found, [delegate]) == {}
    assert [entry.nodes for entry in taken_by(found, delegate, [delegate])] == [nodes]
    assert found == read_delegate_log(delegate_lines(recorded(f"{tool}_{run}")))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("tool", "nodes"), [("benchmark", 31), ("eval", 136)])
def test_hexagon_logs_what_it_took_before_the_runtime_does(tool: str, nodes: int, style: str) -> None:
    found = read_delegate_log(delegate_lines(STYLES[style](recorded(f"{tool}_hexagon"))))
    assert undelegated(found, ["Hexagon"]) == {}
    (taken,) = taken_by(found, "Hexagon", ["Hexagon"])
    assert (taken.nodes, taken.announced) == (nodes, False)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("tool", ["benchmark", "eval"])
@pytest.mark.parametrize("run", REFUTED)
def test_whole_logs_that_refute_delegation(run: str, tool: str, style: str) -> None:
    delegate, line = REFUTED[run]
    found = read_delegate_log(delegate_lines(STYLES[style](recorded(f"{tool}_{run}"))))
    assert found.refuted[0].line == (line or FIRST_WORD_ON_THE_REFERENCE[tool])
    assert set(undelegated(found, [delegate])) == {delegate}
    assert "XNNPACK" in {family_of(entry.delegate) for entry in found.taken}


@pytest.mark.parametrize("style", STYLES)
def test_a_compilation_that_failed_is_quoted_with_its_cause(style: str) -> None:
    log = STYLES[style](recorded("benchmark_nnapi_compilation_failed"))
    assert undelegated(read_delegate_log(delegate_lines(log)), ["NNAPI"]) == {
        "NNAPI": f'the log says "{RESTORED}", after "NN API returned error ANEURALNETWORKS_OP_FAILED at line 3779 '
        'while completing NNAPI compilation."'
    }


def test_the_app_logs_what_the_program_prints() -> None:
    assert delegate_lines(recorded("app_gpu_full_threadtime")) == delegate_lines(recorded("benchmark_gpu_full"))
