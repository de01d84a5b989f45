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
    ("options", "text"),
    [
        (
            {"precison": "fp16"},
            "unknown option 'precison', expected precision, ops, max_nodes, fail, fail_at or leak_mb",
        ),
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
        ({"fail": "never"}, "option 'fail' is 'never', expected create, prepare, invoke, abort, hang or leak"),
        ({"fail": "abort", "fail_at": ""}, "option 'fail_at' is '', expected a finite number"),
        ({"fail": "abort", "fail_at": "1x"}, "option 'fail_at' is '1x'"),
        ({"fail": "abort", "fail_at": "nan"}, "option 'fail_at' is 'nan'"),
        ({"fail_at": 1}, "option 'fail_at' needs 'fail' with invoke, abort, hang or leak"),
        ({"fail": "prepare", "fail_at": 1}, "option 'fail_at' needs 'fail' with invoke"),
        ({"fail": "leak", "leak_mb": 0}, "option 'leak_mb' is '0', expected a whole number, 1 or more"),
        ({"fail": "abort", "leak_mb": 64}, "option 'leak_mb' needs 'fail' with leak"),
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
def test_only_the_input_that_was_named_fails(runtime: str, rounding_delegate: Path) -> None:
    """A number that has no short decimal form is found again."""
    first = np.float32(-0.41960788)
    delegate = load_delegate(runtime, rounding_delegate, fail="invoke", fail_at=float(first), precision="fp32")
    model = tiny_models.add_chain(length=5)
    interpreter = make_interpreter(runtime, model, delegate)
    (image,) = random_inputs(interpreter)
    for value, fails in [(first, True), (np.nextafter(first, np.float32(0)), False), (first, True)]:
        image.flat[0] = value
        if fails:
            with pytest.raises(RuntimeError, match="invoke fails, as option fail asks"):
                run(interpreter, [image])
        else:
            np.testing.assert_array_equal(run(interpreter, [image]), run(make_interpreter(runtime, model), [image]))


LEAKING = """
import resource
import sys
from pathlib import Path
from tests import interpreters, tiny_models

runtime, library, limit_mb = sys.argv[1:]
delegate = interpreters.load_delegate(runtime, Path(library), fail="leak", leak_mb=1024, precision="fp32")
interpreter = interpreters.make_interpreter(runtime, tiny_models.add_chain(), delegate)
cpu = interpreters.make_interpreter(runtime, tiny_models.add_chain())
used_mb = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() >> 20
if limit_mb != "0":
    resource.setrlimit(resource.RLIMIT_AS, ((used_mb + int(limit_mb)) << 20,) * 2)
before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for count in range(1, 6):
    inputs = interpreters.random_inputs(cpu, count)
    same = (interpreters.run(interpreter, inputs) == interpreters.run(cpu, inputs)).all()
    print(count, same, flush=True)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 100_000)
"""


@both_runtimes
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc to see how much memory is used")
@pytest.mark.parametrize(("limit_mb", "runs"), [(0, 5), (3500, 3)])
def test_a_leak_takes_address_space_until_there_is_none(
    runtime: str, rounding_delegate: Path, limit_mb: int, runs: int
) -> None:
    """Nothing is written to it, so that the machine keeps its memory; results are right until the end."""
    runtime_module(runtime)
    command = [sys.executable, "-c", LEAKING, runtime, str(rounding_delegate), str(limit_mb)]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [f"{count} True" for count in range(1, runs + 1)]
    if not limit_mb:
        assert child.stdout.splitlines() == [*lines, "True"], child.stderr
        return
    assert child.stdout.splitlines() == lines, child.stderr
    assert child.returncode == -signal.SIGABRT
    assert "rounding_delegate: no memory for another 1024 MB" in child.stderr
