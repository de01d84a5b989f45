"""The short answers below all figures: the same or not, how sure, how fast, what ran it, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from rich.console import Console

from evaltools.report.tables.cells import NO_LATENCY, Said, device_text, print_said, print_steps, speed, times_as_fast
from evaltools.report.words.next_commands import next_command, ran_on_devices
from evaltools.report.words.verdicts import (
    change_in_words,
    kind_in_words,
    reasons_in_words,
    score_change_in_words,
)
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.fastest_cpu import fastest_on_cpu, runs_on_cpu
from evaltools.result.places import reference_of
from evaltools.result.verdict import Verdict
from evaltools.task_kind import kind_of, metric_named

if TYPE_CHECKING:
    from evaltools.result.benchmark import BenchmarkRow

_BAD: Final = ("worse", "diverged", "not measured")
_OF_OUTPUTS: Final = "outputs"
_DOCTOR: Final = "evaltools doctor says what runs on this machine, and what is missing for the rest"
_BESIDE_XNNPACK: Final = (
    '--config "xnnpack: use_xnnpack=true" beside it says whether it is faster than what apps use without it'
)
_DEVICES: Final = "evaltools device list says what the devices are, and whether they can be used"
_CRASHED: Final = ("process of this configuration died", "was ended")
"""What is said of a process that crashed or hung."""
_REFUSED: Final = ("failed to delegate", "Delegate) failed to prepare")
"""What the runtime reports where a delegate accepts an operator, and then refuses it."""
_OF_THE_MODEL: Final = ("failed to prepare", "took none of the", "unresolved custom op")
"""What is reported where the model is the reason, and not this machine."""
SEARCH: Final = "evaltools locate "
"""How a step begins that looks for an operator."""
WITH_REASON: Final = ("not decided", "the reference is the odd one out")
"""Verdicts on outputs whose first reason says what would decide, or what to do."""
_SETTLED: Final = ("identical", "equivalent", "better", "not measured")


class Answer(Struct, frozen=True):
    """What is said of a configuration; ``judged`` stands alone where it was not compared.

    Where it was not measured, ``why`` says why not. ``fast`` is empty where no speed is known. ``next_steps`` are
    commands, or sentences about them.
    """

    configuration: ConfigurationResult
    judged: str
    why: str = ""
    fast: str = ""
    ran: str = ""
    not_clean: str = ""
    next_steps: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """All of it but what to do next."""
        judged = f"{self.judged}: {self.why}" if self.why else self.judged
        return "; ".join(text for text in (judged, self.fast, self.ran, self.not_clean) if text)


def print_answers(result: EvaluationResult, console: Console, with_reasons: bool) -> None:
    """One sentence per configuration that was held against another, or was not measured; then what to do next.

    Without reasons why a configuration could not be opened, as those stand above all figures.
    """
    answers = answers_of(result, with_reasons)
    if answers:
        console.print()
    print_said([Said(answer.configuration.name, answer.sentence, _style(answer)) for answer in answers], console)
    print_steps((step for answer in answers for step in answer.next_steps), console)


def _style(answer: Answer) -> str:
    verdict = answer.configuration.verdict
    is_bad = answer.configuration.status == "not measured" or bool(answer.not_clean)
    is_bad = is_bad or (verdict is not None and verdict.kind in _BAD)
    return "bold red" if is_bad else "bold"


def answers_of(result: EvaluationResult, with_reasons: bool = True) -> list[Answer]:
    """An answer for each configuration that was compared with another, should have been, or was not measured.

    Without reasons why a configuration could not be opened, where those stand elsewhere.
    """
    return [_answer(result, entry, with_reasons) for entry in result.configurations if _is_asked_for(result, entry)]


def _is_asked_for(result: EvaluationResult, configuration: ConfigurationResult) -> bool:
    if configuration.verdict is not None or configuration.status == "not measured":
        return True
    return configuration.role == "test" and reference_of(configuration, result.configurations) is not None


def _answer(result: EvaluationResult, configuration: ConfigurationResult, with_reason: bool) -> Answer:
    steps = tuple(after_evaluation(result, configuration))
    if configuration.status == "not measured":
        is_known = configuration.runtime is None and not with_reason
        if is_known:
            return Answer(configuration, "not measured, as said above", next_steps=steps)
        return Answer(configuration, "not measured", configuration.reason or "", next_steps=steps)
    verdict = configuration.verdict
    if verdict is None:
        text = _unjudged(reference_of(configuration, result.configurations))
        return Answer(configuration, text, next_steps=steps)
    if verdict.kind == "not measured":
        return Answer(configuration, "not measured", reasons_in_words(verdict.reasons), next_steps=steps)
    against = next(entry for entry in result.configurations if entry.name == verdict.against)
    ratio = speed(configuration, against, result.latency_comparisons)
    fast = f"{ratio} the speed of {against.name}{_beside_cpu(result, configuration, against)}" if ratio else ""
    fast = NO_LATENCY if configuration.is_emulated else fast
    how = configuration.crashes_of_runs or "as a warning says"
    not_clean = f"NOT CLEAN: {how}" if configuration.not_clean else ""
    judged, ran = judged_in_words(verdict), ran_in_words(configuration)
    return Answer(configuration, judged, "", fast, ran, not_clean, steps)


def _beside_cpu(result: EvaluationResult, configuration: ConfigurationResult, against: ConfigurationResult) -> str:
    """How fast what runs on no CPU is beside the fastest on it, where another configuration is that."""
    cpu, ratio = fastest_on_cpu(result.configurations, configuration.place), configuration.latency_cpu_ratio
    if cpu is None or not ratio or cpu is against or runs_on_cpu(configuration):
        return ""
    return f", {times_as_fast(1 / ratio)} that of {cpu.name}, the fastest on the CPU"


def _unjudged(reference: ConfigurationResult | None) -> str:
    """Why a configuration that was measured was not compared with another."""
    if reference is None or reference.status == "measured":
        return "not decided: there is no answer that both gave"
    return f"not decided: {reference.name} was not measured"


def judged_in_words(verdict: Verdict) -> str:
    """The verdict in words; its reasons stand with the figures, but for the one that says why nothing is decided."""
    if verdict.metric == _OF_OUTPUTS:
        kind = kind_in_words(verdict.kind)
        why = reasons_in_words(verdict.reasons[:1]) if verdict.kind in WITH_REASON else ""
        return f"{kind}: {why}" if why else kind
    metric = metric_named(verdict.metric)
    if metric is None or metric.is_of_own_task:
        return f"{verdict.metric} {score_change_in_words(verdict)}"
    return f"{metric.heading or metric.name} {change_in_words(verdict)}"


def ran_in_words(configuration: ConfigurationResult) -> str:
    """Which delegates ran how much of the model."""
    if configuration.fallback:
        return "FALLBACK to the CPU"
    proof = configuration.delegation
    if not configuration.delegates:
        return "its outputs were loaded" if proof is None else "on the CPU without delegates"
    names = ", ".join(f"{entry.name}{device_text(entry.device, entry.is_cpu)}" for entry in configuration.delegates)
    return f"{names} ({'nodes not told' if proof is None else f'{proof.delegated_nodes} of {proof.total_nodes} nodes'})"


def after_evaluation(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """What answers the question that a configuration leaves open; nothing where none is."""
    steps = list(where_it_did_not_run(configuration, result.model.file, result.environment.command))
    verdict = configuration.verdict
    if configuration.status == "measured" and verdict is not None and verdict.kind not in _SETTLED:
        steps += kind_of(result.task).report.next_steps(result, configuration)
    if _is_beside_plain_kernels_alone(result, configuration):
        steps.append(_BESIDE_XNNPACK)
    return steps


def _is_beside_plain_kernels_alone(result: EvaluationResult, configuration: ConfigurationResult) -> bool:
    """Whether the speed of an accelerator is known beside kernels alone that no app would use in its place."""
    cpu = fastest_on_cpu(result.configurations, configuration.place)
    is_on_cpu = configuration.fallback is not None or runs_on_cpu(configuration)
    return configuration.latency_cpu_ratio is not None and not is_on_cpu and cpu is not None and not cpu.delegates


def where_it_did_not_run(
    entry: ConfigurationResult | BenchmarkRow, model_file: str, typed: Sequence[str]
) -> Iterator[str]:
    """What says why it did not run, not all of it, or crashed; of what the ``typed`` command ran on devices, there."""
    on_devices = ran_on_devices(typed)
    reason = (entry.reason or "") if entry.status != "measured" and entry.runtime is None else ""
    if not on_devices and any(text in reason for text in _REFUSED):
        yield f"{next_command('locate', model_file, entry.flags)} says which operator it refuses"
    elif entry.fallback or any(text in reason for text in (*_OF_THE_MODEL, *_REFUSED)):
        yield f"{next_command('inspect', model_file, [])} says what delegates take of the model, and what not"
    elif not on_devices and _has_crashed(entry):
        yield f"{next_command('locate', model_file, entry.flags)} says in which operator it crashes"
    elif entry.status != "measured" and entry.runtime is None:
        yield _DEVICES if on_devices else _DOCTOR


def _has_crashed(entry: ConfigurationResult | BenchmarkRow) -> bool:
    """Whether its process died, while the model was loaded or in a run."""
    crashes = getattr(entry, "crashes", 0)
    return bool(crashes) or (entry.status != "measured" and any(text in (entry.reason or "") for text in _CRASHED))
