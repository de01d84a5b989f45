"""What an inference diff finds out before it concludes."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from evaltools.gates.decide import LimitCheck
from evaltools.gates.verdict import OutputVerdict
from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.native_numbers import NativeError
from evaltools.metrics.output_difference import OutputDifference


def loaded_from(folder: str) -> str:
    """The source of an input that was read from a folder of saved outputs.

    >>> loaded_from("saved")
    'loaded from saved'
    """
    return f"loaded from {folder}"


class InputUsed(Struct, frozen=True):
    """An input as it was filled; ``source`` says with what.

    Random numbers were drawn from ``low`` to ``high``, ``range_from`` says by what: the flag, the native tool's rule,
    a table whose rows are selected, the model's metadata, its quantization, its first operators, a probe that
    overflowed beyond it, all numbers of the type, or the default. Null and empty where nothing was drawn.
    """

    name: str
    dtype: str
    shape: list[int]
    source: str
    low: float | None = None
    high: float | None = None
    range_from: str = ""


class Variant(Struct, frozen=True):
    """A CPU variant, or the reference in a lower precision, against the reference over the sampled runs.

    ``outputs`` is empty, and ``reason`` says why, where it could not be measured.
    """

    name: str
    flags: list[str]
    reason: str | None
    outputs: list[OutputDifference]
    boxes: BoxAgreement | None


class Repeatability(Struct, frozen=True):
    """The same configuration a second time, from the start, over ``runs`` runs.

    ``identical`` is null, and ``reason`` says why, where the second time could not be measured. ``max`` is the largest
    absolute difference of any output.
    """

    runs: int
    identical: bool | None
    max: float | None
    reason: str | None


class JudgedOutput(Struct, frozen=True):
    """One output of one configuration: the difference, and its verdict.

    ``in_boxes``: it is one of a detector's four outputs, whose elements mean nothing by themselves; boxes are judged.
    ``compared_with`` names the CPU variants of the noise floor that count for it: none that runs the same kernels, and
    none that does not count.
    """

    difference: OutputDifference
    verdict: OutputVerdict
    in_boxes: bool
    compared_with: list[str] = field(default_factory=list)


class OfOneKind(Struct, frozen=True):
    """The differences over the runs whose inputs are of one ``kind``: noise or photos."""

    kind: str
    runs: int
    outputs: list[OutputDifference]
    boxes: BoxAgreement | None


class DiffComparison(Struct, frozen=True):
    """One configuration against the reference.

    ``boxes`` and ``boxes_verdict`` stand in for the verdicts of a detector's four outputs; the verdict on all stands
    with the configuration. ``within_limits`` is null where no limit was set. ``native_errors`` has the errors by output
    where a native tool measured, which gives nothing else; ``outputs`` is empty then. ``by_kind`` separates noise from
    photos, where there are both.
    """

    configuration: str
    outputs: list[JudgedOutput]
    boxes: BoxAgreement | None
    boxes_verdict: OutputVerdict | None
    repeatability: Repeatability | None
    limits: list[LimitCheck]
    within_limits: bool | None
    native_errors: list[NativeError] = field(default_factory=list)
    by_kind: list[OfOneKind] = field(default_factory=list)


MatchedBy = Literal["output_map", "signature name", "tensor name", "shape", "values", "position"]


class OutputOrder(Struct, frozen=True):
    """Which output of the reference's model each output is compared with, by number, in the model's order.

    ``matched_by`` says how each was found; ``position``: others have the same shape. ``runs`` are those
    whose values were compared to find out; 0 where names and shapes say enough.
    """

    positions: list[int]
    matched_by: list[MatchedBy]
    runs: int = 0

    @property
    def open(self) -> list[int]:
        """The outputs that might belong to others."""
        return [place for place, by in enumerate(self.matched_by) if by == "position"]


class InferenceDiff(Struct, frozen=True):
    """Everything about an inference diff that is not about one configuration.

    ``output_order`` says which outputs of the reference's model belong to the model's, None where both sides ran the
    same one. ``noise_floor`` has the CPU variants, which were measured over ``noise_floor_runs`` runs: some spread over
    all, the others those where tests differ most.
    """

    num_runs: int
    seed: int
    inputs: list[InputUsed]
    noise_floor_runs: int
    noise_floor: list[Variant]
    comparisons: list[DiffComparison]
    output_order: OutputOrder | None = None

    @property
    def given(self) -> dict[str, str]:
        """The runs, the seed, and where each input came from."""
        inputs = {f"input {place}": used.source for place, used in enumerate(self.inputs)}
        return {"runs": str(self.num_runs), "seed": str(self.seed), **inputs}

    @property
    def nan_outputs(self) -> dict[str, int]:
        """Elements of outputs that are NaN or infinite, on either side, by configuration."""
        found = {}
        for compared in self.comparisons:
            sides = [side for each in compared.outputs for side in (each.difference.test, each.difference.reference)]
            found[compared.configuration] = sum(side.nan + side.infinite for side in sides)
        return found

    @property
    def breaks_limits(self) -> bool:
        """Whether a limit that was given as an option is broken."""
        return any(compared.within_limits is False for compared in self.comparisons)
