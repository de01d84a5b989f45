"""Models with damaged tables are refused with a sentence, or run; ``make hostile`` tries thousands."""

from __future__ import annotations

import random
import resource
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil
import pytest
from msgspec import Struct

from evaltools.datasets import sample
from evaltools.errors import ModelError
from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED, OK, USAGE
from evaltools.inspection.model import inspect_model
from evaltools.model.cut import editable_model, packed
from tests import tiny_models
from tests.command import evaltools_here
from tests.hostile.examples import EXAMPLES, IS_LONG
from tests.hostile.watched import Watch

_NUMBERS: Final = (
    *(-(2**63), -(2**31), -129, -2, -1, 0, 1, 2, 3, 4, 5, 7, 100, 127, 128, 255, 256),
    *(65535, 65536, 2**30, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1),
)
_REALS: Final = (0.0, -1.0, 1e-45, 1e-8, 1.0, 3e38, float("inf"), float("-inf"), float("nan"))
_TEXTS: Final = (None, b"", b"\x1b[2J\n", b"x" * 5000, b"\xff\xfe", b"a/../../b")
_KINDS_OF_OPERATORS: Final = 210
_HIT_OFTEN: Final = (
    "TensorT",
    "TensorT",
    "TensorT",
    "QuantizationParametersT",
    "QuantizationParametersT",
    "OperatorT",
    "OperatorT",
)
_MOST_TRIES: Final = 1000
_SHARE_OF_BYTES: Final = 0.25
"""Of the cases; in the others the file is whole, and what it says is wrong."""


class Case(Struct, frozen=True):
    """A damaged model, and the name of the model that it was."""

    number: int
    seed: str
    content: bytes


@cache
def sound_models() -> dict[str, bytes]:
    """Models of many operators and types; none has more than a few kilobytes, so that tables are hit."""
    return {
        "chain": tiny_models.add_chain(length=3),
        "chain_int8": tiny_models.add_chain(dtype="int8"),
        "negate": tiny_models.add_and_negate(),
        "two_inputs": tiny_models.two_inputs(right_shape=(1, 1, 1, 3)),
        "fed_filter": tiny_models.conv_with_fed_filter(),
        "depthwise": tiny_models.depthwise(),
        "classifier": tiny_models.classifier(output_rank=4),
        "classifier_int8": tiny_models.classifier(input_dtype="int8", output_dtype="int8"),
        "classifier_float16": tiny_models.classifier(input_dtype="float16", output_dtype="float16"),
        "signatures": tiny_models.two_signatures(),
        "text": (Path(sample.__file__).parent / "text" / "model.tflite").read_bytes(),
    }


def case(number: int) -> Case:
    """The case of that number, the same each time."""
    chance = random.Random(number)
    seed = chance.choice(sorted(sound_models()))
    damaged = _damaged_bytes if chance.random() < _SHARE_OF_BYTES else _damaged_tables
    return Case(number, seed, damaged(sound_models()[seed], chance))


def _damaged_tables(content: bytes, chance: random.Random) -> bytes:
    """The model with one to three fields of its tables changed, in such a way that it can be written at all."""
    for _ in range(_MOST_TRIES):
        model = editable_model(content)
        try:
            for _ in range(chance.choice((1, 1, 1, 2, 3))):
                _damage_one_field(model, chance)
            return packed(model)
        except Exception:  # of whatever kind: the field holds no such value
            continue
    raise AssertionError("no damage can be written")


def _damage_one_field(model: Any, chance: random.Random) -> None:
    """Change one field; a kind of table is as likely as any other, however many there are of it, but for a few."""
    tables: dict[str, list[Any]] = {}
    for table in filter(vars, _tables_in(model)):
        tables.setdefault(type(table).__name__, []).append(table)
    table = chance.choice(tables[chance.choice((*sorted(tables), *_HIT_OFTEN))])
    name = chance.choice(sorted(vars(table)))
    setattr(table, name, _another(getattr(table, name), chance))


def _tables_in(table: Any) -> Iterator[Any]:
    yield table
    for value in vars(table).values():
        for each in value if isinstance(value, list) else [value]:
            if hasattr(each, "Pack"):
                yield from _tables_in(each)


def _another(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return chance.choice((*_NUMBERS, value - 1, value + 1, chance.randrange(_KINDS_OF_OPERATORS)))
    if isinstance(value, float):
        return chance.choice(_REALS)
    if isinstance(value, np.ndarray):
        values = np.array(_another_list(value.tolist(), chance), object)
        if value.dtype.kind in "iu":
            values = values.clip(np.iinfo(value.dtype).min, np.iinfo(value.dtype).max)
        return values.astype(value.dtype)
    if isinstance(value, list):
        return _another_list(value, chance)
    return None if hasattr(value, "Pack") else chance.choice(_TEXTS)


def _another_list(values: list[Any], chance: random.Random) -> list[Any]:
    """A list in which one thing is another, is gone or comes on top, or one that is empty, doubled or turned round."""
    place = chance.randrange(len(values) + 1)
    before, after = values[:place], values[place + 1 :]
    changed = [_another(each, chance) for each in values[place : place + 1] if not hasattr(each, "Pack")]
    other = [*before, *changed, *after]
    return chance.choice((other, other, other, before + after, [*values, *changed], [], values * 2, values[::-1]))


def _damaged_bytes(content: bytes, chance: random.Random) -> bytes:
    """The file without its end, with more behind it, with other numbers, or with a piece of zeros."""
    how = chance.choice(("cut", "longer", "number", "offset", "offset", "zeros"))
    place = chance.randrange(len(content) // 4) * 4
    if how == "cut":
        return content[:place]
    if how == "longer":
        return content + chance.randbytes(chance.choice((1, 3, 4096)))
    if how == "number":
        number = chance.choice([number for number in _NUMBERS if 0 <= number < 2**32])
        return content[:place] + number.to_bytes(4, "little") + content[place + 4 :]
    if how == "zeros":
        length = min(chance.choice((1, 4, 16, 256)), len(content) - place)
        return content[:place] + bytes(length) + content[place + length :]
    small = [at for at in range(0, len(content) - 1, 2) if 0 < content[at] < 128 and not content[at + 1]]
    place = chance.choice(small)  # a number that is a little more or less, as offsets of tables and fields are
    return content[:place] + bytes([content[place] ^ chance.choice((1, 2, 4, 8, 64))]) + content[place + 1 :]


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
    """Those below this one, without the server of children, which is to stay."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        try:
            line = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if "evaltools.runtime.process" not in line:
            found[process.pid] = line
    return found
