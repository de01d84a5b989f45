"""Delegates by kind of model, against the document's table written out again."""

from __future__ import annotations

import pytest

from evaltools.model.kind import KINDS, support_of

ROWS = {
    "float32": ["GPU", "NNAPI", "Core ML"],
    "float16 weights": ["GPU", "Core ML"],
    "dynamic range": ["GPU", "NNAPI"],
    "full integer": ["GPU", "NNAPI", "Hexagon"],
    "quantisation-aware training": ["GPU", "NNAPI", "Hexagon"],
}


@pytest.mark.parametrize("kind", ROWS)
def test_the_document_says_which_delegates_fit(kind: str) -> None:
    assert [entry.delegate for entry in support_of(kind) if entry.supported] == ROWS[kind]


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(ROWS)))
def test_of_other_kinds_nothing_is_known(kind: str) -> None:
    assert {entry.supported for entry in support_of(kind)} == {None}


@pytest.mark.parametrize(("kind", "is_said"), [("float32", True), ("dynamic range", True), ("full integer", False)])
def test_a_float_model_on_a_delegate_for_8_bits_is_said_to_run_on_the_cpu(kind: str, is_said: bool) -> None:
    (hexagon,) = (entry for entry in support_of(kind) if entry.delegate == "Hexagon")
    assert ("runs on the CPU" in hexagon.remark) == is_said
