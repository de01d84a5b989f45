"""Everything that the journals of a run say: of one folder, of its shards, or of the same run at several places."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from evaltools.engine.execution import Shard
from evaltools.engine.facts import CONFIGURATIONS, PASS, PassFacts
from evaltools.engine.journal import Journal, read_journal
from evaltools.engine.ledger import PassOutcome, Stop, settle
from evaltools.engine.quiet_latency import pooled, time_of
from evaltools.engine.records import Records
from evaltools.errors import UsageError
from evaltools.metrics.latency import Latency, summarise_latency
from evaltools.result.device import together
from evaltools.result.execution import ExecutionUsed
from evaltools.result.facts import load_of_parts
from evaltools.result.result import PREPROCESSING, Row
from evaltools.runs.first_look import FOUND, FirstLook
from evaltools.runs.identity import WHOLE, RunAtPlace, identity_in, require_one_run
from evaltools.runs.task_run import TaskRun
from evaltools.runtime.session import Crashes
from evaltools.tasks.framework.beside import beside_fact

_NO_TEST_THERE = "no test configuration can run there"


class Recorded(Struct, frozen=True):
    """What is known of a run: ``run`` is the one that was carried out, as its task chose it.

    ``described`` are the configurations with what they ran on, ``outcome`` has the records of those that ran. ``facts``
    and ``found`` are those of all journals together, of which there are ``merged``, 0 for one alone. ``beside`` is what
    was measured beside the pass, None where nothing was. ``examples`` are those that there should be, ``damage`` says
    what of the journals cannot be read.
    """

    run: TaskRun
    described: list[Row]
    outcome: PassOutcome[Any]
    facts: PassFacts
    found: FirstLook
    examples: Sequence[int]
    beside: Any = None
    merged: int = 0
    damage: Sequence[str] = ()

    @property
    def missing(self) -> int:
        """How many examples are not finished, though they could be run."""
        outcome = self.outcome
        is_ended = outcome.stopped is not None or not self.found.can_run
        return 0 if is_ended else len(self.examples) - outcome.examples_done - outcome.examples_apart


class _AtPlace(NamedTuple):
    """The journals of a run at a place."""

    place: RunAtPlace
    journals: Sequence[Journal]


def recorded_here(run: TaskRun, journal: Journal) -> Recorded:
    """What the journal of a run, or of one of its shards, says."""
    return _recorded(run, [_AtPlace(RunAtPlace(()), [journal])])


def recorded_in(run: TaskRun, places: Sequence[RunAtPlace]) -> Recorded:
    """What the journals in run folders say; each place did all examples.

    Raises :class:`UsageError` for folders of other runs.
    """
    identity = run.identity()
    at_places = [_AtPlace(place, list(map(read_journal, place.folders))) for place in places]
    for place, journals in at_places:
        require_one_run(place, journals, identity)
    return _recorded(run, at_places)


def _recorded(stated: TaskRun, at_places: Sequence[_AtPlace]) -> Recorded:
    """The reference is that of the first place; those of others are tests."""
    first = at_places[0]
    founds = [_renamed(FOUND.required(each.journals[0]), each.place.suffix) for each in at_places]
    found = _found_together(founds)
    run = stated.as_checked(found.checked)
    parts = [(journal, each.place.suffix) for each in at_places for journal in each.journals]
    described = [entry for each in at_places for entry in _described(run, each, each is first)]
    names = [entry.name for entry in described if entry.status == "measured"]
    examples = run.request.execution.shard.numbers_of(run.example_count)
    outcome: PassOutcome[Any] = PassOutcome({name: [] for name in names})
    if any(entry.role == "test" for entry in described if entry.name in names):
        outcome = _outcome(run, parts, names, first.place.suffix, examples)
    facts = [[_facts(journal, each.place.suffix) for journal in each.journals] for each in at_places]
    beside = beside_fact(run.task).read(first.journals[0])
    return Recorded(
        run=run,
        described=described,
        outcome=outcome,
        facts=facts[0][0] if len(parts) == 1 else _together(facts, outcome, names),
        found=found,
        examples=examples,
        beside=beside,
        merged=len(parts) if len(parts) > 1 else 0,
        damage=[text for journal, _ in parts for text in journal.damage],
    )


def _renamed(found: FirstLook, suffix: str) -> FirstLook:
    return replace(found, first_run_us={name + suffix: time for name, time in found.first_run_us.items()})


def _found_together(founds: Sequence[FirstLook]) -> FirstLook:
    """What all places found; a trouble of one of several stands in its rows."""
    times = {name: time for found in founds for name, time in found.first_run_us.items()}
    trouble = founds[0].trouble if len(founds) == 1 else ""
    return replace(founds[0], can_run=any(each.can_run for each in founds), first_run_us=times, trouble=trouble)


def _facts(journal: Journal, suffix: str) -> PassFacts:
    return (PASS.read(journal) or PassFacts()).at(suffix)


def _described(run: TaskRun, at_place: _AtPlace, is_first: bool) -> list[Row]:
    """The configurations at a place, not measured where nothing could be run there."""
    place, journals = at_place
    own = CONFIGURATIONS.required(journals[0])
    found = FOUND.required(journals[0])
    if place.name and not found.can_run and not any(journal.examples() for journal in journals):
        why = found.trouble or _NO_TEST_THERE
        own = [
            replace(entry, status="not measured", reason=why) if entry.status == "measured" else entry for entry in own
        ]
    if not place.name:
        return own
    steps = run.steps
    records = Records([(journal, "") for journal in journals], len(steps.names), steps.observation_type)
    latency = summarise_latency(records.preprocessing_us(len(steps.names)))
    return [_at(entry, place, is_first, latency) for entry in own]


def _at(described: Row, place: RunAtPlace, is_first: bool, latency: Latency) -> Row:
    """A configuration under its name at a place; only the first place's reference stays a reference."""
    return replace(
        described,
        name=described.name + place.suffix,
        role=described.role if is_first else "test",
        place=place.name,
        times={PREPROCESSING: latency.native},
    )


