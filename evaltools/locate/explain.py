"""What is done with a suspect once it is found: its worst run is kept, its cause looked up, other settings tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.locate.causes import find_causes
from evaltools.locate.rows import cause_row
from evaltools.operators.bench import GivenUp
from evaltools.operators.judge import Limit, least_limit
from evaltools.operators.part import Case, Outcome
from evaltools.operators.state import Found, Subject
from evaltools.result.result import Row

_MOST_EXPLAINED: Final = 5


class Setting(Struct, frozen=True):
    """A flag of a delegate with another value, and what it means."""

    flag: str
    value: str
    delegate: str
    meaning: str


_SETTINGS: Final = (
    Setting("xnnpack_force_fp16", "false", "XNNPACK", "float32 instead of float16"),
    Setting("gpu_precision_loss_allowed", "false", "GPU", "float32 instead of float16"),
    Setting("num_interpreter_threads", "4", "XNNPACK", "the work is shared among four threads"),
)


def variants(tested: Configuration) -> list[tuple[Setting, Configuration]]:
    """The settings that differ from those of a configuration, each with the configuration that has it.

    A flag of precision is another setting only where precision is given away.

    >>> half = Configuration.from_text("half", "use_xnnpack=true xnnpack_force_fp16=true num_threads=4")
    >>> [setting.meaning for setting, _ in variants(half)]
    ['float32 instead of float16']
    """
    names = {delegate.name for delegate in tested.delegates.requested}
    flags = dict(flag.removeprefix("--").split("=", 1) for flag in tested.to_flags())
    return [
        (setting, Configuration.from_flags(tested.name, list({**flags, setting.flag: setting.value}.items())))
        for setting in _SETTINGS
        if setting.delegate in names
        and flags.get(setting.flag, "") != setting.value
        and (setting.value != "false" or tested.delegates.value(setting.flag) is True)
    ]


def sweep(tested: Configuration, outcome_of: Callable[[Configuration], Outcome], limit: Limit) -> list[Row]:
    """Whether a part is still wrong with each other setting, a row each; those that cannot be run are left out."""
    found = []
    for setting, configuration in variants(tested):
        outcome = outcome_of(configuration)
        if outcome.ran:
            wrong = any(map(limit.beyond, outcome.outputs))
            texts = {"found": "still wrong" if wrong else "right", "meaning": setting.meaning}
            found.append(Row(f"--{setting.flag}={setting.value}", "setting", texts=texts))
    return found


class Explained(Struct):
    """What is known of suspects: causes and other settings as rows, by operator.

    ``case`` is the surest one with its worst run, None without any.
    """

    parts: dict[int, list[Row]] = field(default_factory=dict)
    case: Case | None = None


def explain(subject: Subject) -> Explained:
    """Look closer at the suspects, at the surest ones first; where a limit is reached, the others stay unexplained."""
    explained, state = Explained(), subject.state
    surest = sorted(state.suspects, key=lambda suspect: suspect.status not in ("confirmed", "confirmed in context"))
    try:
        for suspect in surest[:_MOST_EXPLAINED]:
            if suspect.evidence[0].method != "taps":
                _explain(subject, suspect, explained)
    except GivenUp as error:
        state.stopped = state.stopped or str(error)
    return explained


def _explain(subject: Subject, suspect: Found, explained: Explained) -> None:
    bench, state, tested = subject.bench, subject.state, subject.configuration
    part = subject.part(suspect.first, suspect.last)
    arrays = bench.folder / f"suspect-{suspect.place}.npz"
    outcome = bench.measure(replace(part, keep=arrays.name, kept_tensor=suspect.tensor))
    runs = next((each for each in outcome.outputs if each.tensor == suspect.tensor), None)
    if runs is None and not (outcome.died and arrays.exists()):
        return
    known = state.limits.get(suspect.place, {}).get(suspect.tensor)
    limit = Limit(0.0) if runs is None else known or least_limit(runs, state.precision)
    case = Case(
        index=suspect.place,
        operator=subject.model.operators[suspect.place],
        tensor=subject.model.name(suspect.tensor),
        unit="absolute" if runs is None else runs.unit,
        tolerance=0.0 if runs is None else limit.of_element(runs),
        model=arrays.with_suffix(".tflite"),
        arrays=arrays,
        configuration=tested,
        precision=state.stated,
    )
    explained.case = explained.case or case
    if runs is not None:
        settings = sweep(tested, lambda configuration: bench.measure(replace(part, configuration=configuration)), limit)
        causes = [cause_row(each.name, each.shown_by, each.remedy, each.link) for each in find_causes(case)]
        explained.parts[suspect.place] = [*causes, *settings]
