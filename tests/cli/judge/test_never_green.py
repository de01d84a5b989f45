"""What docs/gates.md says is never green: one result for each situation, with its exit code and every output."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.result.facts import FailedExample
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result
from tests.command import Completed, evaltools_here
from tests.gates.test_compare import GOOD, measured
from tests.limits import limits_in, worst_in
from tests.results import earlier, row_with

MADE = measured(GOOD)
OUTPUTS = ("--junit=j.xml", "--markdown=m.md", "--badge=b.json", "--json=o.json")


def fast(**changes: Any) -> Result:
    """The result with other facts of its test configuration."""
    reference, test = MADE.rows
    return replace(MADE, rows=[reference, row_with(test, **changes)])


def reference(**changes: Any) -> Result:
    first, test = MADE.rows
    return replace(MADE, rows=[row_with(first, **changes), test])


def data(**changes: Any) -> Result:
    return replace(MADE, given={**MADE.given, **changes})


def with_nan(name: str, count: int) -> Result:
    entries = [row_with(each, nan_outputs=count) if each.name == name else each for each in MADE.rows]
    return replace(MADE, rows=entries)


def with_junk(made: Result, count: int) -> Result:
    """The result with so many more pictures that are none."""
    return replace(
        made,
        failed=[FailedExample(f"{number}.jpg", None, "input", "is not a picture") for number in range(count)],
        rows=[row_with(each, failed_examples=count) for each in made.rows],
        examples_done=made.examples_done + count,
        example_count=made.example_count + count,
    )


ALONE: dict[str, tuple[Result, str]] = {
    "37 of 200 pictures are none": (with_junk(measured(GOOD[:163]), 37), "37 of 200"),
    "all outputs are NaN": (with_nan("fast", 200), "200 of its outputs are NaN"),
    "a process crashed and was started again": (fast(crashes=2, not_clean="crashed 2 times in 200 runs"), "crashed 2"),
    "a delegate fell back to the CPU": (fast(fallback="no GPU"), "no GPU"),
    "a configuration was not measured": (fast(status="not measured", reason="no such library"), "no such library"),
    "the run was interrupted": (replace(MADE, complete=False, stopped="interrupted"), "interrupted"),
    "one shard of twenty": (data(shard="3/20"), "shard 3/20"),
    "the reference crashed": (reference(crashes=2, not_clean="crashed twice"), "the reference: not clean"),
    "the reference has NaN": (with_nan("reference", 1), "the reference: 1 of its outputs"),
}
AGAINST: dict[str, tuple[Result, str]] = {
    "other pictures": (data(pictures="others"), "pictures: others then, pictures now"),
    "three pictures": (measured([0, 0, 0]), "examples: 3 then, 200 now"),
    "another normalization": (data(normalization="symmetric"), "normalization: symmetric then, native now"),
    "other labels": (data(**{"labels of the model": "ff"}), "labels of the model: ff then, 00 now"),
    "another ground truth": (data(**{"ground truth": "ff"}), "ground truth: ff then, 00 now"),
    "a configuration that was not measured": (fast(status="not measured", reason="no GPU"), "no GPU"),
    "a configuration of another name": (fast(name="gpu"), "no such configuration"),
    "a shard": (data(shard="3/20"), "shard 3/20"),
    "an interrupted run": (replace(MADE, complete=False, stopped="interrupted"), "interrupted"),
    "lost examples": (with_junk(MADE, 1), "1 of 201 examples failed"),
}


def written(folder: Path, **results: Result) -> None:
    """Write results; those that are not ``new`` were measured earlier."""
    for name, result in results.items():
        made = result if name == "new" else earlier(result)
        placed = replace(made, environment=replace(made.environment, folder=str(folder)))
        (folder / f"{name}.json").write_bytes(encode_json(placed))


def gate(folder: Path, *words: str) -> Completed:
    return evaltools_here("gate", "new.json", *words, *OUTPUTS, cwd=folder)


def everywhere(folder: Path, completed: Completed, said: str) -> None:
    """A sentence stands on stdout and in each file that has room for one."""
    flat = " ".join(completed.out.split())
    assert said in flat
    assert said in (folder / "m.md").read_text().replace("\\", "")
    assert said in (folder / "j.xml").read_text()


@pytest.mark.parametrize(("made", "said"), ALONE.values(), ids=ALONE)
def test_a_result_that_is_not_whole_or_not_clean_is_not_measured(made: Result, said: str, tmp_path: Path) -> None:
    written(tmp_path, new=made)
    completed = gate(tmp_path, "--limit=top1 drop <= 50 points", "--limit=agreement >= 1 %")
    assert completed.code == 3
    everywhere(tmp_path, completed, said)
    assert completed.out.splitlines()[-1] == "2 limits, 0 measured, 0 kept"
    assert worst_in(tmp_path / "o.json") == "not measured"
    assert json.loads((tmp_path / "b.json").read_text())["color"] != "brightgreen"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("37 of 200 pictures are none", "allow_failed_examples = 37"),
        ("all outputs are NaN", "allow_nan_outputs = 200"),
        ("a process crashed and was started again", "allow_crashes = 2"),
        ("the reference crashed", "allow_crashes = 2"),
    ],
)
def test_what_a_gate_allows_by_name_is_judged(name: str, key: str, tmp_path: Path) -> None:
    made, said = ALONE[name]
    written(tmp_path, new=made)
    (tmp_path / "gates.toml").write_text(f'[[gates]]\n{key}\nlimits = ["top1 >= 50 %"]\n')
    assert gate(tmp_path).code == 0
    fewer = key.rpartition(" ")[0] + " 1"
    (tmp_path / "gates.toml").write_text(f'[[gates]]\n{fewer}\nlimits = ["top1 >= 50 %"]\n')
    completed = gate(tmp_path)
    assert completed.code == 3
    assert said in completed.out
    assert f"a gate with {key} allows it" in " ".join(completed.out.split())


@pytest.mark.parametrize(("old", "said"), AGAINST.values(), ids=AGAINST)
def test_an_earlier_result_that_cannot_be_compared_with_shows_nothing(old: Result, said: str, tmp_path: Path) -> None:
    written(tmp_path, new=MADE, old=old)
    completed = gate(tmp_path, "--against=old.json")
    assert completed.code == 3
    everywhere(tmp_path, completed, said)


@pytest.mark.parametrize("edited", [{}, {"warnings": ["edited"]}])
def test_a_copy_of_the_earlier_result_is_refused(edited: dict[str, Any], tmp_path: Path) -> None:
    """Also one in which something was edited that is no record."""
    written(tmp_path, new=MADE)
    copied = json.loads((tmp_path / "new.json").read_text()) | edited
    (tmp_path / "old.json").write_text(json.dumps(copied))
    completed = gate(tmp_path, "--against=old.json")
    assert completed.code == 2
    assert "the result of new is a copy of old.json: both began at now and have the same records" in completed.err
    assert worst_in(tmp_path / "o.json") == "not measured"


@pytest.mark.parametrize("place", ["models/m.tflite", "{folder}/models/m.tflite"])
def test_a_model_is_looked_for_in_another_checkout_and_is_known_by_its_content(place: str, tmp_path: Path) -> None:
    """The result was made in a checkout that is gone."""
    content = b"the model"
    first, second = tmp_path / "first", tmp_path / "second"
    model = replace(MADE.model, file=place.format(folder=first), sha256=hashlib.sha256(content).hexdigest())
    made = replace(MADE, models=[model], environment=replace(MADE.environment, folder=str(first)))
    (second / "models").mkdir(parents=True)
    (second / "models" / "m.tflite").write_bytes(content)
    (second / "new.json").write_bytes(encode_json(made))
    elsewhere = replace(made.environment, folder="/elsewhere")
    moved = replace(model, file="/elsewhere/m.tflite")
    (second / "old.json").write_bytes(encode_json(earlier(replace(made, models=[moved], environment=elsewhere))))
    same = gate(second, "--against=old.json")
    assert (same.code, "model" in same.out) == (0, False)
    (second / "models" / "m.tflite").write_bytes(b"another")
    changed = gate(second, "--against=old.json")
    assert changed.code == 3
    assert "has another content by now than when it was measured" in " ".join(changed.out.split())


def test_the_same_result_again_is_green_and_says_of_how_many_examples(tmp_path: Path) -> None:
    written(tmp_path, new=MADE, old=MADE)
    completed = gate(tmp_path, "--against=old.json")
    assert completed.code == 0
    assert {each["examples"] for each in limits_in(tmp_path / "o.json")} == {200}
    assert "| 200 | **pass** |" in (tmp_path / "m.md").read_text()
    assert "of 200 examples" in (tmp_path / "j.xml").read_text()


def test_not_decided_stays_so_in_every_output(tmp_path: Path) -> None:
    written(tmp_path, new=measured([None] * 3 + GOOD[3:]), old=MADE)
    assert gate(tmp_path, "--against=old.json").code == 6
    assert "**inconclusive**" in (tmp_path / "m.md").read_text()
    assert '<failure message="inconclusive' in (tmp_path / "j.xml").read_text()
    assert json.loads((tmp_path / "b.json").read_text())["color"] == "yellow"


def test_a_model_that_changed_is_refused_and_one_that_is_gone_is_said(tmp_path: Path) -> None:
    written(tmp_path, new=MADE)
    gone = gate(tmp_path, "--limit=top1 >= 50 %")
    assert gone.code == 0
    everywhere(tmp_path, gone, "the model m.tflite is not there any more")
    (tmp_path / "m.tflite").write_bytes(b"another")
    changed = gate(tmp_path, "--limit=top1 >= 50 %")
    assert changed.code == 3
    everywhere(tmp_path, changed, "m.tflite has another content by now")


def test_a_limit_that_rests_on_few_examples_says_so(tmp_path: Path) -> None:
    written(tmp_path, new=MADE)
    completed = gate(tmp_path, "--limit=top1 >= 88 %")
    assert completed.code == 0
    everywhere(tmp_path, completed, "rests on 200 examples")
    assert "rests on" not in gate(tmp_path, "--limit=top1 >= 50 %").out


def test_a_slowdown_of_sixteen_times_is_red(tmp_path: Path) -> None:
    written(tmp_path, new=measured(GOOD, us=16_000.0), old=MADE)
    completed = gate(tmp_path, "--against=old.json")
    assert completed.code == 1
    everywhere(tmp_path, completed, "latency_ratio vs old 16 (")


def test_several_runs_are_compared_with_a_folder_of_results(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    written(tmp_path, new=MADE, other=MADE)
    written(tmp_path / "kept", new=earlier(MADE), other=measured([0] * 200))
    (tmp_path / "gates.toml").write_text(
        '[runs.new]\nresult = "new.json"\nagainst = "kept"\n[runs.other]\nresult = "other.json"\nagainst = "kept"\n'
    )
    completed = evaltools_here("gate", *OUTPUTS, cwd=tmp_path)
    assert completed.code == 1
    failed = [
        (each["run"], each["verdict"]) for each in limits_in(tmp_path / "o.json") if each["limit"].startswith("top1")
    ]
    assert failed == [("new", "pass"), ("other", "fail")]
    one_file = evaltools_here("gate", "new.json", "other.json", "--against=new.json", cwd=tmp_path)
    assert one_file.code == 2
    assert "give a folder with" in one_file.err


def test_one_example_decides_nothing(tmp_path: Path) -> None:
    """``--num_images=1`` and one right answer kept every limit."""
    written(tmp_path, new=measured([0]), old=measured([0]))
    completed = gate(tmp_path, "--limit=top1 >= 85 %", "--against=old.json")
    assert completed.code == 6
    everywhere(tmp_path, completed, "one example says nothing of others; measure more")
    verdicts = {each["limit"]: each["verdict"] for each in limits_in(tmp_path / "o.json")}
    assert {verdict for limit, verdict in verdicts.items() if limit.startswith("top1")} == {"inconclusive"}
