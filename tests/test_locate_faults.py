"""The benchmark that plants faults: where they stand, how the delegate is told, and how answers are counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import locate_faults
from benchmarks.locate_faults import Answer, Planted, delegate_options, faults_of, judged, read_answer
from evaltools.delegates import parse_external_options
from tests import interpreters, locate_models


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.tflite"
    path.write_bytes(locate_models.quantized_net())
    return path


def test_operators_are_spread_over_the_model(model: Path) -> None:
    none, *faults = faults_of(model, 4)
    assert none.operator is None
    assert list(dict.fromkeys(planted.operator for planted in faults)) == [0, 2, 5, 7]
    assert {planted.tensor for planted in faults} == {"stem", "project", "flat", "scores"}
    assert [planted.size for planted in faults[:4]] == list(locate_faults.SIZES)


def test_what_is_computed_from_constants_gets_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "fp16.tflite"
    path.write_bytes(locate_models.fp16_constants())
    assert {planted.tensor for planted in faults_of(path, 10)} == {"", "conv"}


def test_options_keep_any_name() -> None:
    planted = Planted(Path("m"), 3, 'a;b:0/"c"', "int8", "large, 1 of 20")
    assert parse_external_options(delegate_options(planted)) == {
        "tensor": 'a;b:0/"c"', "fault": "step", "amount": "32", "every": "20",
    }  # fmt: skip


def test_the_delegate_understands_each(model: Path, faulty_delegate: Path) -> None:
    for planted in faults_of(model, 2):
        options = parse_external_options(delegate_options(planted))
        delegate = interpreters.load_delegate("ai_edge_litert", faulty_delegate, **options)
        interpreter = interpreters.make_interpreter("ai_edge_litert", model.read_bytes(), delegate)
        assert interpreters.delegated_outputs(interpreter) == [["scores"]]


def test_a_result_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"verdict": {"kind": "confirmed", "operators": [4]}, "other": 1}))
    assert read_answer(path) == Answer("confirmed", (4,))


@pytest.mark.parametrize(
    ("planted", "named", "expected"),
    [
        (4, (4,), "right"),
        (4, (5,), "wrong"),
        (4, (4, 5), "wrong"),
        (4, (), "missed"),
        (4, None, "no answer"),
        (None, (), "right"),
        (None, (4,), "wrong"),
    ],
)
def test_how_an_answer_counts(planted: int | None, named: tuple[int, ...] | None, expected: str) -> None:
    answer = None if named is None else Answer("confirmed", named)
    assert judged(Planted(Path("m"), planted, "t", "int8", "small"), answer) == expected


def test_the_tables_count_by_fault_and_by_model(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a command that finds what is large alone."""

    def answer(planted: Planted, *_rest: object) -> Answer:
        found = planted.operator if planted.size == "large" else None
        return Answer("confirmed", () if found is None else (found,), 2.0)

    monkeypatch.setattr(locate_faults, "answer_of", answer)
    assert locate_faults.main([str(model), "--operators=3", f"--delegate={model}"]) == 0
    rows = {line[:44].strip(): line[44:].split() for line in capsys.readouterr().out.splitlines() if line}
    assert rows["none"] == ["1", "1", "0", "0", "0", "2.0"]
    assert rows["small"] == ["3", "0", "0", "3", "0", "2.0"]
    assert rows["large"] == ["3", "3", "0", "0", "0", "2.0"]
    assert rows["net"] == ["13", "4", "0", "9", "0", "2.0"]


def test_a_command_that_writes_nothing_gives_no_answer(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate_faults, "command_line", lambda *_arguments: ["false"])
    assert locate_faults.answer_of(faults_of(model, 1)[0], model, [], 10.0) is None
