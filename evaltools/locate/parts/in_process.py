"""What runs in the child process: cuts parts, opens them, runs them, and compares them with the reference's tensors.

Tensors stay in files of this process's folder; only figures travel.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable, EvaltoolsError, InferenceError
from evaltools.locate.parts.difference import difference, exact_steps, is_rounded, one_sided
from evaltools.locate.parts.part import Outcome, Part, TensorRuns, is_xnnpack, other_kernels
from evaltools.model import ModelFile, read_model
from evaltools.model.contents import Graph, read_contents
from evaltools.model.cut import Cut, CuttableModel, Form, NotCuttable
from evaltools.model.rounding import UNIT_ROUNDOFF, disturb, disturb_constants, to_8_bits_of_range
from evaltools.runtime.registry import open_session
from evaltools.runtime.session import Array, Delegation, Inference, RuntimeFacts, Session, TensorSpec

_CHECKED_INPUTS: Final = 2
_FLOOR_INPUTS: Final = 8
_CHAINED_INPUTS: Final = 8
_ROUNDINGS: Final = ("float32", "fp16", "bf16", "int8")
_PRECISIONS: Final = ("fp16", "bf16")
_QUANTIZED: Final = ("int8", "uint8", "int16")
_SEED: Final = 7
_KEPT_TENSORS: Final = 64
UNSEEN: Final = "unseen"
"""The kind of values that the reference gives where nobody looks at its tensors, in real numbers: its outputs."""
AsFed = Callable[[int, Sequence[Array]], Mapping[int, Array]]


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

    def exact(self, place: int, fed: Mapping[int, Array]) -> npt.NDArray[np.float64] | None:
        """What an operator gives, in steps of its output, before it is rounded; None for most operators."""
        return exact_steps(self._graph, self._graph.nodes[place], fed)

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
        place = self._place("chain", run, tensor)
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


def measure(session: PartsSession, part: Part, inputs: int) -> Outcome:
    """Cut the part, check it on the CPU, run it with its configuration on ``inputs`` inputs, compare."""
    try:
        return _Measurement(session, part, inputs).outcome()
    except NotCuttable as error:
        return Outcome(resists=str(error))
    except ConfigurationUnavailable as error:
        return Outcome(refused=str(error), compiled=1)
    except InferenceError as error:
        return Outcome(died=str(error), compiled=1)


class _Measurement:
    """One part with its model, and the runs that it is given."""

    def __init__(self, session: PartsSession, part: Part, inputs: int) -> None:
        self._session = session
        self._part = part
        self._cut = _cut(session, part)
        self._inputs = 1 if self._cut.stateful and not part.is_whole else inputs

    def outcome(self) -> Outcome:
        """Everything that is asked for."""
        part, session = self._part, self._session
        note = "" if part.is_whole or self._is_finite() else "what it is fed holds NaN or infinity"
        is_evidence = part.is_whole or (not note and (part.fed_by_other or self._same_on_cpu()))
        stateful = self._cut.stateful or (part.is_whole and session.file.stateful)
        with self._opened(part.configuration) as opened, self._last_alone() as as_fed:
            watched = [_Watched(session, tensor, part.against) for tensor in self._cut.outputs]
            runs, unlike = self._repeat(opened, watched, stateful, as_fed)
            chained = self._chained(opened) if part.chain and not stateful else {}
            delegation = opened.delegation
        floors = self._floors() if part.floors else {}
        if part.keep:
            chosen = [each for each in watched if part.kept_tensor in (None, each.tensor)]
            self._keep(max(chosen, key=lambda each: each.kept_error))
        return Outcome(
            outputs=tuple(
                each.runs(floors.get(place, {}), tuple(chained.get(place, ())))
                for place, each in enumerate(watched)
                if each.is_seen
            ),
            is_evidence=is_evidence,
            nodes=delegation.total_nodes,
            delegated=delegation.delegated_nodes,
            delegates=tuple(each.delegate for each in delegation.delegates if each.nodes),
            runs=runs,
            unlike=unlike,
            compiled=1,
            note=note,
        )

    def _is_finite(self) -> bool:
        """Whether everything that the part is fed is a number: kernels may do with NaN as they like."""
        values = [array for run in range(self._inputs) for array in self._values(run)]
        return all(bool(np.isfinite(array).all()) for array in values if array.dtype.kind == "f")

    def _opened(self, configuration: Configuration) -> AbstractContextManager[Session]:
        if self._part.copy:
            return self._session.opened((self._session.folder / self._part.copy).read_bytes(), configuration)
        if self._part.is_whole:
            return closing(open_session(self._session.file, configuration))
        return self._session.opened(self._cut.content, configuration)

    @contextmanager
    def _last_alone(self) -> Iterator[AsFed]:
        """What the reference makes of what the last operator was fed: a function of the run and the part's outputs."""
        if not self._part.as_fed:
            yield lambda _run, _outputs: {}
            return
        last = self._part.last
        cut = self._session.model.cut(last, last, self._session.forms)
        with self._session.opened(cut.content, self._session.reference) as alone:

            def as_fed(run: int, outputs: Sequence[Array]) -> Mapping[int, Array]:
                given = dict(zip(self._cut.inputs, self._values(run), strict=True))
                given |= dict(zip(self._cut.outputs, outputs, strict=True))
                made = alone.run([given[tensor] for tensor in cut.inputs]).outputs
                return dict(zip(cut.outputs, made, strict=True))

            yield as_fed

    def _values(self, run: int) -> list[Array]:
        if self._part.fed_by_other:
            return [self._session.as_other(self._part.against, run, tensor) for tensor in self._cut.inputs]
        return [self._session.read(run, tensor) for tensor in self._cut.inputs]

    def _same_on_cpu(self) -> bool:
        """Whether the part alone gives the bits that the whole model gave, with the reference's own kernels."""
        try:
            for run in range(min(self._inputs, _CHECKED_INPUTS)):
                with self._session.opened(self._cut.content, self._session.reference) as opened:
                    outputs = opened.run(self._values(run)).outputs
                for tensor, values in zip(self._cut.outputs, outputs, strict=True):
                    if values.tobytes() != self._session.read(run, tensor).tobytes():
                        return False
        except EvaltoolsError:
            return False
        return True

    def _repeat(self, opened: Session, watched: Sequence[_Watched], stateful: bool, as_fed: AsFed) -> tuple[int, int]:
        """Run until there are enough runs; returns how many, and for how many inputs a second run was another."""
        first: dict[int, tuple[Array, ...]] = {}
        unlike: set[int] = set()
        end = time.monotonic() + self._part.seconds
        done = 0
        while done < self._inputs or (done < self._part.runs and time.monotonic() < end and not stateful):
            run = done % self._inputs
            if stateful and done:
                with self._opened(self._part.configuration) as anew:
                    inference = anew.run(self._values(run))
            else:
                inference = opened.run(self._values(run))
            expected, exact = as_fed(run, inference.outputs), self._exact(run)
            for each, values in zip(watched, inference.outputs, strict=True):
                each.see(run, values, expected.get(each.tensor), exact)
            earlier = first.setdefault(run, inference.outputs)
            if any(one.tobytes() != other.tobytes() for one, other in zip(earlier, inference.outputs, strict=True)):
                unlike.add(run)
            done += 1
        return done, len(unlike)

    def _exact(self, run: int) -> npt.NDArray[np.float64] | None:
        """What a sum or difference of bytes is before it is rounded, where the part is that operator alone."""
        if self._part.is_whole or self._part.first != self._part.last:
            return None
        fed = dict(zip(self._cut.inputs, self._values(run), strict=True))
        return self._session.exact(self._part.last, fed)

    def _chained(self, opened: Session) -> dict[int, list[float]]:
        """Run on what the parts before gave, and keep that for the parts behind; errors by output."""
        found: dict[int, list[float]] = {}
        for run in range(min(self._inputs, _CHAINED_INPUTS)):
            outputs = opened.run([self._session.chained(run, tensor) for tensor in self._cut.inputs]).outputs
            for place, (tensor, values) in enumerate(zip(self._cut.outputs, outputs, strict=True)):
                self._session.write("chain", run, tensor, values)
                found.setdefault(place, []).append(difference(values, self._session.read(run, tensor)).largest)
        return found

    def _floors(self) -> dict[int, dict[str, float]]:
        """By output: what CPU kernels do among themselves, and what rounding inputs and constants does."""
        found: dict[int, dict[str, float]] = {place: {} for place in range(len(self._cut.outputs))}
        content, reference = self._cut.content, self._session.reference
        tensors = self._cut.inputs + self._cut.outputs
        has_floats = any(self._session.forms[tensor].dtype == "float32" for tensor in tensors)
        if not (has_floats and is_xnnpack(self._part.configuration)):  # reference kernels take seconds for floats
            self._add_floor(found, "kernels", content, other_kernels(self._part.configuration), "")
        if not has_floats:
            return found
        if self._part.floors == "cpu and fp16" and not is_xnnpack(self._part.configuration):
            self._add_floor(found, "xnnpack fp16", content, other_kernels(self._part.configuration, half=True), "")
        for precision in _ROUNDINGS:
            rounded = content if precision == "float32" else disturb_constants(content, precision)[0]
            self._add_floor(found, precision, rounded, reference, precision)
        for place, tensor in enumerate(self._cut.outputs):
            for precision in _PRECISIONS:
                largest = np.abs(self._session.read(0, tensor).astype(np.float64)).max(initial=0.0)
                found[place][precision] = max(
                    found[place].get(precision, 0.0), float(np.nan_to_num(largest)) * UNIT_ROUNDOFF[precision]
                )
        return found

    def _add_floor(
        self,
        found: dict[int, dict[str, float]],
        name: str,
        content: bytes,
        configuration: Configuration,
        precision: str,
    ) -> None:
        """Run another way to compute the same on the CPU; one that cannot be run is no floor."""
        random = np.random.default_rng(_SEED)
        with suppress(EvaltoolsError), self._session.opened(content, configuration) as opened:
            if configuration.delegates.requested and not opened.delegation.delegated_nodes:
                return
            for run in range(min(self._inputs, _FLOOR_INPUTS)):
                values = [_disturbed(array, precision, random) for array in self._values(run)]
                for place, output in enumerate(opened.run(values).outputs):
                    expected = self._session.read(run, self._cut.outputs[place])
                    error = difference(output, expected).largest
                    found[place][name] = max(found[place].get(name, 0.0), error)
                    if not precision and str(expected.dtype) in _QUANTIZED:
                        side = f"{name}, one side"
                        found[place][side] = max(found[place].get(side, 0.0), abs(one_sided(output, expected)))

    def _keep(self, worst: _Watched) -> None:
        """Write the worst run: inputs, what was expected, what was given, and what was expected a run before."""
        run = worst.kept_run
        arrays: dict[str, Any] = {f"input_{tensor}": self._session.read(run, tensor) for tensor in self._cut.inputs}
        arrays |= {"expected": self._session.read(run, worst.tensor), "given": worst.kept}
        arrays["before"] = self._session.read((run - 1) % self._inputs, worst.tensor)
        path = self._session.folder / self._part.keep
        np.savez(path, **arrays)
        path.with_suffix(".tflite").write_bytes(self._cut.content or self._session.file.read())


