"""How often evaluations run, and where."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from evaltools.commands.gates import read_run
from evaltools.errors import DataError, OutputError, UsageError
from evaltools.gates.gate_file import RunSource
from evaltools.pytest_plugin.session_runs import SessionRuns
from evaltools.result.result import Result
from evaltools.runs import gate_runs
from evaltools.runs.gate_runs import result_of
from evaltools.runs.handing_over import Ended
from tests.cli.evaluate.sample_runs import inference_diff
from tests.pytest_plugin.projects import (
    command_run,
    count_runs,
    gate,
    plain_pytest,
    run_pytest,
    sample_command,
    write_gates,
)

DIFF = ("diff", "--model_file=none.tflite")
SAID = "evaltools diff --model_file=none.tflite said:"
XNNPACK = "xnnpack: use_xnnpack=true"
FIVE_LIMITS = ("top1 >= 50 %", "top2 >= 50 %", "top5 >= 50 %", "agreement >= 90 %", "delegated_share >= 50 %")


def run_source(source: RunSource, folder: Path, output: Path) -> Result:
    result = result_of(read_run(source, folder), output)
    assert isinstance(result, Result)
    return result


@pytest.mark.once
def test_a_run_is_carried_out_once_for_all_its_limits_and_all_workers(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = count_runs(pytester, monkeypatch)
    gates = [gate("sample", "xnnpack", *FIVE_LIMITS), gate("s*", "xnnpack", "failed_examples <= 0")]
    write_gates(pytester, command_run("sample", sample_command(XNNPACK)), *gates)
    result = run_pytest(pytester, "-n", "2", "--dist", "each", "-v")
    result.assert_outcomes(passed=12)
    assert "[gw0]" in result.stdout.str()
    assert "[gw1]" in result.stdout.str()
    assert len(runs.started()) == 1


def test_workers_without_filelock_are_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "filelock", None)
    with pytest.raises(UsageError, match=r"filelock, which is not installed: pip install 'evaltools\[pytest\]'"):
        SessionRuns(tmp_path, has_workers=True).result(RunSource("r", DIFF), tmp_path)
    with pytest.raises(UsageError, match=rf"run r: no result \(exit code 2\): [^\n]*\n{SAID}"):
        SessionRuns(tmp_path, has_workers=False).result(RunSource("r", DIFF), tmp_path)


def test_a_run_that_no_selected_test_needs_is_left_out(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = count_runs(pytester, monkeypatch)
    write_gates(pytester, command_run("sample", sample_command(XNNPACK)), gate("sample", "xnnpack", "top1 >= 50 %"))
    run_pytest(pytester, "--collect-only")
    run_pytest(pytester, "-k", "top5")
    assert runs.started() == []


@pytest.mark.once
def test_paths_of_a_command_are_meant_from_the_folder_of_the_gates(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = count_runs(pytester, monkeypatch)
    words = inference_diff("--config=xnnpack: use_xnnpack=true", runs=2)
    model = Path(words[1].removeprefix("--model_file="))
    (pytester.path / "model.tflite").write_bytes(model.read_bytes())
    words[1] = "--model_file=model.tflite"
    write_gates(pytester, command_run("small", words), gate("small", "*", "snr_db >= 50"))
    below = pytester.mkdir("below")
    os.chdir(below)
    plain_pytest(pytester, "--evaltools-gates=../gates.toml").assert_outcomes(passed=1)
    assert [line.split()[0] for line in runs.started()] == [str(pytester.path)]


@pytest.mark.once
def test_a_run_with_a_broken_limit_or_a_missing_delegate_has_a_result(tmp_path: Path) -> None:
    words = inference_diff("--config=xnnpack: use_xnnpack=true", "--min_snr_db=900", runs=2)
    output = tmp_path / "result.json"
    broken = run_source(RunSource("broken", tuple(words)), tmp_path, output)
    assert broken.limits_broken
    missing = run_source(RunSource("missing", (*words[:-2], "--use_nnapi=true")), tmp_path, output)
    assert [entry.status for entry in missing.rows] == ["not measured", "not measured"]
    assert json.loads(output.read_text())["rows"][1]["cannot_exist"]


def test_an_older_result_is_not_taken_for_that_of_a_run_that_failed(tmp_path: Path, sample_result: Path) -> None:
    output = tmp_path / "result.json"
    output.write_bytes(sample_result.read_bytes())
    with pytest.raises(UsageError, match=r"run new: no result \(exit code 2\)"):
        run_source(RunSource("new", DIFF), tmp_path, output)
    assert not output.exists()


def test_a_result_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(OutputError, match=r"run r: .*result\.json cannot be written: Not a directory"):
        run_source(RunSource("r", DIFF), tmp_path, tmp_path / "taken" / "result.json")


@pytest.mark.parametrize(("code", "ended"), [(5, "exit code 5"), (130, "exit code 130"), (-9, "ended by SIGKILL")])
def test_a_run_that_was_cut_short_has_no_result(
    code: int, ended: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "result.json"
    lines = "\n".join(f"line {number}" for number in range(50))

    def cut_short(*_: object) -> Ended:
        output.write_text("{}")
        return Ended(code, "", lines)

    monkeypatch.setattr(gate_runs, "run_in_own_process", cut_short)
    with pytest.raises(UsageError) as caught:
        run_source(RunSource("r", DIFF), tmp_path, output)
    assert str(caught.value).startswith(f"run r: no result ({ended}): line 49\n{SAID}\nline 30\n")


@pytest.mark.parametrize("flag", ["--output_file_path=x.json", "--output-file-path=x.json"])
def test_where_the_result_goes_is_not_for_the_command_to_say(flag: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave --output_file_path out of its command"):
        run_source(RunSource("r", (*DIFF, flag)), tmp_path, tmp_path / "result.json")


def test_a_result_that_exists_is_read(tmp_path: Path, sample_result: Path) -> None:
    found = run_source(RunSource("r", result=sample_result), tmp_path, tmp_path / "unused.json")
    assert [entry.name for entry in found.rows] == ["reference", "xnnpack", "nnapi", "broken"]
    with pytest.raises(DataError, match=r"nowhere\.json cannot be read"):
        run_source(RunSource("r", result=tmp_path / "nowhere.json"), tmp_path, tmp_path / "unused.json")


def test_a_wrong_flag_of_a_command_is_told_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^run r: --num_run=2: no such flag. Did you mean --num_runs\?"):
        read_run(RunSource("r", (*DIFF, "--num_run=2")), tmp_path)
    with pytest.raises(UsageError, match="^run r: its command asks for help; leave that out"):
        read_run(RunSource("r", ("diff", "--help")), tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        ("benchmark", "--graph=a.tflite", "b.tflite"),
        ("diff", "--model_file=a.tflite", "b.tflite"),
        ("merge", "b.tflite"),
    ],
)
def test_a_command_into_which_no_model_fits_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^run r/b: (models goes with|--model_file is given twice)"):
        read_run(RunSource("r/b", command, model="b.tflite"), tmp_path)
    assert read_run(RunSource("r/b", ("diff", "b.tflite"), model="b.tflite"), tmp_path).models == ["b.tflite"]


def test_commands_that_ask_for_the_same_in_other_words_share_a_result(tmp_path: Path) -> None:
    runs = SessionRuns(tmp_path, has_workers=False)
    same = [("--use_gpu=1", "--num_runs=2"), ("--num_runs", "2", "--use-gpu=true")]
    files = [runs.file(RunSource("r", (*DIFF, *words)), tmp_path) for words in same]
    assert files[0] == files[1]
    assert runs.file(RunSource("r", (*DIFF, "--num_runs=3")), tmp_path) not in files


def test_what_a_run_on_devices_asks_for_is_read_from_the_folder_of_the_gates(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("one: use_xnnpack=true\n")
    words = ("device", "run", *DIFF, "--configs=c.yaml", "--device_wheels=wheels", "--serials=R5")
    request = read_run(RunSource("r", words), tmp_path).request
    assert request is not None
    assert (request.folder, [entry.name for entry in request.tests]) == (tmp_path, ["one"])
    assert request.devices is not None
    assert request.devices.text("device_wheels") == "wheels"
