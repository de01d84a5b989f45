"""Runs one part in the child process: checked on the CPU, repeated, compared with the reference's tensors."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import Any, Final

import numpy as np

from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable, EvaltoolsError, InferenceError, MachineAway, MachineLost
from evaltools.model.cut import Cut, NotCuttable
from evaltools.model.rounding import disturb, disturb_constants, to_8_bits_of_range
from evaltools.operators.child import CHAIN, PartsSession
from evaltools.operators.difference import RunOff, bias, difference, is_rounded, size_beyond_a_quantum, sizes
from evaltools.operators.part import Outcome, Part, TensorRuns, is_xnnpack, other_kernels
from evaltools.runtime.registry import open_session
from evaltools.runtime.session import Array, BlockSession, Inference, Session

_CHECKED_INPUTS: Final = 2
_PRECISIONS: Final = ("fp16", "bf16")
_SEED: Final = 7
AsFed = Callable[[int, Sequence[Array]], Mapping[int, Array]]


def measure(session: PartsSession, part: Part, inputs: int) -> Outcome:
    """Cut the part, check it on the CPU, run it with its configuration on ``inputs`` inputs, compare.

    Raises :class:`MachineLost` where the device is away that runs it: that is no finding.
    """
    try:
        return _Measurement(session, part, inputs).outcome()
    except NotCuttable as error:
        return Outcome(resists=str(error))
    except MachineAway as error:
        raise MachineLost(str(error)) from error
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
        if part.keep:
            self._write_kept(0, part.kept_tensor if part.kept_tensor is not None else self._cut.outputs[0])
        with self._opened(part.configuration) as opened, self._last_alone() as as_fed:
            watched = [_Watched(session, tensor, part.against) for tensor in self._cut.outputs]
            runs, unlike = self._repeat(opened, watched, stateful, as_fed)
            chained = self._chained(opened) if part.variants and not stateful else {}
            delegation = opened.delegation
        variants = self._variants() if part.variants else {}
        if part.keep:
            chosen = [each for each in watched if part.kept_tensor in (None, each.tensor)]
            worst = max(chosen, key=lambda each: each.kept_error)
            before = session.read((worst.kept_run - 1) % self._inputs, worst.tensor)
            self._write_kept(worst.kept_run, worst.tensor, given=worst.kept, before=before)
        return Outcome(
            outputs=tuple(
                each.runs(variants.get(each.tensor, {}), chained.get(each.tensor)) for each in watched if each.is_seen
            ),
            is_evidence=is_evidence,
            nodes=delegation.total_nodes,
            delegated=delegation.delegated_nodes,
            taken=tuple(sorted({place for each in delegation.delegates if each.requested for place in each.operators})),
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
        with self._session.opened(cut.content, self._session.reference) as single:

            def as_fed(run: int, outputs: Sequence[Array]) -> Mapping[int, Array]:
                given = dict(zip(self._cut.inputs, self._values(run), strict=True))
                given |= dict(zip(self._cut.outputs, outputs, strict=True))
                made = single.run([given[tensor] for tensor in cut.inputs]).outputs
                return dict(zip(cut.outputs, made, strict=True))

            yield as_fed

    def _values(self, run: int) -> list[Array]:
        if self._part.fed_by_other:
            return [self._session.as_other(self._part.against, run, tensor) for tensor in self._cut.inputs]
        return [self._session.read(run, tensor) for tensor in self._cut.inputs]

    def _same_on_cpu(self) -> bool:
        """Whether the part gives by itself the bits that the whole model gave, with the reference's own kernels."""
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
        ahead = [] if stateful else self._in_blocks(opened, self._values)
        while done < self._inputs or (done < self._part.runs and time.monotonic() < end and not stateful):
            run = done % self._inputs
            if done < len(ahead):
                inference = ahead[done]
            elif stateful and done:
                with self._opened(self._part.configuration) as anew:
                    inference = anew.run(self._values(run))
            else:
                inference = opened.run(self._values(run))
            expected = as_fed(run, inference.outputs)
            for each, values in zip(watched, inference.outputs, strict=True):
                each.see(run, values, expected.get(each.tensor))
            earlier = first.setdefault(run, inference.outputs)
            if any(one.tobytes() != other.tobytes() for one, other in zip(earlier, inference.outputs, strict=True)):
                unlike.add(run)
            done += 1
        return done, len(unlike)

    def _in_blocks(self, opened: Session, values: Callable[[int], list[Array]]) -> list[Inference]:
        """A run with each of the inputs where a session takes many at once, which saves ways there; else nothing."""
        if not isinstance(opened, BlockSession):
            return []
        found: list[Inference] = []
        for start in range(0, self._inputs, opened.longest_block):
            runs = range(start, min(self._inputs, start + opened.longest_block))
            for outcome in opened.run_block([values(run) for run in runs]):
                if isinstance(outcome, InferenceError):
                    raise outcome
                found.append(outcome)
        return found

    def _chained(self, opened: Session) -> dict[int, tuple[float, float]]:
        """Run on what the parts before gave, and keep that for the parts behind; largest error and size by output."""
        found: dict[int, list[RunOff]] = {tensor: [] for tensor in self._cut.outputs}

        def fed(run: int) -> list[Array]:
            return [self._session.chained(run, tensor) for tensor in self._cut.inputs]

        ahead = self._in_blocks(opened, fed)
        for run in range(self._inputs):
            outputs = (ahead[run] if ahead else opened.run(fed(run))).outputs
            for tensor, values in zip(self._cut.outputs, outputs, strict=True):
                self._session.write(CHAIN, run, tensor, values)
                found[tensor].append(self._session.compared(tensor, values, self._session.read(run, tensor)))
        return {
            tensor: (max(run.largest for run in runs), size_beyond_a_quantum(runs, self._session.is_in_steps(tensor)))
            for tensor, runs in found.items()
        }

    def _variants(self) -> dict[int, dict[str, float]]:
        """By output: the size of what the CPU's variants differ by; one that cannot be run, or overflows, is none."""
        found: dict[int, dict[str, float]] = {tensor: {} for tensor in self._cut.outputs}
        tensors = self._cut.inputs + self._cut.outputs
        has_floats = any(self._session.forms[tensor].dtype == "float32" for tensor in tensors)
        for name in self._part.variants:
            if name == "kernels":
                if has_floats and is_xnnpack(self._part.configuration):  # reference kernels take seconds for floats
                    continue
                self._add_variant(found, name, self._cut.content, other_kernels(self._part.configuration))
            elif has_floats:
                content = self._cut.content
                rounded = content if name == "float32" else disturb_constants(content, name)[0]
                self._add_variant(found, name, rounded, self._session.reference)
        return found

    def _add_variant(
        self, found: dict[int, dict[str, float]], name: str, content: bytes, configuration: Configuration
    ) -> None:
        random = np.random.default_rng(_SEED)
        precision = "" if name == "kernels" else name
        with suppress(EvaltoolsError), self._session.opened(content, configuration) as opened:
            if configuration.delegates.requested and not opened.delegation.delegated_nodes:
                return
            seen: dict[int, list[RunOff]] = {tensor: [] for tensor in found}
            for run in range(self._inputs):
                values = [_disturbed(array, precision, random) for array in self._values(run)]
                for tensor, output in zip(self._cut.outputs, opened.run(values).outputs, strict=True):
                    expected = self._session.read(run, tensor)
                    seen[tensor].append(self._session.compared(tensor, output, expected))
            for tensor, runs in seen.items():
                size = size_beyond_a_quantum(runs, self._session.is_in_steps(tensor))
                found[tensor] |= {name: size} if math.isfinite(size) else {}

    def _write_kept(self, run: int, tensor: int, **others: Array) -> None:
        """Write the part with a run: its inputs, what was expected, and others. What crashes leaves only these two."""
        arrays: dict[str, Any] = {f"input_{each}": self._session.read(run, each) for each in self._cut.inputs}
        path = self._session.folder / self._part.keep
        arrays |= {"expected": self._session.read(run, tensor), "output": np.array(self._cut.outputs.index(tensor))}
        np.savez(path, **arrays, **others)
        path.with_suffix(".tflite").write_bytes(self._cut.content or self._session.file.read())