def _outcome(
    run: TaskRun, parts: Sequence[tuple[Journal, str]], names: Sequence[str], suffix: str, examples: Sequence[int]
) -> PassOutcome[Any]:
    """The records of all journals, settled in the order of the examples."""
    steps, execution = run.steps, run.request.execution
    reference = None if run.request.reference_name is None else run.request.reference_name + suffix
    records = Records(parts, len(steps.names), steps.observation_type)
    outcome = settle(steps, names, records, reference, execution, examples)
    if outcome.stopped is not None or outcome.examples_done == len(examples) or len(parts) == 1:
        return outcome
    ended = _why_ended(run, [journal for journal, _ in parts], names, reference)
    return outcome if ended is None else settle(steps, names, records, reference, execution, examples, ended)


def _why_ended(run: TaskRun, shards: Iterable[Journal], names: Sequence[str], reference: str | None) -> Stop | None:
    """Why a shard ended before its last example; None where one is not given, or has not ended."""
    why, examples, steps = None, 0, run.steps
    for shard in shards:
        index, _, count = (identity_in(shard).shard or WHOLE).partition("/")
        own = Shard(int(index), int(count)).numbers_of(run.example_count)
        records = Records([(shard, "")], run.example_count, steps.observation_type)
        outcome = settle(steps, names, records, reference, run.request.execution, own)
        if outcome.examples_done < len(own) and outcome.stopped is None:
            return None
        why = why or outcome.stopped
        examples += len(own)
    return why if examples == run.example_count else None


def _together(by_place: Sequence[Sequence[PassFacts]], outcome: PassOutcome[Any], names: Sequence[str]) -> PassFacts:
    """The facts of several journals.

    A place without a quiet phase had one worker, so that its times are those of the pass. Times of stages and the
    memory of processes are those of other hosts, and left out.
    """
    every = [facts for place in by_place for facts in place]
    crashes: dict[str, Crashes] = {}
    not_clean: dict[str, str] = {}
    for facts in every:
        for name, found in facts.crashes.items():
            crashes[name] = crashes.get(name, Crashes()) + found
        for name, why in facts.not_clean.items():
            not_clean.setdefault(name, why)
    quiet = [facts.quiet for facts in every if facts.quiet is not None]
    pooled_times = pooled(quiet) if quiet else None
    if pooled_times is not None:
        most = max(sum(each.quiet.examples for each in place if each.quiet is not None) for place in by_place)
        pooled_times = replace(pooled_times, examples=most)
        for name in names if len(by_place) > 1 else ():
            pooled_times.taken.setdefault(name, [time_of(each) for each in outcome.records[name] if each.invokes_us])
    return PassFacts(
        is_over=all(facts.is_over for facts in every),
        interrupted=any(facts.interrupted for facts in every),
        quiet=pooled_times,
        execution=ExecutionUsed(quiet_latency_examples=None if pooled_times is None else pooled_times.examples),
        crashes=crashes,
        not_clean=not_clean,
        unsound=sum(facts.unsound for facts in by_place[0]),
        load=load_of_parts([facts.load for facts in every if facts.load is not None]),
        warnings=list(dict.fromkeys(text for facts in every for text in facts.warnings)),
        device_run=together([facts.device_run for facts in every if facts.device_run is not None]),
    )


def require_all(recorded: Recorded, folders: Sequence[Path]) -> None:
    """Raise :class:`UsageError` where examples are missing that no shard gave up."""
    if recorded.missing:
        raise UsageError(
            f"{recorded.missing} of {len(recorded.examples)} examples are in none of the {len(folders)} folders; give "
            "all shards, and finish those that were interrupted with evaltools resume"
        )