class _Watched:
    """The runs of one tensor, as they come."""

    def __init__(self, session: PartsSession, tensor: int, against: str = "") -> None:
        self._session = session
        self.tensor: Final = tensor
        self._against = against
        in_steps = not against and session.forms[tensor].dtype in _QUANTIZED
        self._unit: Final = "steps" if in_steps else "absolute"
        self._largest: list[float] = []
        self._one_sided: list[float] = []
        self._rms: list[tuple[float, float]] = []
        self._relative = self._magnitude = 0.0
        self._not_finite: int | None = None
        self._rounded = set(_PRECISIONS)
        self.kept_error = -1.0
        self.kept_run = 0
        self.kept: Array = np.zeros(0)

    def see(
        self,
        run: int,
        values: Array,
        expected: Array | None = None,
        exact: npt.NDArray[np.float64] | None = None,
    ) -> None:
        """One more run with that input; ``expected`` stands for what the tensor is held against.

        ``exact`` is what it is before it is rounded, where that is known: of halves, either neighbour is right.
        """
        pair = self._pair(run, values) if expected is None else (values, expected)
        if pair is None:
            return
        values, reference = pair
        found = difference(values, reference)
        if found.not_finite and self._not_finite is None:
            self._not_finite = len(self._largest)
        self._largest.append(found.largest)
        self._rms.append((found.error_rms, found.reference_rms))
        if self._unit == "steps":
            self._one_sided.append(one_sided(values, reference, exact) if found.largest else 0.0)
        self._relative = max(self._relative, found.error_rms / found.reference_rms if found.reference_rms else 0.0)
        self._magnitude = max(self._magnitude, found.magnitude)
        self._rounded = {each for each in self._rounded if is_rounded(values, each) and not is_rounded(reference, each)}
        if found.largest > self.kept_error:
            self.kept_error, self.kept_run, self.kept = found.largest, run, values

    @property
    def is_seen(self) -> bool:
        """Whether there is anything to hold the tensor against."""
        return bool(self._largest)

    def _pair(self, run: int, values: Array) -> tuple[Array, Array] | None:
        if not self._against:
            return values, self._session.read(run, self.tensor)
        other = self._session.other(self._against, run, self.tensor)
        return None if other is None else (self._session.real(self.tensor, values), other)

    def runs(self, floors: Mapping[str, float], chained: tuple[float, ...]) -> TensorRuns:
        """Everything that was seen."""
        model = self._session.model
        return TensorRuns(
            tensor=self.tensor,
            name=model.name(self.tensor),
            unit=self._unit,
            largest=tuple(self._largest),
            relative=self._relative,
            magnitude=self._magnitude,
            not_finite_run=self._not_finite,
            floors=dict(floors),
            rounded=tuple(sorted(self._rounded)),
            chained=chained,
            one_sided=tuple(self._one_sided),
            rms=tuple(self._rms),
        )


def _disturbed(values: Array, precision: str, random: np.random.Generator) -> Array:
    """Floats that a part is fed, in a precision; others, and without one, as they are."""
    if not precision or values.dtype != np.float32:
        return values
    floats = values.astype(np.float32)
    return to_8_bits_of_range(floats) if precision == "int8" else disturb(floats, precision, random)


def _cut(session: PartsSession, part: Part) -> Cut:
    model = session.model
    if part.is_whole:
        outputs = (*model.graph_outputs, *(tensor for tensor in part.exposed if tensor not in model.graph_outputs))
        return Cut(b"", 0, len(model.operators) - 1, model.graph_inputs, outputs)
    return model.cut(part.first, part.last, session.forms, part.exposed, part.taps)


@lru_cache(maxsize=_KEPT_TENSORS)
def _load_once(path: Path) -> Any:
    return _load(path)


def _load(path: Path) -> Any:
    return np.load(path, mmap_mode="r", allow_pickle=False)
