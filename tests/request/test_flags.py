"""Spellings of flags."""

from __future__ import annotations

import pytest

from evaltools.benchmark.command import GROUPS as BENCHMARK
from evaltools.errors import UsageError
from evaltools.parameter import Parameter
from evaltools.request.flags import GivenFlags, parse_flags
from tests.requests import flags_of

GROUPS = {
    "all": (
        Parameter("use_gpu", "Switch.", default=False),
        Parameter("notice", "Starts with no.", default=True),
        Parameter("num_runs", "Number.", default=50),
        Parameter("config", "Text.", repeatable=True),
    )
}


def parsed(*arguments: str) -> GivenFlags:
    return parse_flags("x", "", "", GROUPS, arguments)


@pytest.mark.parametrize(
    ("spelling", "value"),
    [
        ("--use_gpu=true", True),
        ("--use_gpu=1", True),
        ("--use-gpu", True),
        ("--use_gpu", True),
        ("--nouse_gpu", False),
        ("--nouse-gpu", False),
        ("--use_gpu=false", False),
        ("--use_gpu=0", False),
    ],
)
def test_booleans(spelling: str, value: bool) -> None:
    assert parsed(spelling).value("use_gpu") is value


def test_a_name_that_starts_with_no_is_no_negation() -> None:
    assert parsed("--notice=false").value("notice") is False
    assert parsed("--nonotice").value("notice") is False


def test_values_with_and_without_equals_sign() -> None:
    assert parsed("--num-runs=3").value("num_runs") == 3
    assert parsed("--num_runs", "3").value("num_runs") == 3
    assert parsed("--use_gpu", "false").value("use_gpu") is False
    assert parsed().value("num_runs") == 50


def test_a_value_may_hold_anything() -> None:
    assert parsed("--config=a-b: --use-gpu=x=y").texts("config") == ["a-b: --use-gpu=x=y"]


@pytest.mark.parametrize("name", ["config", "num_runs", "use_gpu"])
def test_two_dashes_are_no_value(name: str) -> None:
    with pytest.raises(UsageError, match=f"^--{name}=--: -- is not a value; give --{name} one"):
        parsed(f"--{name}=--")


def test_order_is_kept_across_flags() -> None:
    assert [name for name, _ in parsed("--config=a", "--use_gpu", "--config=b").given] == [
        "config",
        "use_gpu",
        "config",
    ]


def test_a_repeated_flag_with_another_value_is_refused() -> None:
    assert parsed("--num_runs=3", "--num_runs=3").value("num_runs") == 3
    with pytest.raises(UsageError, match="given twice"):
        parsed("--num_runs=3", "--num_runs=4").value("num_runs")


@pytest.mark.parametrize("word", ["--use_gp=true", "--use_gp", "--num_run", "--nouse_gp"])
def test_unknown_flags_name_the_nearest(word: str) -> None:
    with pytest.raises(UsageError, match="no such flag. Did you mean --"):
        parsed(word)


def test_a_missing_value_is_refused() -> None:
    with pytest.raises(UsageError, match="expected one argument"):
        parsed("--num_runs")


NAMED = {
    "all": (
        Parameter("model_file", "Model.", positional=True, short="model"),
        Parameter("ground_truth_images_path", "Pictures.", short="images"),
        Parameter("use_gpu", "Switch.", default=False),
        Parameter("labels_file", "Labels.", short="labels"),
        Parameter("labels", "Something else."),
    )
}


@pytest.mark.parametrize(
    "words",
    [
        ("m.tflite", "--images=p", "--use_gpu"),
        ("--images=p", "m.tflite", "--use_gpu"),
        ("--images", "p", "--use_gpu", "m.tflite"),
        ("--use_gpu", "true", "m.tflite", "--ground_truth_images_path", "p"),
        ("--model=m.tflite", "--images=p", "--use_gpu=1"),
    ],
)
def test_the_model_stands_anywhere_and_short_names_mean_the_same(words: tuple[str, ...]) -> None:
    flags = parse_flags("x", "", "", NAMED, words)
    assert flags.text("model_file") == "m.tflite"
    assert flags.text("ground_truth_images_path") == "p"
    assert flags.is_on("use_gpu")


def test_a_flag_of_that_name_goes_before_a_short_name() -> None:
    flags = parse_flags("x", "", "", NAMED, ["--labels=a"])
    assert (flags.text("labels"), flags.text("labels_file")) == ("a", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("use_gpu=true",), "'use_gpu=true' is not a flag; everything is given as --name=value"),
        (("--image=p",), "Did you mean --images?"),
    ],
)
def test_what_is_neither_flag_nor_model_is_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_flags("x", "", "", NAMED, words)
    assert message in str(refused.value)


def test_two_models_are_one_too_many() -> None:
    with pytest.raises(UsageError, match="--model_file is given twice, as --model_file=a and --model_file=b"):
        parse_flags("x", "", "", NAMED, ["a", "b"]).text("model_file")


def test_a_benchmark_takes_its_model_by_the_name_that_evaluations_have() -> None:
    assert parse_flags("benchmark", "", "", BENCHMARK, ["--model_file=m.tflite"]).texts("graph") == ["m.tflite"]


@pytest.mark.parametrize(
    ("words", "is_open"),
    [
        ((), True),
        (("--num_images=5", "--reference=none", "--shard_count=1", "--run_dir=run"), True),
        (("--kernels=default",), False),
        (("--num_threads=1",), False),
        (("--config=a: use_gpu=true",), False),
        (("--configs=file.yaml",), False),
        (("--sweep=num_threads=1,2",), False),
        (("--compat=native",), False),
        (("--executor=ray",), False),
        (("--shard_count=2", "--run_dir=run"), False),
    ],
)
def test_what_leaves_the_tests_to_the_machine(words: tuple[str, ...], is_open: bool) -> None:
    assert flags_of("imagenet", *words).leave_tests_open is is_open


def test_a_list_of_options_of_a_benchmark_says_what_to_test() -> None:
    assert parse_flags("x", "", "", BENCHMARK, ["m.tflite"]).leave_tests_open
    assert not parse_flags("x", "", "", BENCHMARK, ["m.tflite", "--perf_options_list=none"]).leave_tests_open
