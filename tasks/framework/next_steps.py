"""What answers the question that a verdict on answers leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.gates.accuracy_verdict import RESTS_ON_TWO
from evaltools.known_tasks import task_command
from evaltools.metrics.means import FEWEST_DIFFERING, FEWEST_UNEQUAL
from evaltools.metrics.power import POWER
from evaltools.report.words.next_steps import next_command, stated
from evaltools.result.result import WORST_EXAMPLE, Result, Row, next_step
from evaltools.result.section import Note
from evaltools.result.verdict import Verdict
from evaltools.tasks.framework.common_options import PICTURES

_OF_PICTURES: Final = ("normalization", "channel_order", "input_layout")


def next_steps(result: Result, configuration: Row) -> list[Note]:
    """How far the outputs are apart of a configuration whose answers are worse; what decides an open verdict."""
    if configuration.verdict is None:
        return []
    if configuration.verdict.is_open:
        decision = _to_a_decision(result, configuration, configuration.verdict)
        return [next_step(decision)] if decision else []
    typed, worst = result.environment.command, configuration.texts.get(WORST_EXAMPLE, "")
    others = [f"--reference_model_file={model.file}" for model in result.other_models]
    flags = [*others, *configuration.flags, *_same_pictures(typed, bool(worst))]
    command = next_command("diff", result.model.file, flags, typed)
    text = "says how far the outputs themselves are apart"
    return [next_step(f"{text}; {worst} loses most" if worst else text, command)]


def _same_pictures(typed: Sequence[str], is_one_named: bool) -> list[str]:
    """How pictures were given to the model, if that was stated, and the pictures, also where one of them is named."""
    how = list(stated(typed, _OF_PICTURES))
    folders = [word.partition("=")[2] for word in stated(typed, PICTURES)]
    return [*(f"--input_images={folder}" for folder in folders[:1]), *how] if how or is_one_named else []


def _to_a_decision(result: Result, configuration: Row, verdict: Verdict) -> str:
    """How many examples would decide, as far as that is known; nothing where the verdict says what is missing."""
    has_pictures = "num_images" in task_command(result.command).parameters
    limited = ", without --num_images" if any(stated(result.environment.command, ["num_images"])) else ""
    more = f"more pictures (--images=FOLDER{limited})" if has_pictures else "more examples"
    finished = f"this run had {configuration.finished_examples}"
    if verdict.examples_needed is not None:
        cases = f"{100 * POWER:g} % of cases{_whether(configuration, verdict)}"
        return f"give it {more}: about {verdict.examples_needed} decide in {cases}, {finished}"
    if verdict.fewest_examples is not None:
        return f"give it {more}: {verdict.fewest_examples} are the fewest, {finished}"
    if verdict.low is None and verdict.differing is not None:
        return f"give it {more}, {finished}; an interval needs {FEWEST_UNEQUAL} that differ"
    if verdict.low is None and verdict.kind == "not decided":
        return ""
    if RESTS_ON_TWO in verdict.why:
        return f"give it {more}, {finished}: two examples make too much of what varies"
    if verdict.differing is not None and verdict.differing < FEWEST_DIFFERING:
        return f"give it {more}, {finished}; too few of them differ to say how many decide"
    return "no number of such examples is known to decide it; a wider --margin may, and so may a limit (evaltools gate)"


def _whether(configuration: Row, verdict: Verdict) -> str:
    """What they decide: whether the one metric changed by more than counts as none."""
    figure = configuration.figures.get(verdict.metric)
    if figure is None or not verdict.margin:
        return ""
    margin = f"{100 * verdict.margin:g} points" if figure.is_share else f"{verdict.margin:.3g}"
    return f" whether {figure.heading or verdict.metric} of {configuration.name} changed by less than {margin}"
