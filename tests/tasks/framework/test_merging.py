"""What the records of run folders make together: shards of a run, and the same run at several places."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.engine.execution import Execution, Shard
from evaltools.engine.journal import open_journal, read_journal
from evaltools.engine.quiet_latency import QuietTime, invoke_times, times_with_reading
from evaltools.engine.run_folder import RunIdentity
from evaltools.errors import UsageError
from evaltools.result.facts import RuntimeUsed
from evaltools.result.result import PREPROCESSING
from evaltools.runs.conclude import latency_ratios, sum_up
from evaltools.runs.first_look import FirstLook
from evaltools.runs.identity import RunAtPlace, identity_in
from evaltools.runs.recorded import Recorded, recorded_in, require_all
from evaltools.runs.task_run import TaskRun
from tests.tasks.part_runs import DESCRIBED, IDENTITY, Part, numbers, quiet

ELSEWHERE = replace(DESCRIBED[0], runtime=RuntimeUsed("litert", "ai-edge-litert", "9.9", "default"))


class MadeUpRun:
    """The run of a task that gives numbers, and is never carried out."""

    def __init__(self, count: int, identity: RunIdentity, reference: str | None, max_crashes: int) -> None:
        self.request = SimpleNamespace(reference_name=reference, execution=Execution(max_crashes=max_crashes))
        self.task = SimpleNamespace(whole=None)
        self.steps = numbers(count)
        self.example_count = count
        self.identity = lambda: identity

    def as_checked(self, _checked: object) -> MadeUpRun:
        """It has no check."""
        return self


def merged(
    places: Sequence[RunAtPlace],
    count: int = 4,
    identity: RunIdentity = IDENTITY,
    reference: str | None = "reference",
    max_crashes: int = 3,
) -> Recorded:
    run = cast(TaskRun, MadeUpRun(count, identity, reference, max_crashes))
    recorded = recorded_in(run, places)
    require_all(recorded, [folder for place in places for folder in place.folders])
    return recorded


def merged_shards(folders: Sequence[Path], count: int, identity: RunIdentity = IDENTITY) -> Recorded:
    return merged([RunAtPlace(tuple(folders))], count, identity)


def observed(run: Recorded) -> dict[str, list[int | None]]:
    return {name: [record.observation for record in records] for name, records in run.outcome.records.items()}


def times_of(run: Recorded) -> dict[str, Sequence[QuietTime]]:
    return {name: own.times for name, own in sum_up(run.outcome, run.facts.quiet).items()}


def written(folder: Path, *parts: Part) -> tuple[Path, ...]:
    return tuple(part.write(folder / str(part.shard.index)) for part in parts)


def two_places(tmp_path: Path, host: Part, *phone: Part) -> list[RunAtPlace]:
    return [
        RunAtPlace(written(tmp_path / "host", host), "host"),
        RunAtPlace(written(tmp_path / "phone", *phone), "R58M"),
    ]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_shards_make_the_whole_whatever_their_order(order: Sequence[int], tmp_path: Path) -> None:
    quiet_times = [None, *(quiet(number, test=[number], reference=[5]) for number in (1, 2))]
    parts = [Part(8, Shard(number, 3), quiet=quiet_times[number]) for number in order]
    run = merged_shards(written(tmp_path, *parts), 8)
    outcome, found = run.outcome, run.facts.quiet
    assert observed(run)["test"] == list(range(8))
    assert (outcome.examples_done, outcome.stopped, run.merged) == (8, None, 3)
    assert run.described == list(DESCRIBED)
    assert found is not None
    assert found.examples == 4
    assert sorted((each.example, each.invokes_us, each.run_and_read_us) for each in found.taken["test"]) == [
        (number, (number,), 1000 + number) for number in (1, 2)
    ]
    assert [each.process for each in found.taken["test"]] == [0, 1], "each shard had processes of its own"
    assert times_with_reading(found.taken["reference"]) == [1005, 1005]


def test_crashes_in_a_row_are_counted_over_all_shards(tmp_path: Path) -> None:
    folders = written(tmp_path, *(Part(9, Shard(number, 3), died=(3, 4, 5)) for number in range(3)))
    outcome = merged_shards(folders, 9).outcome
    assert {name: end.after for name, end in outcome.given_up.items()} == {"test": 5}
    assert outcome.stopped == "every configuration was given up"
    assert {name: len(records) for name, records in outcome.records.items()} == {"reference": 6, "test": 6}


def test_each_place_has_its_name_its_records_and_its_times_and_the_first_has_the_reference(tmp_path: Path) -> None:
    host, phone = two_places(tmp_path, Part(4, preprocessing_us=5), Part(4, first=100, preprocessing_us=900))
    for first, second in ((host, phone), (phone, host)):
        run = merged([first, second])
        assert [(entry.name, entry.role, entry.place) for entry in run.described] == [
            (f"reference@{first.name}", "reference", first.name),
            (f"test@{first.name}", "test", first.name),
            (f"reference@{second.name}", "test", second.name),
            (f"test@{second.name}", "test", second.name),
        ]
        for place, start, preprocessing_us in (("host", 0, 5), ("R58M", 100, 900)):
            for name in (f"reference@{place}", f"test@{place}"):
                assert observed(run)[name] == [start, start + 1, start + 2, start + 3]
                assert (
                    next(row for row in run.described if row.name == name).times[PREPROCESSING].avg_us
                    == preprocessing_us
                )
        assert list(run.outcome.preprocessing_us) == [5 if first is host else 900] * 4
        assert (run.merged, run.outcome.examples_done, run.outcome.stopped, run.facts.quiet) == (2, 4, None, None)


LOST = replace(DESCRIBED[1], status="not measured", reason="no GPU here")


@pytest.mark.parametrize(
    ("host", "phone", "measured", "given_up"),
    [
        ({}, {"described": DESCRIBED[1:]}, ["test@host", "test@R58M"], {}),
        ({"described": (DESCRIBED[0], LOST)}, {}, ["reference@host", "reference@R58M", "test@R58M"], {}),
        ({}, {"died": (1, 2, 3)}, ["reference@host", "test@host", "reference@R58M", "test@R58M"], {"test@R58M": 3}),
    ],
    ids=["no reference", "not measured at one", "given up at one"],
)
def test_what_happens_at_one_place_leaves_the_other_alone(
    host: dict[str, Any], phone: dict[str, Any], measured: list[str], given_up: dict[str, int], tmp_path: Path
) -> None:
    no_reference = phone.get("described") == DESCRIBED[1:]
    host = phone if no_reference else host
    places = two_places(tmp_path, Part(6, **host), Part(6, **phone))
    run = merged(places, 6, reference=None if no_reference else "reference")
    assert list(observed(run)) == measured
    assert {row.name for row in run.described if row.status == "measured"} == {*measured}
    assert no_reference == ({row.role for row in run.described} == {"test"})
    assert {name: end.after for name, end in run.outcome.given_up.items()} == given_up
    assert (run.outcome.examples_done, run.outcome.stopped) == (6, None)
    assert {tuple(observed(run)[name]) for name in measured if name not in given_up} == {(0, 1, 2, 3, 4, 5)}


def test_a_run_in_which_every_test_was_given_up_is_stopped_whatever_its_reference_gave(tmp_path: Path) -> None:
    """The reference of the first place is not a test, under the name that it has there as well."""
    run = merged([RunAtPlace(written(tmp_path, Part(6, died=(1, 2, 3))), "R58M")], count=6)
    outcome = run.outcome
    assert (outcome.stopped, outcome.examples_done) == ("every configuration was given up", 4)
    assert list(outcome.given_up) == ["test@R58M"]


# ----- latencies


def test_a_place_may_be_divided_into_parts_whose_quiet_times_are_taken_together(tmp_path: Path) -> None:
    phone = [Part(7, Shard(index, 3), first=50, quiet=quiet(index, test=[10 + index])) for index in (2, 0, 1)]
    run = merged(two_places(tmp_path, Part(7), *phone), count=7)
    assert observed(run)["test@R58M"] == [50, 51, 52, 53, 54, 55, 56]
    assert run.merged == 4
    times = times_of(run)
    assert invoke_times(times["test@R58M"]) == [12, 10, 11]
    assert invoke_times(times["test@host"]) == [0, 1, 2, 3, 4, 5, 6]


def test_a_place_without_a_quiet_phase_has_the_times_of_its_pass(tmp_path: Path) -> None:
    """It had one worker: nothing else ran beside it. A configuration without a single time in quiet gets none."""
    host = Part(4, quiet=quiet(reference=[10, 20], test=[30, 40]))
    run = merged(two_places(tmp_path, host, Part(4, first=100)))
    assert run.facts.quiet is not None
    assert run.facts.quiet.examples == 2
    times = times_of(run)
    assert {name: invoke_times(own) for name, own in times.items()} == {
        "reference@host": [10, 20],
        "test@host": [30, 40],
        "reference@R58M": [100, 101, 102, 103],
        "test@R58M": [100, 101, 102, 103],
    }
    (ratio,) = latency_ratios(times, [("test@host", "test@R58M")]).values()
    assert ratio.pairs == 2, "those of the same examples"
    assert ratio.ratio == pytest.approx(np.median([100, 101]) / np.median([30, 40]))
    assert times_with_reading(times["test@host"]) == [1030, 1040]
    assert times_with_reading(times["test@R58M"]) == [101, 102, 103, 104], "a reading takes 1"
    untimed = replace(host, quiet=quiet(reference=[10, 20], test=[]))
    assert times_of(merged(two_places(tmp_path / "untimed", untimed, Part(4))))["test@host"] == []


# ----- what must be the same


@pytest.mark.parametrize("trouble", ["the reference does not run", ""])
def test_nothing_is_missing_where_nothing_could_be_run(trouble: str, tmp_path: Path) -> None:
    """Its configurations say why they have no figures, and those of other places have theirs."""
    nowhere = Part(4, found=FirstLook(trouble=trouble))
    alone = merged_shards(written(tmp_path, *(replace(nowhere, shard=Shard(index, 2)) for index in (0, 1))), 4)
    assert (alone.missing, alone.found.trouble) == (0, trouble)
    assert not merged(two_places(tmp_path / "neither", nowhere, nowhere)).outcome.records
    for host, phone in ((nowhere, Part(4)), (Part(4), nowhere)):
        run = merged(two_places(tmp_path / str(len(list(tmp_path.iterdir()))), host, phone))
        names = {"reference@host", "test@host"} if phone is nowhere else {"reference@R58M", "test@R58M"}
        assert set(run.outcome.records) == names
        assert run.outcome.examples_done == 4
        reasons = {row.reason for row in run.described if row.name not in names}
        assert reasons == {trouble or "no test configuration can run there"}


FLAGS_HERE = {"--num_threads": "4", "--external_delegate_path": "lib.so"}
FLAGS_THERE = {"--num_threads": "4", "--external_delegate_path": "/data/lib.so", "--label_check": "false"}
OF_HERE = replace(IDENTITY, options=FLAGS_HERE, libraries={"lib.so": "123"})
OF_THERE = replace(IDENTITY, options=FLAGS_THERE, libraries={"/data/lib.so": "456"})
OTHER_RUNTIME = (ELSEWHERE, DESCRIBED[1])
OTHER_MODEL = RunIdentity({"the model": "n"})


def test_places_may_have_other_runtimes_files_and_libraries(tmp_path: Path) -> None:
    """What is installed on a telephone, for another processor and under other names, is what is compared."""
    host, phone = two_places(tmp_path, Part(4, identity=OF_HERE), Part(4, identity=OF_THERE, described=OTHER_RUNTIME))
    run = merged([host, replace(phone, flags=FLAGS_THERE)], identity=OF_HERE)
    assert [row.runtime.version for row in run.described if row.runtime] == ["2.3.0", "2.3.0", "9.9", "2.3.0"]


@pytest.mark.parametrize(
    ("host", "phone", "flags", "messages"),
    [
        (Part(4), [Part(4, without=[2])], {}, [r"1 of 4 examples are in none of the 2 folders; give all shards, and"]),
        (Part(4, without=[2]), [Part(4)], {}, [r"1 of 4 examples are in none of the 2 folders"]),
        (Part(4), [Part(4, Shard(0, 2))], {}, ["2 of 4 examples are in none of"]),
        (
            Part(4),
            [Part(4, Shard(0, 2)), Part(4, Shard(1, 2), described=OTHER_RUNTIME)],
            {},
            [r"1 is not a shard of the run in .*0: configuration reference, its runtime was"],
        ),
        (
            Part(4),
            [Part(4, identity=OTHER_MODEL)],
            None,
            ["was of something else: the model was n, now it is m; restor"],
        ),
        (Part(4), [Part(4, identity=OTHER_MODEL)], {}, ["the model was n, now it is m"]),
        (
            Part(4, identity=OF_HERE),
            [Part(4, identity=OF_THERE)],
            None,
            [
                "--external_delegate_path was /data/lib.so, now it is lib.so",
                "--label_check was false, now it is left out",
                "the library /data/lib.so was 456, now it is not there",
            ],
        ),
        *(
            (Part(4, identity=OF_HERE), [Part(4, identity=OF_THERE)], flags, [message])
            for flags, message in (
                ({**FLAGS_THERE, "--num_threads": "8"}, "--num_threads was 4, now it is 8; restore that"),
                ({**FLAGS_THERE, "--seed": "3"}, "--seed was left out, now it is 3"),
                ({"--num_threads": "4"}, "--external_delegate_path was /data/lib.so, now it is left out"),
            )
        ),
    ],
)
def test_places_with_other_examples_models_or_flags_than_they_were_to_have_are_refused(
    host: Part, phone: list[Part], flags: Mapping[str, str] | None, messages: list[str], tmp_path: Path
) -> None:
    here, there = two_places(tmp_path, host, *phone)
    with pytest.raises(UsageError) as caught:
        merged([here, replace(there, flags=flags)], identity=host.identity)
    for message in messages:
        assert re.search(message, str(caught.value))
    assert ("the model" in str(caught.value)) == (phone[0].identity == OTHER_MODEL)


def test_a_run_that_never_began_has_no_identity(tmp_path: Path) -> None:
    open_journal(tmp_path / "empty").close()
    with pytest.raises(UsageError, match="ended before its first example"):
        identity_in(read_journal(tmp_path / "empty"))
    with pytest.raises(UsageError, match="is not a run folder"):
        identity_in(read_journal(tmp_path))
