"""Models with damaged tables are refused with a sentence, or run; ``make hostile`` tries thousands."""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from evaltools.errors import ModelError
from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED, OK, USAGE
from evaltools.inspection.model import inspect_model
from tests import tiny_models
from tests.command import evaltools_here
from tests.hostile.examples import EXAMPLES, IS_LONG
from tests.hostile.mutations import case
from tests.hostile.watched import Watch

INSPECTED = 150
RUN = EXAMPLES if IS_LONG else 24
AT_A_TIME = 24
MOST_BYTES = 8 << 30
SECONDS_TO_LEAVE = 5.0
COMMANDS = {
    "inspect": ("--run=false",),
    "diff": (
        *("--num_runs=1", "--noise_floor_runs=0", "--workers=1", "--progress=none", "--use_xnnpack"),
        "--example_timeout=5",
    ),
    "benchmark": ("--num_runs=1", "--min_secs=0", "--warmup_runs=1", "--warmup_min_secs=0", "--rounds=1"),
}


def test_a_damaged_model_is_read_or_refused(tmp_path: Path) -> None:
    found: Counter[bool] = Counter()
    for number in range(INSPECTED):
        path = tmp_path / "model.tflite"
        path.write_bytes(case(number).content)
        try:
            inspect_model(path, run=False)
            found[True] += 1
        except ModelError:
            found[False] += 1
    assert min(found[True], found[False]) > INSPECTED // 6, "some of each, or the damage is too much or too little"


@pytest.fixture
def _with_limited_memory() -> Iterator[None]:
    """So that the machine does not feel a model's wishes; what earlier tests have mapped here does not count."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + MOST_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.once
@pytest.mark.usefixtures("_with_limited_memory")
@pytest.mark.parametrize("first", range(0, RUN, AT_A_TIME))
def test_commands_refuse_a_damaged_model_or_run_it_and_leave_nothing(first: int, tmp_path: Path) -> None:
    for number in range(first, min(first + AT_A_TIME, RUN)):
        path = tmp_path / f"{number}-{case(number).seed}.tflite"
        path.write_bytes(case(number).content)
        if require_well_done("inspect", path) == OK:
            require_well_done("diff" if number % 8 else "benchmark", path)


@pytest.mark.parametrize("command", [("locate", "--kernels=reference"), ("benchmark", "--num_runs=2"), ("inspect",)])
def test_a_model_that_no_memory_holds_is_refused_before_inputs_are_made(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "huge.tflite"
    path.write_bytes(tiny_models.add_chain((1, 30_000, 30_000, 30_000), 2))
    watch = Watch()
    with watch.case(command[0]):
        done = evaltools_here(command[0], str(path), *command[1:])
    assert done.code == (OK if command[0] == "inspect" else NOT_MEASURED)
    assert "one of the model's tensors takes 1.08e+05 GB" in done.out + done.err
    watch.require_little_memory()


def require_well_done(command: str, path: Path) -> int:
    """Run a command, which must end with a sentence or figures, and no process more than before; its exit code."""
    before = processes()
    done = evaltools_here(command, str(path), *COMMANDS[command])
    assert done.code in (OK, USAGE, NOT_MEASURED, EXAMPLES_FAILED), (path.name, command, done)
    assert "Traceback" not in done.out + done.err, (path.name, command, done)
    if done.code == USAGE:
        assert (done.out, done.err[:11]) == ("", "evaltools: "), (path.name, command)
    end = time.monotonic() + SECONDS_TO_LEAVE
    while (left := set(processes()) - set(before)) and time.monotonic() < end:
        time.sleep(0.1)
    assert not left, (path.name, command, [processes().get(each) for each in left])
    return done.code


def processes() -> dict[int, str]:
    """Those below this one, without the server of children and what it starts with, which are to stay."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if "forkserver" not in line and "resource_tracker" not in line:
            found[process.pid] = line
    return found
