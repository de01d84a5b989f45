"""Runs on drawn examples: their figures, where they end, and that they go on as they began."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.execution import Execution, Shard
from evaltools.engine.journal import JOURNAL_NAME
from evaltools.errors import DataError, InferenceError, SessionEnded, UsageError
from evaltools.gates.baseline import make_baseline
from evaltools.gates.check import evidence_of
from evaltools.gates.criteria import parse_criterion
from evaltools.gates.decide import decide
from evaltools.report.tables.short_answers import answers_of
from evaltools.report.words.gates import reason_in_words
from evaltools.report.words.verdicts import verdict_in_words
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Table
from evaltools.runtime import Session
from evaltools.runtime.session import Array
from evaltools.tasks.imagenet.evaluation import prepare
from evaltools.tasks.imagenet.page import sections
from evaltools.tasks.imagenet.request import ImagenetRequest
from evaltools.tasks.imagenet.task import ImagenetOptions
from evaltools.tasks.shared.evaluation import evaluate, merge
from evaltools.tasks.shared.measuring import Observer
from evaltools.tasks.shared.options.sampling import SamplingAsked
from evaltools.tasks.shared.run_identity import RunAtPlace
from tests.command import evaltools_here
from tests.evaluation_set import CLASSES, EvaluationSet, make_evaluation_set
from tests.runtime.fake import FakeSession
from tests.tasks.imagenet.test_evaluation import IMAGE, SCORES

PICTURES = 150
SHARDS = 3


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: pytest.TempPathFactory) -> EvaluationSet:
    return make_evaluation_set(tmp_path_factory.mktemp("set"), PICTURES, 0)


class Scoring(FakeSession):
    """Scores by the brightness of a picture; flips the two best classes where they are as near as ``flips_below``."""

    def __init__(self, flips_below: float = 0.0, fails_above: float = 2.0) -> None:
        super().__init__(self._scores)
        self.inputs = (IMAGE,)  # type: ignore[misc]
        self.outputs = (SCORES,)  # type: ignore[misc]
        self.pictures = 0
        self._limits = (flips_below, fails_above)

    def _scores(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        self.pictures += 1
        lead = (float(np.abs(inputs[0]).sum()) * 10) % 1
        if lead > self._limits[1]:
            raise InferenceError("no")
        scores = np.zeros((1, CLASSES), np.float32)
        scores[0, :2] = (0.5, 0.5 + lead) if lead < self._limits[0] else (0.5 + lead, 0.5)
        return (scores,)


def asked(evaluation: EvaluationSet, limit: str, stops: bool = True, run_dir: Path | None = None) -> ImagenetRequest:
    return ImagenetRequest(
        model_file=evaluation.model,
        options=ImagenetOptions(evaluation.images, evaluation.truths, evaluation.labels),
        reference=Configuration("reference", kernels="builtin"),
        tests=(Configuration("a"),),
        label_check=False,
        sampling=SamplingAsked(parse_criterion(limit), stops),
        execution=Execution(run_dir=run_dir),
    )


def run(request: ImagenetRequest, test: Session, reference: Session | None = None) -> EvaluationResult:
    sessions = {"reference": reference or Scoring(), "a": test}
    return evaluate(prepare, request, Observer(), lambda _model, configuration: sessions[configuration.name])


def answer_of(result: EvaluationResult) -> tuple[str, int]:
    assert result.sampling is not None
    return result.sampling.answers["a"].answer, result.sampling.answers["a"].decided_after


def test_a_run_ends_when_its_limit_is_decided_and_says_what_it_knows_of_all(evaluation: EvaluationSet) -> None:
    test = Scoring(flips_below=0.04)
    whole = run(replace(asked(evaluation, "agreement >= 90 %"), sampling=None), Scoring(flips_below=0.04))
    result = run(asked(evaluation, "agreement >= 90 %"), test)
    assert answer_of(result) == ("kept", result.examples_done)
    assert result.complete
    assert result.examples_done < PICTURES
    assert result.sampling is not None
    assert len(result.sampling.drawn) == result.examples_done
    figure = result.sampling.answers["a"].figures["agreement"]
    of_all = whole.configurations[1].figures["agreement"]
    assert of_all is not None
    assert 0.9 <= figure.low <= of_all <= figure.high
    assert result.configurations[1].figures["agreement"] == figure.value
    assert result.part.comparisons[0].topk == []
    said = verdict_in_words(result.configurations[1].verdicts[0])
    assert f"limit kept (agreement >= 90 %), decided after {result.examples_done} of {PICTURES} examples" in said


def test_a_limit_that_is_broken_takes_few_examples_where_leads_tell(evaluation: EvaluationSet) -> None:
    result = run(asked(evaluation, "agreement >= 95 %"), Scoring(flips_below=0.3))
    assert answer_of(result)[0] == "broken"
    assert answer_of(result)[1] < PICTURES / 2
    assert result.configurations[1].verdicts[0].kind == "worse"


def test_all_examples_give_the_figures_of_a_run_in_order(evaluation: EvaluationSet) -> None:
    whole = run(replace(asked(evaluation, "top1 drop <= 1 point"), sampling=None), Scoring(flips_below=0.2))
    result = run(asked(evaluation, "top1 drop <= 1 point", stops=False), Scoring(flips_below=0.2))
    assert result.part.classified == whole.part.classified
    assert [replace(entry, changed=[]) for entry in result.part.comparisons] == [
        replace(entry, changed=[]) for entry in whole.part.comparisons
    ]
    assert result.sampling is not None
    assert sorted(entry.example for entry in result.sampling.drawn) == sorted(path.name for path in images(evaluation))


def images(evaluation: EvaluationSet) -> list[Path]:
    return sorted(evaluation.images.iterdir())


def test_a_run_that_was_stopped_goes_on_with_the_same_examples(evaluation: EvaluationSet, tmp_path: Path) -> None:
    request = asked(evaluation, "agreement >= 90 %", run_dir=tmp_path / "run")
    once = run(asked(evaluation, "agreement >= 90 %"), Scoring(flips_below=0.04))

    class Interrupted(Scoring):
        def _scores(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
            if self.pictures == 25:
                raise KeyboardInterrupt
            return super()._scores(inputs)

    first = Interrupted(flips_below=0.04)
    first._function = first._scores
    stopped = run(request, first)
    assert (stopped.stopped, stopped.complete, answer_of(stopped)[0]) == ("interrupted", False, "open")
    rest = Scoring(flips_below=0.04)
    reference = Scoring()
    result = run(request, rest, reference)
    assert result.sampling == once.sampling
    assert reference.pictures < PICTURES / 2
    assert rest.pictures < once.examples_done + 11


def test_examples_without_an_answer_leave_the_limit_to_all_examples(evaluation: EvaluationSet) -> None:
    result = run(asked(evaluation, "agreement >= 50 %"), Scoring(fails_above=0.95))
    assert result.examples_done == PICTURES
    assert answer_of(result) == ("kept", PICTURES)
    assert result.configurations[1].failed_examples > 0
    (said,) = answers_of(result)
    assert f"limit kept (agreement >= 50 %), decided after {PICTURES} of {PICTURES} examples" in said.sentence


def test_a_configuration_that_is_given_up_is_not_decided_and_keeps_no_other_from_ending(
    evaluation: EvaluationSet,
) -> None:
    def dies(_inputs: Sequence[Array]) -> tuple[Array, ...]:
        raise SessionEnded("it died")

    dead = Scoring()
    dead._function = dies
    request = replace(asked(evaluation, "agreement >= 90 %"), tests=(Configuration("dead"), Configuration("a")))
    sessions = {"reference": Scoring(), "dead": dead, "a": Scoring(flips_below=0.04)}
    result = evaluate(prepare, request, Observer(), lambda _model, configuration: sessions[configuration.name])
    assert answer_of(result)[0] == "kept"
    assert result.examples_done < PICTURES
    assert result.sampling is not None
    assert (result.sampling.answers["dead"].answer, result.sampling.answers["dead"].figures) == ("open", {})
    of_dead = next(answer for answer in answers_of(result) if answer.configuration.name == "dead")
    assert "limit" not in of_dead.sentence


@pytest.mark.parametrize("seed", range(1, 9))
def test_an_estimate_lies_within_its_bounds(evaluation: EvaluationSet, seed: int) -> None:
    request = asked(evaluation, "agreement >= 95 %")
    assert request.sampling is not None
    result = run(replace(request, sampling=replace(request.sampling, seed=seed)), Scoring(flips_below=0.3))
    assert result.sampling is not None
    figures = result.sampling.answers["a"].figures.values()
    assert [figure for figure in figures if not figure.low <= figure.value <= figure.high] == []


def test_a_reference_without_answers_cannot_say_what_is_drawn(evaluation: EvaluationSet) -> None:
    with pytest.raises(UsageError, match="leave --sample out"):
        run(asked(evaluation, "agreement >= 90 %"), Scoring(), Scoring(fails_above=-1.0))


@pytest.mark.parametrize(
    ("limit", "verdict", "reason"),
    [
        ("agreement >= 90 %", "pass", ""),
        ("agreement >= 80 %", "pass", ""),
        ("top1 drop <= 40 points", "pass", ""),
        ("agreement >= 96 %", "inconclusive", "too few to tell"),
        ("agreement <= 50 %", "fail", ""),
        ("top1 drop <= 5 points at 95 %", "inconclusive", "about examples like these"),
        ("distinct_answers >= 1", "inconclusive", "nothing is known of distinct_answers"),
        ("failed_examples <= 0", "pass", ""),
    ],
)
def test_gates_hold_the_bounds_of_all_examples(gated: EvaluationResult, limit: str, verdict: str, reason: str) -> None:
    found = decide(parse_criterion(limit), evidence_of(gated, gated.configurations[1]))
    assert found.verdict == verdict
    assert reason in reason_in_words(found)


@pytest.fixture(scope="module")
def gated(evaluation: EvaluationSet) -> EvaluationResult:
    return run(asked(evaluation, "agreement >= 90 %"), Scoring(flips_below=0.04))


def taking(folder: Path) -> Callable[[SamplingAsked | None], SamplingAsked]:
    def with_folder(sampling: SamplingAsked | None) -> SamplingAsked:
        assert sampling is not None
        return replace(sampling, reference_run=folder)

    return with_folder


def test_answers_of_an_earlier_reference_are_taken(evaluation: EvaluationSet, tmp_path: Path) -> None:
    before = replace(asked(evaluation, "agreement >= 90 %", run_dir=tmp_path / "before"), sampling=None)
    run(before, Scoring())
    request = asked(evaluation, "agreement >= 90 %")
    reference = Scoring()
    result = run(
        replace(request, sampling=taking(tmp_path / "before")(request.sampling)), Scoring(flips_below=0.04), reference
    )
    assert reference.pictures < 12
    assert result.sampling is not None
    once = run(request, Scoring(flips_below=0.04)).sampling
    assert replace(result.sampling, reference_run="") == once


def test_an_earlier_reference_of_other_pictures_is_refused(evaluation: EvaluationSet, tmp_path: Path) -> None:
    options = ImagenetOptions(evaluation.images, evaluation.truths, evaluation.labels, num_images=20)
    request = asked(evaluation, "agreement >= 90 %")
    run(replace(request, sampling=None, options=options, execution=Execution(run_dir=tmp_path / "few")), Scoring())
    opened = Scoring()
    with pytest.raises(UsageError, match=r"^--reference_run=.*few cannot be used: it is of something else: .*the pict"):
        run(replace(request, sampling=taking(tmp_path / "few")(request.sampling)), opened)
    assert opened.pictures == 0


@pytest.mark.parametrize("kept_bytes", [3000, 9000])
def test_an_earlier_reference_whose_journal_is_damaged_is_refused_by_its_name(
    evaluation: EvaluationSet, tmp_path: Path, kept_bytes: int
) -> None:
    request = asked(evaluation, "agreement >= 90 %")
    folder = tmp_path / "before"
    run(replace(request, sampling=None, execution=Execution(run_dir=folder)), Scoring())
    journal = folder / JOURNAL_NAME
    journal.write_bytes(journal.read_bytes()[:kept_bytes])
    with pytest.raises(UsageError, match=f"^--reference_run={folder} cannot be used: .*journal"):
        run(replace(request, sampling=taking(folder)(request.sampling)), Scoring())


def shard_of(request: ImagenetRequest, index: int, folder: Path) -> ImagenetRequest:
    return replace(request, execution=Execution(run_dir=folder / str(index), shard=Shard(index, SHARDS)))


def merged(request: ImagenetRequest, folder: Path) -> EvaluationResult:
    return merge(prepare, request, [RunAtPlace(tuple(folder / str(index) for index in range(SHARDS)))], Observer())


@pytest.mark.parametrize(
    ("limit", "flips_below", "answer"),
    [("agreement >= 75 %", 0.04, "kept"), ("agreement >= 95 %", 0.4, "broken")],
)
def test_shards_decide_each_for_its_own_examples_and_together_for_all(
    evaluation: EvaluationSet, tmp_path: Path, limit: str, flips_below: float, answer: str
) -> None:
    request = asked(evaluation, limit)
    whole = run(replace(request, sampling=None), Scoring(flips_below))
    parts = [run(shard_of(request, index, tmp_path), Scoring(flips_below)) for index in range(SHARDS)]
    result = merged(request, tmp_path)
    drawn = [entry for part in parts for entry in part.sampling.drawn]  # type: ignore[union-attr]
    assert result.sampling is not None
    assert (result.sampling.drawn, result.sampling.examples, result.sampling.shards) == (drawn, PICTURES, SHARDS)
    assert [answer_of(part)[0] for part in parts] == [answer] * SHARDS
    assert answer_of(result) == (answer, len(drawn))
    assert result.examples_done == len(drawn) < PICTURES
    for name, known in result.sampling.answers["a"].figures.items():
        of_all = whole.configurations[1].figures[name]
        assert of_all is not None
        assert known.low <= known.value <= known.high
        assert known.low <= of_all <= known.high
    gate = decide(parse_criterion(limit), evidence_of(result, result.configurations[1]))
    assert gate.verdict == {"kept": "pass", "broken": "fail"}[answer]
    (table,) = sections(result)[0].blocks
    assert isinstance(table, Table)
    assert "by each of 3 shards from its own examples" in table.below


def test_shards_that_ran_all_examples_give_the_figures_of_a_run_in_order(
    evaluation: EvaluationSet, tmp_path: Path
) -> None:
    request = asked(evaluation, "top1 drop <= 1 point", stops=False)
    whole = run(replace(request, sampling=None), Scoring(flips_below=0.2))
    for index in range(SHARDS):
        run(shard_of(request, index, tmp_path), Scoring(flips_below=0.2))
    result = merged(request, tmp_path)
    assert result.part.classified == whole.part.classified
    assert result.part.comparisons == whole.part.comparisons
    assert result.sampling is not None
    drop = result.part.classified["reference"].metrics.topk.accuracies[0]
    drop -= result.part.classified["a"].metrics.topk.accuracies[0]
    assert answer_of(result) == ("kept" if drop <= 0.01 else "broken", PICTURES)


class Dying(Scoring):
    """Ends at its first picture."""

    def _scores(self, _inputs: Sequence[Array]) -> tuple[Array, ...]:
        raise SessionEnded("it died")


@pytest.mark.parametrize(
    ("most_failed", "test", "stopped"),
    [(None, Dying, "every configuration was given up"), (2, partial(Scoring, fails_above=-1.0), "too many failed")],
)
def test_a_shard_that_stopped_stops_the_whole_as_it_is_no_use_to_go_on(
    evaluation: EvaluationSet, tmp_path: Path, most_failed: int | None, test: Callable[[], Scoring], stopped: str
) -> None:
    request = replace(asked(evaluation, "agreement >= 75 %"), max_failed_examples=most_failed)
    for index in range(SHARDS):
        run(shard_of(request, index, tmp_path), test() if index == 1 else Scoring())
    result = merged(request, tmp_path)
    assert str(result.stopped).startswith(stopped)
    assert result.sampling is not None
    assert (answer_of(result)[0], result.sampling.answers["a"].figures) == ("open", {})


def test_a_shard_without_an_answer_of_the_reference_leaves_the_limit_to_the_others(
    evaluation: EvaluationSet, tmp_path: Path
) -> None:
    request = asked(evaluation, "agreement >= 75 %")
    for index in range(SHARDS):
        own = run(shard_of(request, index, tmp_path), Scoring(), Scoring(fails_above=-1.0 if index == 1 else 2.0))
        assert own.complete == (index != 1)
    result = merged(request, tmp_path)
    assert result.sampling is not None
    assert (answer_of(result)[0], result.sampling.examples) == ("kept", PICTURES - PICTURES // SHARDS)


def test_figures_are_those_of_the_examples_that_the_limit_is_about(evaluation: EvaluationSet, tmp_path: Path) -> None:
    """Of one shard most examples have no answer, so that its agreement counts less than that of the others."""
    request = asked(evaluation, "agreement >= 95 %")
    tests: list[Callable[[], Scoring]] = [partial(Scoring, 0.4, 0.95), partial(Scoring, fails_above=0.1), Scoring]
    for index, test in enumerate(tests):
        run(shard_of(request, index, tmp_path), test())
        run(replace(shard_of(request, index, tmp_path / "in order"), sampling=None), test())
    in_order = merged(replace(request, sampling=None), tmp_path / "in order").configurations[1]
    result = merged(request, tmp_path)
    assert answer_of(result)[0] == "broken"
    assert result.sampling is not None
    known, of_all = result.sampling.answers["a"].figures["agreement"], in_order.figures["agreement"]
    assert result.examples_done < PICTURES
    assert of_all is not None
    assert known.low <= of_all <= known.high


def test_a_shard_that_is_not_finished_is_refused(evaluation: EvaluationSet, tmp_path: Path) -> None:
    def interrupted(_inputs: Sequence[Array]) -> tuple[Array, ...]:
        raise KeyboardInterrupt

    request = asked(evaluation, "agreement >= 75 %")
    for index in range(SHARDS):
        test = Scoring()
        if index == 1:
            test._function = interrupted
        run(shard_of(request, index, tmp_path), test)
    with pytest.raises(UsageError, match=f"the run in {tmp_path / '1'} is not finished; give evaltools resume"):
        merged(request, tmp_path)


def test_a_whole_run_that_is_merged_alone_is_that_run(evaluation: EvaluationSet, tmp_path: Path) -> None:
    request = asked(evaluation, "agreement >= 90 %", run_dir=tmp_path / "run")
    once = run(request, Scoring(flips_below=0.04))
    result = merge(prepare, replace(request, execution=Execution()), [RunAtPlace((tmp_path / "run",))], Observer())
    assert result.sampling == once.sampling
    assert result.part.classified == once.part.classified


def test_a_shard_that_is_missing_is_refused(evaluation: EvaluationSet, tmp_path: Path) -> None:
    request = asked(evaluation, "agreement >= 75 %")
    run(shard_of(request, 0, tmp_path), Scoring())
    with pytest.raises(UsageError, match="100 of 150 examples are in none of the 1 folders"):
        merge(prepare, request, [RunAtPlace((tmp_path / "0",))], Observer())


def test_a_page_says_what_is_known_of_all_examples(gated: EvaluationResult) -> None:
    (table,) = sections(gated)[0].blocks
    assert isinstance(table, Table)
    assert gated.sampling is not None
    assert table.caption == "Limit: agreement >= 90 %"
    assert table.below.startswith(f"{gated.examples_done} of {PICTURES} examples were run")
    assert table.rows[0][:2] == ["a", "kept"]


def test_a_result_of_drawn_examples_is_no_baseline(gated: EvaluationResult) -> None:
    with pytest.raises(DataError, match="a baseline is of all; leave --stop out"):
        make_baseline(gated)


def test_a_run_goes_on_with_the_limit_that_its_margin_gave_it(evaluation: EvaluationSet, tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    begun = evaltools_here(*evaluation.flags("--sample=informed", "--label_check=false", f"--run_dir={run_dir}"))
    assert begun.code == 0, begun.err
    other = evaltools_here("resume", str(run_dir), "--margin=0.05")
    assert other.code == 2
    assert "--limit was top1 drop <= 0.5 points, now it is top1 drop <= 5 points" in other.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--sample=informed", "--reference=none"), "draws by the reference's answers"),
        (
            ("--sample=informed", "--shard_count=2", "--run_dir=x", "--reference_run=y"),
            "has no effect with --shard_count=2",
        ),
        (("--sample=informed", "--sample_seed=-1"), "use a whole number of 0 or more"),
        (("--sample=informed", "--limit=top1 drop <= 1 point at 95 %"), "is decided with 95 % confidence"),
        (("--sample=informed", "--limit=latency_ms <= 5"), "a part of the examples decides limits such as"),
        (("--sample=informed", "--limit=top1 <= 50 %"), "a part of the examples decides limits such as"),
        (("--stop=decided",), "--sample=informed"),
        (("--sample=informed", "--reference_run=nowhere"), "is no run folder"),
        (("--sample=informed", "--reference_run=x", "--run_dir=./x"), "both flags name the same folder"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    evaluation: EvaluationSet, flags: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    completed = evaltools_here(*evaluation.flags(*flags, "--label_check=false"), cwd=tmp_path)
    assert completed.code == 2
    assert message in completed.err
