"""The colours of verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evaltools.result.evaluation import ConfigurationResult
from evaltools.result.section import Tone
from evaltools.result.verdict import Verdict

_OF_KINDS: Final[Mapping[str, Tone]] = {
    "equivalent": "good", "better": "good", "fp16": "good", "bf16": "good", "int8": "good",
    "worse": "bad", "diverged": "bad", "not measured": "bad",
    "not decided": "open", "not judged": "open",
}  # fmt: skip


def tone_of_verdict(verdict: Verdict | None) -> Tone:
    """The colour of a verdict, that of an open question where there is none."""
    return "open" if verdict is None else _OF_KINDS[verdict.kind]


def tone_of(configuration: ConfigurationResult) -> Tone:
    """The colour of a configuration's own verdict; one that was not measured is never good."""
    if configuration.status == "not measured" or configuration.fallback or configuration.not_clean:
        return "bad"
    return tone_of_verdict(configuration.verdict)
