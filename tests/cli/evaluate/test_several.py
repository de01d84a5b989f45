"""Several models in one command."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from msgspec.structs import replace
from PIL import Image

from evaltools import exit_codes
from evaltools.cli import evaluated
from evaltools.cli.evaluated import CarriedOut, has_native_lines
from evaltools.cli.shared.decided import Decided
from evaltools.cli.shared.terminal import make_console
from evaltools.datasets import sample
from evaltools.errors import DataError
from evaltools.metrics.latency import summarise_latency
from evaltools.report.content import Sources
from evaltools.report.page.screens import print_models
from evaltools.result.result import Result, Row
from evaltools.result.verdict import Verdict
from evaltools.result_file import read_result
from tests.command import evaltools_here
from tests.requests import request_of
from tests.results import classified, configuration, result, row_with

INT8, FLOAT = str(sample.model_file("int8")), str(sample.model_file("float32"))


PICTURES = [
    f"--images={sample.images_dir()}",
    f"--ground_truth={sample.ground_truth_file()}",
    f"--labels={sample.labels_file()}",
    "--num_images=5",
    "--label_check=false",
    "--workers=1",
    "--kernels=default",
]


def test_each_model_has_its_own_files_and_one_table_is_over_all(tmp_path: Path) -> None:
    output = tmp_path / "r.json"
    plot = tmp_path / "all.png"
    done = evaltools_here("imagenet", INT8, *PICTURES, FLOAT, f"--output={output}", f"--plot={plot}", "--quiet")
    assert done.code == 0, done.err
    models = [line for line in done.out.splitlines() if line.startswith("INFO: Model: ")]
    assert models == ["INFO: Model: int8", "INFO: Model: float32"]
    found = {path.name: read_result(path).model.file for path in tmp_path.glob("*.json")}
    assert found == {"r.int8.json": INT8, "r.float32.json": FLOAT}
    lines = done.err.splitlines()
    heading = next(number for number, line in enumerate(lines) if line.startswith("model "))
    assert lines[heading].split()[1:5] == ["configuration", "top-1", "change", "verdict"]
    assert [line.partition("  ")[0] for line in lines[heading + 1 : heading + 5]] == [
        "int8",
        "int8",
        "float32",
        "float32",
    ]
    assert "own reference" in lines[heading + 3]
    assert any("yes" in line for line in lines[heading + 1 :])
    with Image.open(plot) as opened:
        assert opened.format == "PNG"


@pytest.fixture
def decided() -> dict[str, Decided]:
    return {name: Decided(request_of("imagenet")) for name in ("a", "b", "c")}


@pytest.mark.parametrize(
    ("found", "code", "shown", "said"),
    [
        ((0, 0, 0), exit_codes.OK, "abc", ""),
        ((exit_codes.LIMIT_BROKEN, 0, exit_codes.NOT_MEASURED), exit_codes.NOT_MEASURED, "abc", ""),
        ((exit_codes.NOT_WRITTEN, exit_codes.INTERRUPTED), exit_codes.INTERRUPTED, "ab", ""),
        ((0, DataError("the labels do not fit"), 0), exit_codes.USAGE, "ac", "evaltools: b: the labels do not fit"),
        ((0, KeyboardInterrupt()), exit_codes.INTERRUPTED, "a", "interrupted before there was a result of b"),
    ],
)
def test_the_worst_exit_code_is_that_of_all_and_what_was_measured_is_shown_whatever_becomes_of_the_next(
    decided: dict[str, Decided],
    found: tuple[int | BaseException, ...],
    code: int,
    shown: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """After an interrupt no other one runs."""
    left = list(found)

    def carried_out(_request: object, **_how: object) -> CarriedOut:
        each = left.pop(0)
        if isinstance(each, BaseException):
            raise each
        made = result(configuration("reference", "reference"), configuration("test"))
        stopped = "interrupted" if each == exit_codes.INTERRUPTED else ""
        return CarriedOut(each, replace(made, stopped=stopped), Sources())

    monkeypatch.setattr(evaluated, "evaluate_and_print", carried_out)
    assert evaluated.evaluate_and_print_each(decided, decided["a"].request.options) == code
    assert left == []
    told = capsys.readouterr().err
    assert said in told
    last = [line for line in told.splitlines() if line.split()[-3:-2] != ["MB"] and " ms " in line]
    assert len(last) == 2 * len(shown)


def table(results: dict[str, Result]) -> list[list[str]]:
    text = io.StringIO()
    print_models(results, make_console(text))
    return [line.split() for line in text.getvalue().splitlines()]


def timed(name: str, microseconds: float, *verdicts: Verdict) -> Row:
    latency = summarise_latency([microseconds] * 3)
    return row_with(configuration(name), latency=latency, verdicts=list(verdicts))


def test_the_table_says_what_no_other_one_beats() -> None:
    """Of two as fast as each other the more accurate one; the slowest is worth it where it is the most accurate."""
    same = Verdict("unchanged", "top1", "x")
    worse = Verdict("worse", "top1", "x")
    missing = row_with(configuration("gone"), status="not measured", reason="no", latency=None)
    small = result(timed("x", 1000), timed("y", 500, worse), answered={"x": classified(0.5), "y": classified(0.25)})
    large = result(timed("x", 500, same), missing, answered={"x": classified(0.75)})
    rows = [line for line in table({"small": small, "large": large}) if line[0] in ("small", "large")]
    assert [(line[:2], line[-1] == "yes") for line in rows] == [
        (["small", "x"], False),
        (["small", "y"], False),
        (["large", "x"], True),
        (["large", "gone"], False),
    ]


def test_outputs_have_no_figure_that_models_could_be_ranked_by() -> None:
    judged = timed("y", 500, Verdict("fp16", "outputs", "x"))
    answer, headings, *_rows = table({"m": result(timed("x", 1000), judged)})
    assert answer[-1] == "fp16."
    assert headings == ["configuration", "verdict", "latency", "delegated"]


REFERENCE = configuration("reference", "reference")


ONE = result(REFERENCE, configuration("a"))


TWO = result(REFERENCE, configuration("a"), configuration("b"))


@pytest.mark.parametrize(
    ("made", "flag", "is_one_model", "is_terminal", "has_lines"),
    [
        (TWO, "--quiet", False, False, True),
        (ONE, "", True, True, True),
        (ONE, "--quiet", True, True, False),
        (TWO, "", True, True, False),
        (ONE, "", False, True, False),
        (TWO, "--compat=native", False, True, True),
    ],
)
def test_native_lines_are_for_programs_and_on_a_terminal_for_one_configuration(
    made: Result, flag: str, is_one_model: bool, is_terminal: bool, has_lines: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluated, "stdout_is_terminal", lambda: is_terminal)
    options = request_of("imagenet", *flag.split()).options
    assert has_native_lines(made, options, is_one_model=is_one_model) == has_lines