class _Watched:
    """The runs of one tensor, as they come."""

    def __init__(self, session: PartsSession, tensor: int, against: str = "") -> None:
        self._session = session
        self.tensor: Final = tensor
        self._against = against
        self._in_steps: Final = against in ("", CHAIN) and session.is_in_steps(tensor)
        self._seen: list[RunOff] = []
        self._by_value: dict[int, Array] = {}
        self._rounded = set(_PRECISIONS)
        self.kept_error = -1.0
        self.kept_run = 0
        self.kept: Array = np.zeros(0)

    def see(self, run: int, values: Array, expected: Array | None = None) -> None:
        """One more run with that input; ``expected`` stands for what the tensor is compared with."""
        if self._against == CHAIN:
            reference = self._session.chained(run, self.tensor)
            off = self._session.compared(self.tensor, values, reference)
        elif self._against:
            other = self._session.other(self._against, run, self.tensor)
            if other is None:
                return
            values, reference = self._session.real(self.tensor, values), other
            off = difference(values, reference)
        else:
            reference = self._session.read(run, self.tensor) if expected is None else expected
            off = self._session.compared(self.tensor, values, reference)
        self._seen.append(off)
        if off.by_value is not None:
            self._by_value[run] = off.by_value
        self._rounded = {each for each in self._rounded if is_rounded(values, each) and not is_rounded(reference, each)}
        if off.largest > self.kept_error:
            self.kept_error, self.kept_run, self.kept = off.largest, run, values

    @property
    def is_seen(self) -> bool:
        """Whether there is anything to compare the tensor with."""
        return bool(self._seen)

    def runs(self, variants: Mapping[str, float], chained: tuple[float, float] | None) -> TensorRuns:
        """Everything that was seen."""
        return TensorRuns(
            tensor=self.tensor,
            name=self._session.model.name(self.tensor),
            unit="steps" if self._in_steps else "absolute",
            largest=tuple(run.largest for run in self._seen),
            sizes=tuple(sizes(self._seen, float(self._in_steps))),
            rms=tuple(run.rms for run in self._seen),
            magnitude=max(run.magnitude for run in self._seen),
            not_finite_run=next((place for place, run in enumerate(self._seen) if run.not_finite), None),
            variants=dict(variants),
            rounded=tuple(sorted(self._rounded)),
            bias=bias(list(self._by_value.values())),
            chained=chained,
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
