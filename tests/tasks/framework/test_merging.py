"""What the records of run folders make together: shards of a run, and the same run at several places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

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


def two_places(tmp_path: Path, host: Part, phone: Part) -> list[RunAtPlace]:
    return [
        RunAtPlace((host.write(tmp_path / "host"),), "host"),
        RunAtPlace((phone.write(tmp_path / "phone"),), "R58M"),
    ]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_shards_make_the_whole_whatever_their_order(order: Sequence[int], tmp_path: Path) -> None:
    quiet_times = [None, *(quiet(number, test=[number], reference=[5]) for number in (1, 2))]
    parts = [Part(8, Shard(number, 3), quiet=quiet_times[number]) for number in order]
    run = merged_shards([part.write(tmp_path / str(part.shard.index)) for part in parts], 8)
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
    folders = [Part(9, Shard(number, 3), died=(3, 4, 5)).write(tmp_path / str(number)) for number in range(3)]
    outcome = merged_shards(folders, 9).outcome
    assert {name: end.after for name, end in outcome.given_up.items()} == {"test": 5}
    assert outcome.stopped == "every configuration was given up"
    assert {name: len(records) for name, records in outcome.records.items()} == {"reference": 6, "test": 6}


def test_configurations_have_the_place_behind_their_names_and_records_of_their_own(tmp_path: Path) -> None:
    run = merged(two_places(tmp_path, Part(4), Part(4, first=100)))
    assert observed(run) == {
        "reference@host": [0, 1, 2, 3],
        "test@host": [0, 1, 2, 3],
        "reference@R58M": [100, 101, 102, 103],
        "test@R58M": [100, 101, 102, 103],
    }
    assert run.merged == 2
    assert (run.outcome.examples_done, run.outcome.stopped) == (4, None)
    assert run.facts.quiet is None


def test_there_is_one_reference_that_of_the_first_place(tmp_path: Path) -> None:
    host, phone = two_places(tmp_path, Part(4), Part(4))
    for first, second in ((host, phone), (phone, host)):
        described = merged([first, second]).described
        assert [(entry.name, entry.role, entry.place) for entry in described] == [
            (f"reference@{first.name}", "reference", first.name),
            (f"test@{first.name}", "test", first.name),
            (f"reference@{second.name}", "test", second.name),
            (f"test@{second.name}", "test", second.name),
        ]


def test_without_a_reference_there_is_none_anywhere(tmp_path: Path) -> None:
    only = (DESCRIBED[1],)
    run = merged(two_places(tmp_path, Part(4, described=only), Part(4, described=only)), reference=None)
    assert {entry.role for entry in run.described} == {"test"}
    assert list(observed(run)) == ["test@host", "test@R58M"]


def test_a_place_may_be_divided_into_parts_as_it_likes(tmp_path: Path) -> None:
    phone = tuple(
        Part(7, Shard(index, 3), first=50, quiet=quiet(index, test=[10 + index])).write(tmp_path / f"phone {index}")
        for index in (2, 0, 1)
    )
    run = merged([RunAtPlace((Part(7).write(tmp_path / "host"),), "host"), RunAtPlace(phone, "R58M")], count=7)
    assert observed(run)["test@R58M"] == [50, 51, 52, 53, 54, 55, 56]
    assert observed(run)["test@host"] == [0, 1, 2, 3, 4, 5, 6]
    assert run.merged == 4
    times = times_of(run)
    assert invoke_times(times["test@R58M"]) == [12, 10, 11], "the quiet times of its parts together"
    assert invoke_times(times["test@host"]) == [0, 1, 2, 3, 4, 5, 6]


def test_inputs_are_timed_at_every_place_and_those_of_the_data_are_the_first_ones(tmp_path: Path) -> None:
    run = merged(two_places(tmp_path, Part(4, preprocessing_us=5), Part(4, preprocessing_us=900)))
    assert list(run.outcome.preprocessing_us) == [5, 5, 5, 5]
    assert {row.name: row.times[PREPROCESSING].avg_us for row in run.described} == {
        "reference@host": 5,
        "test@host": 5,
        "reference@R58M": 900,
        "test@R58M": 900,
    }


def test_a_configuration_that_could_not_run_at_one_place_is_measured_at_the_other(tmp_path: Path) -> None:
    lost = replace(DESCRIBED[1], status="not measured", reason="no GPU here")
    run = merged(two_places(tmp_path, Part(4, described=(DESCRIBED[0], lost)), Part(4)))
    assert [(entry.name, entry.status) for entry in run.described] == [
        ("reference@host", "measured"),
        ("test@host", "not measured"),
        ("reference@R58M", "measured"),
        ("test@R58M", "measured"),
    ]
    assert list(observed(run)) == ["reference@host", "reference@R58M", "test@R58M"]


def test_a_configuration_that_dies_at_one_place_is_given_up_there_alone(tmp_path: Path) -> None:
    run = merged(two_places(tmp_path, Part(6), Part(6, died=(1, 2, 3))), count=6)
    outcome = run.outcome
    assert {name: end.after for name, end in outcome.given_up.items()} == {"test@R58M": 3}
    assert (outcome.examples_done, outcome.stopped) == (6, None)
    assert observed(run)["test@host"] == [0, 1, 2, 3, 4, 5]


def test_a_run_in_which_every_test_was_given_up_is_stopped_whatever_its_reference_gave(tmp_path: Path) -> None:
    """The reference of the first place is not a test, under the name that it has there as well."""
    run = merged([RunAtPlace((Part(6, died=(1, 2, 3)).write(tmp_path / "run"),), "R58M")], count=6)
    outcome = run.outcome
    assert (outcome.stopped, outcome.examples_done) == ("every configuration was given up", 4)
    assert list(outcome.given_up) == ["test@R58M"]


# ----- latencies


def test_a_place_without_a_quiet_phase_has_the_times_of_its_pass(tmp_path: Path) -> None:
    """It had one worker: nothing else ran beside it."""
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


def test_a_configuration_without_a_single_time_in_quiet_gets_none_from_the_pass(tmp_path: Path) -> None:
    """All its runs in quiet failed; those of the pass had other workers beside them."""
    host = Part(4, quiet=quiet(reference=[10, 20], test=[]))
    assert times_of(merged(two_places(tmp_path, host, Part(4))))["test@host"] == []


# ----- what must be the same


def test_examples_that_are_missing_at_one_place_are_said(tmp_path: Path) -> None:
    for host, phone in ((Part(4), Part(4, without=[2])), (Part(4, without=[2]), Part(4))):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        with pytest.raises(UsageError, match=r"1 of 4 examples are in none of the 2 folders; give all shards, and"):
            merged(two_places(folder, host, phone))
    half = Part(4, Shard(0, 2)).write(tmp_path / "half")
    with pytest.raises(UsageError, match="2 of 4 examples are in none of"):
        merged([RunAtPlace((Part(4).write(tmp_path / "host"),), "host"), RunAtPlace((half,), "R58M")])


@pytest.mark.parametrize("trouble", ["the reference does not run", ""])
def test_nothing_is_missing_where_nothing_could_be_run(trouble: str, tmp_path: Path) -> None:
    """Its configurations say why they have no figures, and those of other places have theirs."""
    nowhere = Part(4, found=FirstLook(trouble=trouble))
    alone = merged_shards([replace(nowhere, shard=Shard(i, 2)).write(tmp_path / f"shard {i}") for i in (0, 1)], 4)
    assert (alone.missing, alone.found.trouble) == (0, trouble)
    assert not merged(two_places(tmp_path / "neither", nowhere, nowhere)).outcome.records
    for host, phone in ((nowhere, Part(4)), (Part(4), nowhere)):
        run = merged(two_places(tmp_path / str(len(list(tmp_path.iterdir()))), host, phone))
        names = {"reference@host", "test@host"} if phone is nowhere else {"reference@R58M", "test@R58M"}
        assert set(run.outcome.records) == names
        assert run.outcome.examples_done == 4
        reasons = {row.reason for row in run.described if row.name not in names}
        assert reasons == {trouble or "no test configuration can run there"}


def test_places_may_run_something_else_but_the_parts_of_one_may_not(tmp_path: Path) -> None:
    """What is installed on a telephone is not what is installed here: that is what is compared."""
    other = (ELSEWHERE, DESCRIBED[1])
    run = merged(two_places(tmp_path, Part(4), Part(4, described=other)))
    runtimes = [entry.runtime.version for entry in run.described if entry.runtime]
    assert runtimes == ["2.3.0", "2.3.0", "9.9", "2.3.0"]
    parts = [
        Part(4, Shard(0, 2)).write(tmp_path / "0"),
        Part(4, Shard(1, 2), described=other).write(tmp_path / "1"),
    ]
    with pytest.raises(
        UsageError, match=r"1 is not a shard of the run in .*0: configuration reference, its runtime was"
    ):
        merged([RunAtPlace((Part(4).write(tmp_path / "desk"),), "host"), RunAtPlace(tuple(parts), "R58M")])


def test_another_model_at_a_place_is_refused(tmp_path: Path) -> None:
    places = two_places(tmp_path, Part(4), Part(4, identity=RunIdentity({"the model": "n"})))
    with pytest.raises(UsageError, match="phone was of something else: the model was n, now it is m; restore that"):
        merged(places)
    with pytest.raises(UsageError, match="the model was n, now it is m"):
        merged([places[0], replace(places[1], flags={})])


FLAGS_HERE = {"--num_threads": "4", "--external_delegate_path": "lib.so"}
FLAGS_THERE = {"--num_threads": "4", "--external_delegate_path": "/data/lib.so", "--label_check": "false"}
OF_HERE = replace(IDENTITY, options=FLAGS_HERE, libraries={"lib.so": "123"})
OF_THERE = replace(IDENTITY, options=FLAGS_THERE, libraries={"/data/lib.so": "456"})


def place_elsewhere(tmp_path: Path, flags: Mapping[str, str] | None) -> list[RunAtPlace]:
    host, phone = two_places(tmp_path, Part(4, identity=OF_HERE), Part(4, identity=OF_THERE))
    return [host, replace(phone, flags=flags)]


def test_a_place_has_flags_of_its_own_and_its_libraries_are_not_compared(tmp_path: Path) -> None:
    """Files have other names there, and a library is one for another processor."""
    assert merged(place_elsewhere(tmp_path, FLAGS_THERE), identity=OF_HERE).outcome.examples_done == 4


def test_a_place_without_flags_of_its_own_has_those_of_this_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        merged(place_elsewhere(tmp_path, None), identity=OF_HERE)
    said = str(caught.value)
    assert "--external_delegate_path was /data/lib.so, now it is lib.so" in said
    assert "--label_check was false, now it is left out" in said
    assert "the library /data/lib.so was 456, now it is not there" in said
    assert "the model" not in said


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({**FLAGS_THERE, "--num_threads": "8"}, "--num_threads was 4, now it is 8; restore that"),
        ({**FLAGS_THERE, "--seed": "3"}, "--seed was left out, now it is 3"),
        ({"--num_threads": "4"}, "--external_delegate_path was /data/lib.so, now it is left out"),
    ],
)
def test_flags_that_a_place_was_to_repeat_and_did_not_are_named(
    flags: Mapping[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as caught:
        merged(place_elsewhere(tmp_path, flags), identity=OF_HERE)
    assert message in str(caught.value)


def test_a_run_that_never_began_has_no_identity(tmp_path: Path) -> None:
    open_journal(tmp_path / "empty").close()
    with pytest.raises(UsageError, match="ended before its first example"):
        identity_in(read_journal(tmp_path / "empty"))
    with pytest.raises(UsageError, match="is not a run folder"):
        identity_in(read_journal(tmp_path))
