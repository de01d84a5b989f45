"""Every option of the example external delegate does what its README says."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import tiny_models
from tests.interpreters import (
    RUNTIMES,
    delegated_outputs,
    load_delegate,
    make_interpreter,
    random_inputs,
    run,
    runtime_module,
)

both_runtimes = pytest.mark.parametrize("runtime", RUNTIMES)


@both_runtimes
@pytest.mark.parametrize(
    ("ops", "outputs"),
    [
        ("add", [["sum"]]),
        ("conv", [["conv"]]),
        ("depthwise", [["depthwise"]]),
        ("add,conv", [["conv"], ["sum"]]),
        ("conv,depthwise", [["conv", "depthwise"]]),
        ("depthwise,conv,add", [["sum"]]),
    ],
)
def test_ops(runtime: str, rounding_delegate: Path, ops: str, outputs: list[list[str]]) -> None:
    delegate = load_delegate(runtime, rounding_delegate, ops=ops)
    interpreter = make_interpreter(runtime, tiny_models.classifier(), delegate)
    assert delegated_outputs(interpreter) == outputs


@both_runtimes
@pytest.mark.parametrize(
    ("max_nodes", "outputs"),
    [(0, []), (1, [["2 times"]]), (3, [["4 times"]]), (99, [["6 times"]])],
)
def test_max_nodes(runtime: str, rounding_delegate: Path, max_nodes: int, outputs: list[list[str]]) -> None:
    model = tiny_models.add_chain(length=5)
    delegate = load_delegate(runtime, rounding_delegate, max_nodes=max_nodes)
    assert delegated_outputs(make_interpreter(runtime, model, delegate)) == outputs


@both_runtimes
def test_taking_no_node_changes_nothing(runtime: str, rounding_delegate: Path) -> None:
    model = tiny_models.classifier()
    delegate = load_delegate(runtime, rounding_delegate, max_nodes=0)
    cpu = make_interpreter(runtime, model)
    inputs = random_inputs(cpu)
    actual = run(make_interpreter(runtime, model, delegate), inputs)
    np.testing.assert_array_equal(actual, run(cpu, inputs))


@both_runtimes
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"precison": "fp16"}, "unknown option 'precison', expected precision, ops, max_nodes"),
        ({"précision": "fp16"}, "unknown option 'précision'"),
        ({"precision": "int4"}, "option 'precision' is 'int4', expected fp32, fp16 or bf16"),
        ({"precision": ""}, "option 'precision' is ''"),
        ({"precision": "fp"}, "option 'precision' is 'fp'"),
        ({"ops": "add,pool"}, "option 'ops' is 'add,pool', expected a comma-separated list of add"),
        ({"ops": ""}, "option 'ops' is ''"),
        ({"ops": "add,"}, "option 'ops' is 'add,'"),
        ({"max_nodes": -1}, "option 'max_nodes' is '-1', expected a whole number, 0 or more"),
        ({"max_nodes": "3x"}, "option 'max_nodes' is '3x'"),
        ({"max_nodes": ""}, "option 'max_nodes' is ''"),
        ({"max_nodes": 2**31}, "option 'max_nodes' is '2147483648'"),
        ({"max_nodes": 2**70}, "option 'max_nodes' is '1180591620717411303424'"),
        ({"fail": "never"}, "option 'fail' is 'never', expected create, prepare, invoke"),
        ({"fail": "create"}, "create fails, as option fail asks"),
        ({"ops": "add", "precision": "x" * 1000}, "'" + "x" * 1000 + "', expected fp32"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refused_options(runtime: str, rounding_delegate: Path, options: dict[str, Any], text: str) -> None:
    runtime_module(runtime)
    with pytest.raises(ValueError, match="rounding_delegate") as error:
        load_delegate(runtime, rounding_delegate, **options)
    assert text in str(error.value)


@both_runtimes
def test_failing_prepare_is_an_error_of_the_constructor(runtime: str, rounding_delegate: Path) -> None:
    delegate = load_delegate(runtime, rounding_delegate, fail="prepare")
    with pytest.raises(RuntimeError, match="prepare fails, as option fail asks"):
        runtime_module(runtime).Interpreter(model_content=tiny_models.add_chain(), experimental_delegates=[delegate])


@both_runtimes
def test_failing_invoke_is_an_error_of_every_invoke(runtime: str, rounding_delegate: Path) -> None:
    delegate = load_delegate(runtime, rounding_delegate, fail="invoke")
    interpreter = make_interpreter(runtime, tiny_models.add_chain(), delegate)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"invoke fails, .* \(RoundingDelegate\) failed"):
            interpreter.invoke()


@both_runtimes
def test_no_failure_without_nodes(runtime: str, rounding_delegate: Path) -> None:
    """The options invoke, abort and hang need a node to act in."""
    delegate = load_delegate(runtime, rounding_delegate, fail="abort", max_nodes=0)
    make_interpreter(runtime, tiny_models.add_chain(), delegate).invoke()


CHILD = """
import sys
from pathlib import Path
from tests import interpreters, tiny_models

runtime, library, fail = sys.argv[1:]
delegate = interpreters.load_delegate(runtime, Path(library), fail=fail)
interpreter = interpreters.make_interpreter(runtime, tiny_models.add_chain(), delegate)
print("invoking", flush=True)
interpreter.invoke()
print("done", flush=True)
"""


def start_child(runtime: str, library: Path, fail: str) -> subprocess.Popen[str]:
    """A process that is about to invoke the failing delegate."""
    runtime_module(runtime)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, runtime, str(library), fail],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "invoking\n"
    return child


@both_runtimes
def test_abort_ends_the_process(runtime: str, rounding_delegate: Path) -> None:
    with start_child(runtime, rounding_delegate, "abort") as child:
        assert child.wait(timeout=60) == -signal.SIGABRT


@both_runtimes
def test_hang_never_returns(runtime: str, rounding_delegate: Path) -> None:
    with start_child(runtime, rounding_delegate, "hang") as child:
        try:
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(timeout=0.5)
        finally:
            child.kill()


@both_runtimes
def test_nothing_is_printed_on_success(
    runtime: str, rounding_delegate: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    delegate = load_delegate(runtime, rounding_delegate)
    interpreter = make_interpreter(runtime, tiny_models.add_chain(), delegate)
    run(interpreter, random_inputs(interpreter))
    del interpreter, delegate
    out, err = capfd.readouterr()
    assert "rounding" not in (out + err).lower()
