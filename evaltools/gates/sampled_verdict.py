"""Whether a limit on the figure of all examples is kept, where some were drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evaltools.gates.criteria import parse_criterion
from evaltools.result.sampling import SampledAnswer, Sampling
from evaltools.result.verdict import DRAWN_EXAMPLES, Reason, Verdict, VerdictKind

_KINDS: Final[Mapping[str, VerdictKind]] = {"kept": "equivalent", "broken": "worse", "open": "not decided"}


def sampled_verdicts(sampling: Sampling, reference: str) -> dict[str, list[Verdict]]:
    """The verdict on each configuration that has the figure of the limit, held against the ``reference``."""
    limited = parse_criterion(sampling.limit, of_own_task=True).figure
    return {
        name: [_verdict(sampling, limited, answer, reference)]
        for name, answer in sampling.answers.items()
        if limited in answer.figures
    }


def _verdict(sampling: Sampling, name: str, answer: SampledAnswer, reference: str) -> Verdict:
    figure = answer.figures[name]
    numbers = {"run": answer.decided_after, "examples": sampling.examples}
    return Verdict(
        _KINDS[answer.answer],
        name,
        reference,
        change=figure.value - figure.reference,
        low=figure.low - figure.reference,
        high=figure.high - figure.reference,
        reasons=[Reason(DRAWN_EXAMPLES, numbers, {"limit": sampling.limit, "answer": answer.answer})],
    )
