"""What the child process holds: the model that parts are cut from, and the tensors that the reference gave.

Tensors stay in files of this process's folder; only figures travel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.model import ModelFile, read_model
from evaltools.model.contents import Graph, read_contents
from evaltools.model.cut import CuttableModel, Form
from evaltools.operators.difference import (
    RunOff,
    difference,
    errors_by_value,
    exact_difference,
)
from evaltools.runtime.delegation import Delegation
from evaltools.runtime.registry import open_session
from evaltools.runtime.session import Array, Inference, RuntimeFacts, Session, TensorSpec

_QUANTIZED: Final = ("int8", "uint8", "int16")
_BYTES: Final = ("int8", "uint8")
_KEPT_TENSORS: Final = 64
CHAIN: Final = "chain"
"""The kind of values that the operators gave one by one, each fed with what those before it gave, as it is stored."""
UNSEEN: Final = "unseen"
"""The kind of values that the reference gives where nobody looks at its tensors, in real numbers: its outputs."""


class Captured(Struct, frozen=True):
    """What the reference gave: which tensors there are, and whether looking at them changed the outputs."""

    tensors: int
    changes_outputs: bool


class PartsSession:
    """Follows :class:`evaltools.runtime.Session`, so that it can live in a child; it runs parts, not the model."""

    facts = RuntimeFacts("parts", "", "", "")
    delegation = Delegation(0, (), {})
    inputs = (TensorSpec("unused", np.dtype(np.float32), (1,)),)
    outputs = inputs

    def __init__(self, model: ModelFile, reference: Configuration, folder: Path) -> None:
        self.file: Final = model
        self.model: Final = CuttableModel(model.read())
        self.reference: Final = reference
        self.folder: Final = folder
        self.forms: dict[int, Form] = {}
        self._count = 0

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Nothing: :func:`measure` is called instead."""
        raise NotImplementedError

    def close(self) -> None:
        """Nothing is open between calls."""

    def read(self, run: int, tensor: int) -> Array:
        """What the reference had in a tensor, in the run with one of the inputs."""
        values: Array = _load_once(self._place("values", run, tensor))
        return values

    def real(self, tensor: int, values: Array) -> Array:
        """The real numbers that the values of a tensor stand for."""
        return self._graph.tensors[tensor].real(values)

    def other(self, kind: str, run: int, tensor: int) -> Array | None:
        """What somebody else has in a tensor, None where there is nothing."""
        place = self._place(kind, run, tensor)
        return _load(place) if place.exists() else None

    def as_other(self, kind: str, run: int, tensor: int) -> Array:
        """What somebody else has in a tensor, as the tensor stores it; of the model's inputs what the reference had."""
        values = self.other(kind, run, tensor)
        return self.read(run, tensor) if values is None else self._graph.tensors[tensor].stored(values)

    def compared(self, tensor: int, values: Array, reference: Array) -> RunOff:
        """How far values of a tensor are from the reference's, in steps where it is quantised."""
        if reference.dtype.kind in "iub" and not self.is_in_steps(tensor):
            return exact_difference(values, reference)
        if not self.is_in_steps(tensor):
            return difference(values, reference)
        off = difference(values, reference, self._zero_point(tensor))
        is_of_bytes = reference.dtype.name in _BYTES and off.largest <= 1
        return replace(off, by_value=errors_by_value(values, reference)) if is_of_bytes else off

    def is_in_steps(self, tensor: int) -> bool:
        """Whether differences of a tensor are counted in steps."""
        return self.forms[tensor].dtype in _QUANTIZED

    def _zero_point(self, tensor: int) -> float:
        zero_points = self._graph.tensors[tensor].zero_points
        return float(zero_points[0]) if len(zero_points) else 0.0

    @cached_property
    def _graph(self) -> Graph:
        return read_contents(self.file).main

    def write(self, kind: str, run: int, tensor: int, values: Array) -> None:
        """Keep the values of a tensor."""
        place = self._place(kind, run, tensor)
        place.parent.mkdir(parents=True, exist_ok=True)
        np.save(place, values)

    def chained(self, run: int, tensor: int) -> Array:
        """What the parts before gave, or the reference where none did."""
        place = self._place(CHAIN, run, tensor)
        return _load(place) if place.exists() else self.read(run, tensor)

    def load_forms(self) -> None:
        """Know the forms of tensors that an earlier process wrote."""
        for path in self._place("values", 0, 0).parent.glob("*.npy"):
            values = _load(path)
            self.forms[int(path.stem)] = Form(values.shape, str(values.dtype))

    @contextmanager
    def opened(self, content: bytes, configuration: Configuration) -> Iterator[Session]:
        """A session of a model that exists only here."""
        self._count += 1
        path = self.folder / f"part-{self._count}.tflite"
        path.write_bytes(content)
        try:
            with closing(open_session(read_model(path), configuration)) as session:
                yield session
        finally:
            path.unlink(missing_ok=True)

    def _place(self, kind: str, run: int, tensor: int) -> Path:
        return self.folder / kind / str(run) / f"{tensor}.npy"


def open_parts(model: ModelFile, reference: Configuration, folder: Path) -> PartsSession:
    """Read the model; raises :class:`~evaltools.errors.ModelError`."""
    session = PartsSession(model, reference, folder)
    session.load_forms()
    return session


def capture(session: PartsSession, run: int) -> Captured:
    """Run the reference once with inputs that lie in the folder, and keep every tensor that holds numbers.

    Tensors are given as outputs, which changes nothing on plain CPU kernels; that is checked with the model as it is.
    """
    model = session.model
    inputs = {tensor: session.read(run, tensor) for tensor in model.graph_inputs}
    session.forms |= {tensor: Form(values.shape, str(values.dtype)) for tensor, values in inputs.items()}
    last = len(model.operators) - 1
    wanted = [
        tensor
        for place in range(last + 1)
        if place not in model.folded
        for tensor in model.made_by(place)
        if model.holds_numbers(tensor)
    ]
    cut = model.cut(0, last, session.forms, exposed=wanted)
    with session.opened(cut.content, session.reference) as opened:
        outputs = opened.run([inputs[tensor] for tensor in cut.inputs]).outputs
    values = dict(zip(cut.outputs, outputs, strict=True))
    for tensor, array in values.items():
        session.write("values", run, tensor, array)
        session.forms[tensor] = Form(array.shape, str(array.dtype))
    with closing(open_session(session.file, session.reference)) as whole:
        direct = whole.run([inputs[tensor] for tensor in model.graph_inputs]).outputs
    known = values | inputs
    changed = False
    for tensor, array in zip(model.graph_outputs, direct, strict=True):
        session.write(UNSEEN, run, tensor, session.real(tensor, array))
        if tensor not in known:
            session.write("values", run, tensor, array)
            session.forms[tensor] = Form(array.shape, str(array.dtype))
        elif array.tobytes() != known[tensor].tobytes():
            changed = True
    return Captured(len(values), changed)


@lru_cache(maxsize=_KEPT_TENSORS)
def _load_once(path: Path) -> Any:
    return _load(path)


def _load(path: Path) -> Any:
    return np.load(path, mmap_mode="r", allow_pickle=False)
