"""The kinds of outputs, each of which says what a difference means: a file for each kind, and its line here."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

from evaltools.errors import UsageError
from evaltools.metrics.scores import looks_like_scores
from evaltools.parameter import did_you_mean
from evaltools.tasks.inference_diff.output_kinds.embedding import Embedding
from evaltools.tasks.inference_diff.output_kinds.keypoints import Keypoints
from evaltools.tasks.inference_diff.output_kinds.kind import MADE_AS_SCORES, Output, OutputKind, Values
from evaltools.tasks.inference_diff.output_kinds.segmentation import Segmentation
from evaltools.tasks.inference_diff.output_kinds.vector import Vector

__all__ = ["KINDS", "SCORES", "VALUES", "Output", "OutputKind", "Segmentation", "Values", "forced_kinds", "kind_of"]

KINDS: Final[dict[str, OutputKind]] = {kind.name: kind for kind in (Keypoints(), Segmentation(), Embedding(), Vector())}
VALUES: Final = "values"
"""Nothing is known of the output: its elements alone are compared."""
SCORES: Final = "scores"
_NO_SCORES: Final = ("int32", "int64", "bool", "string")


@functools.cache
def kind_of(output: Output) -> str:
    """The kind of an output by its shape and its operators.

    >>> kind_of(Output("Identity", "float32", (1, 1, 17, 3), "CONCATENATION", ((1, 192, 192, 3),), True))
    'keypoints'
    >>> kind_of(Output("Identity", "float32", (1, 1001), "SOFTMAX", ((1, 224, 224, 3),), True))
    'scores'
    """
    for kind in KINDS.values():
        if kind.is_kind(output):
            return kind.name
    is_scores = output.dtype not in _NO_SCORES and looks_like_scores(output.shape, output.made_by in MADE_AS_SCORES)
    return SCORES if is_scores else VALUES


def forced_kinds(texts: Sequence[str], outputs: Sequence[Output], names: Sequence[Sequence[str]]) -> dict[int, str]:
    """The kinds that flags state, ``KIND`` for all outputs or ``OUTPUT=KIND``, by position.

    ``names`` are those that each output goes by.
    Raises :class:`UsageError` for a kind or an output that does not exist, and for one that does not fit.
    """
    found: dict[int, str] = {}
    for text in texts:
        name, _, kind = text.rpartition("=")
        known = (VALUES, SCORES, *KINDS)
        if kind not in known:
            raise UsageError(f"--output_kind={text}: use {', '.join(known)}.{did_you_mean(kind, known)}")
        positions = [position for position, own in enumerate(names) if not name or name in own]
        if not positions:
            shown = [own[0] for own in names]
            raise UsageError(f"--output_kind={text}: no output is called {name!r}, there is {', '.join(shown)}")
        for position in positions:
            _require_fit(text, kind, outputs[position])
            found[position] = kind
    return found


def _require_fit(text: str, kind: str, output: Output) -> None:
    if kind in KINDS and not KINDS[kind].fits(output):
        found = f"{output.name or 'without a name'} is {output.dtype}{list(output.shape)}"
        raise UsageError(
            f"--output_kind={text}: the output {found}, and {kind} needs {KINDS[kind].needs}; leave it out, or name "
            f"the output that it is about, as OUTPUT={kind}"
        )
