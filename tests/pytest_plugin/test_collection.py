"""Which files of gates are collected, and which tests that gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.result.json_file import encode_json
from tests.pytest_plugin.projects import gate, plain_pytest, result_run, run_pytest, write_gates
from tests.report.benchmark_samples import benchmark, row

ID = "gates.toml::sample/xnnpack: top1 >= 50 %"


@pytest.fixture
def project(pytester: pytest.Pytester, sample_result: Path) -> pytest.Pytester:
    """Two limits that are kept and one test beside them, another test in a folder below."""
    write_gates(
        pytester, result_run("sample", sample_result), gate("sample", "xnnpack", "top1 >= 50 %", "top2 >= 50 %")
    )
    pytester.makepyfile(test_own="def test_own(): pass")
    below = pytester.mkdir("below")
    (below / "test_below.py").write_text("def test_below(): pass")
    return pytester


@pytest.mark.parametrize(
    ("paths", "count"),
    [(["below"], 3), ([".", "gates.toml"], 4), ([ID], 1), ([ID, "below"], 2)],
)
def test_gates_are_collected_once_whatever_paths_are_given(
    paths: list[str], count: int, project: pytest.Pytester
) -> None:
    run_pytest(project, *paths).assert_outcomes(passed=count)


def test_files_may_be_several_and_elsewhere(project: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "more.toml"
    elsewhere.write_text((project.path / "gates.toml").read_text())
    run_pytest(project, "below", f"--evaltools-gates={elsewhere}").assert_outcomes(passed=5)


def test_gates_may_stand_in_pyproject(project: pytest.Pytester, sample_result: Path) -> None:
    tables = (
        f"[tool.evaltools.runs.sample]\nresult = '{sample_result}'\n"
        "[[tool.evaltools.gates]]\nlimits = ['top1 >= 50 %']\n"
    )
    (project.path / "pyproject.toml").write_text(f"{tables}configuration = 'xnnpack'\n")
    plain_pytest(project, "--evaltools-gates=pyproject.toml", "below").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    ("paths", "count"),
    [
        ([], 4),
        (["gates.toml"], 2),
        (["below"], 3),
        (["test_own.py::test_own"], 1),
    ],
)
def test_files_of_the_ini_file_are_collected_unless_single_tests_are_named(
    paths: list[str], count: int, project: pytest.Pytester
) -> None:
    project.makeini("[pytest]\nevaltools_gates = gates.toml")
    plain_pytest(project, *paths).assert_outcomes(passed=count)


def test_files_of_the_ini_file_are_meant_from_its_folder(project: pytest.Pytester) -> None:
    project.makeini("[pytest]\nevaltools_gates = gates.toml\ntestpaths = below")
    plain_pytest(project).assert_outcomes(passed=3)


@pytest.mark.parametrize("file", ["[pytest]\nevaltools_gate = gates.toml", "[pytest]\nevaltools_inconclusiv = skip"])
def test_a_setting_that_is_mistyped_is_an_error(file: str, project: pytest.Pytester) -> None:
    project.makeini(file)
    result = plain_pytest(project)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*there is no setting evaltools_*; use evaltools_gates, *Did you mean evaltools_*[?]"])


def test_a_result_that_a_test_of_the_session_writes_is_the_one_that_counts(pytester: pytest.Pytester) -> None:
    made = [encode_json(benchmark(row("x", median_us))) for median_us in (1000, 3000)]
    file = pytester.path / "fast.json"
    file.write_bytes(made[0])
    (pytester.path / "now.json").write_bytes(made[1])
    write_gates(pytester, result_run("fast", file), gate("fast", "*", "latency_ms <= 2"))
    pytester.makepyfile("import shutil\ndef test_writes(): shutil.copy('now.json', 'fast.json')")
    result = run_pytest(pytester, "test_a_result_that_a_test_of_the_session_writes_is_the_one_that_counts.py")
    result.assert_outcomes(passed=1, failed=1)


COMMAND = "imagenet --ground_truth_images_path=i --ground_truth_labels=g --model_output_labels=l"


def test_requests_say_which_tests_there_are_and_nothing_is_run(pytester: pytest.Pytester) -> None:
    run = (
        f'[runs.release]\nmodels = ["a/v1q.tflite", "a/v2.tflite"]\n'
        f"command = \"{COMMAND} --config='cpu: use_xnnpack=false' --config='gpu: use_gpu=true'\"\n"
        '[runs.fast]\ncommand = "benchmark a/v1q.tflite a/v2.tflite"\n[runs.joined]\ncommand = "merge a b"\n'
    )
    gates = [
        gate("release", "*", "top1 >= 50 %"),
        gate("fast", "*", "load_ms <= 9"),
        gate("joined", "x*", "top1 >= 50 %"),
    ]
    write_gates(pytester, run, *gates)
    result = run_pytest(pytester, "--collect-only", "-q")
    assert [line for line in result.outlines if line.startswith("gates.toml::")] == [
        "gates.toml::release/v1q/cpu: top1 >= 50 %",
        "gates.toml::release/v1q/gpu: top1 >= 50 %",
        "gates.toml::release/v2/cpu: top1 >= 50 %",
        "gates.toml::release/v2/gpu: top1 >= 50 %",
        "gates.toml::fast/v1q/test: load_ms <= 9",
        "gates.toml::fast/v2/test: load_ms <= 9",
        "gates.toml::joined/x*: top1 >= 50 %",
    ]
    assert (
        len([line for line in run_pytest(pytester, "--collect-only", "-q", "-k", "v1q").outlines if "::" in line]) == 3
    )


def test_rows_of_a_benchmark_are_tests_by_model_and_configuration(pytester: pytest.Pytester) -> None:
    made = benchmark(row("x", 1000), row("y", 1000), row("x", 3000, model=1), sizes=(1, 1))
    file = pytester.path / "fast.json"
    file.write_bytes(encode_json(made))
    write_gates(pytester, result_run("fast", file), gate("fast", "*", "latency_ms <= 2"))
    result = run_pytest(pytester, "-v")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines_random(
        [
            "gates.toml::fast/a/x: latency_ms <= 2 PASSED*",
            "gates.toml::fast/a/y: latency_ms <= 2 PASSED*",
            "gates.toml::fast/b/x: latency_ms <= 2 FAILED*",
        ]
    )


def test_equal_limits_have_names_of_their_own(pytester: pytest.Pytester, sample_result: Path) -> None:
    same = gate("sample", "xnnpack", "top1 >= 50 %", "top1 >= 50 %")
    write_gates(pytester, result_run("sample", sample_result), same)
    result = run_pytest(pytester, f"{ID} (2)", "-v")
    result.assert_outcomes(passed=1)
    assert f"{ID} (2) PASSED" in result.stdout.str()


def test_the_marker_selects_gates_and_tests_that_have_it(project: pytest.Pytester) -> None:
    project.makepyfile(test_marked="import pytest\n@pytest.mark.accuracy_gate\ndef test_marked(): pass")
    run_pytest(project, "--strict-markers", "-m", "accuracy_gate").assert_outcomes(passed=3, deselected=2)
    run_pytest(project, "--strict-markers", "-m", "not accuracy_gate").assert_outcomes(passed=2, deselected=3)


def test_a_file_that_is_not_there_is_refused(pytester: pytest.Pytester) -> None:
    result = run_pytest(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: there is no file of gates */gates.toml; correct --evaltools-gates or *"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[gates]\n", "*gates.toml is not TOML: *"),
        ("[[gates]]\nlimits = ['top1 > 0.5']\n", "*gates.toml: gate 1: 'top1 > 0.5' is not a limit*"),
    ],
)
def test_a_broken_file_is_an_error_of_the_collection(text: str, message: str, pytester: pytest.Pytester) -> None:
    write_gates(pytester, text)
    result = run_pytest(pytester)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])
