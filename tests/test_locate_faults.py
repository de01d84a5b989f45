"""The benchmark that plants faults: where they stand, how the delegate is told, and how answers are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import locate_faults
from benchmarks.locate_faults import Answer, Planted, delegate_options, faults_of, judged
from evaltools.delegates import parse_external_options
from tests import interpreters, locate_models


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.tflite"
    path.write_bytes(locate_models.quantized_net())
    return path


def test_the_delegate_understands_each(model: Path, faulty_delegate: Path) -> None:
    for planted in faults_of(model, 2):
        options = parse_external_options(delegate_options(planted))
        delegate = interpreters.load_delegate("ai_edge_litert", faulty_delegate, **options)
        interpreter = interpreters.make_interpreter("ai_edge_litert", model.read_bytes(), delegate)
        assert interpreters.delegated_outputs(interpreter) == [["scores"]]


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
