"""A colour says what the verdict says: good only where something was shown."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import replace

from evaltools.report.page.sections.accuracy import tone_of, tone_of_verdict
from evaltools.result.section import Tone
from evaltools.result.verdict import Verdict, VerdictKind
from tests import results


@pytest.mark.parametrize("kind", get_args(VerdictKind))
def test_every_kind_of_verdict_has_a_colour(kind: VerdictKind) -> None:
    good = ("identical", "equivalent", "better", "fp16", "bf16", "int8")
    bad = ("worse", "diverged", "not measured")
    expected: Tone = "good" if kind in good else "bad" if kind in bad else "open"
    assert tone_of_verdict(Verdict(kind, "outputs")) == expected


def test_no_verdict_at_all_is_open() -> None:
    assert tone_of_verdict(None) == "open"


def test_what_did_not_run_is_never_good() -> None:
    same = replace(results.configuration("gpu"), verdicts=[Verdict("equivalent", "top1")])
    assert tone_of(same) == "good"
    assert tone_of(replace(same, status="not measured", reason="no driver")) == "bad"
    assert tone_of(replace(same, fallback="no driver")) == "bad"
