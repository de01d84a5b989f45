"""Rows from the console of the benchmark app for iOS."""

from __future__ import annotations

import pytest

from evaltools.benchmark.ios import measured_in_ios_log
from evaltools.benchmark.rows import rows_of
from evaltools.delegates import PARAMETERS
from evaltools.errors import DataError
from evaltools.result.rounds import Measured
from tests.benchmark.ios.ios_console import ON_METAL, started

GPU = ("Num threads: [4]", "Use gpu: [1]", "GPU delegate wait type: [aggressive]")


def measured(text: str, allow_fallback: bool = False) -> list[Measured]:
    return measured_in_ios_log(text, "float32.tflite", 19, allow_fallback)


def test_a_start_on_metal_is_a_row_with_proof() -> None:
    (found,) = measured(started(*GPU, delegates=ON_METAL))
    row = found.row
    assert (row.name, row.status, row.reason) == ("gpu", "measured", "")
    assert row.flags == ["--num_interpreter_threads=4", "--use_gpu=true", "--gpu_wait_type=aggressive"]
    assert [(used.name, used.nodes, used.partitions) for used in row.delegates] == [("GPU", 17, 2)]
    assert row.delegation is not None
    assert (row.delegation.total_nodes, row.delegation.delegated_nodes) == (19, 17)
    (only,) = found.logged
    assert (only.init_us, only.first_inference_us, only.regular.count, only.regular.avg_us) == (
        120500,
        37888,
        54,
        1847.4,
    )
    assert only.memory is not None
    assert only.memory.overall_mb == 12.25


def test_a_gpu_that_nothing_is_said_of_is_not_measured() -> None:
    (found,) = measured(started(*GPU))
    assert found.row.status == "not measured"
    assert "no line of the log says that it took nodes" in found.row.reason
    (found,) = measured(started(*GPU), allow_fallback=True)
    assert (found.row.status, bool(found.row.fallback)) == ("measured", True)


def test_starts_with_the_same_flags_are_rounds_others_are_rows() -> None:
    cpu = started("Num threads: [4]", average=4000)
    text = cpu + started(*GPU, delegates=ON_METAL) + started("Num threads: [4]", average=2000) + started()
    found = measured(text)
    assert [(each.row.name, each.row.num_threads) for each in found] == [("cpu 1", 4), ("gpu", 4), ("cpu 2", -1)]
    assert [len(each.logged) for each in found] == [2, 1, 1]
    assert rows_of(found)[0].value("latency_average_ms") == 3


def test_every_style_of_console_gives_the_same() -> None:
    plain = started(*GPU, delegates=ON_METAL)
    bare = plain.replace("INFO: ", "")
    syslog = "".join(
        f"Sep  6 13:15:37 iPhone TFLiteBenchmark(TFL)[54612] <Notice>: {line}\n" for line in plain.split("\n")
    )
    assert measured(bare) == measured(syslog) == measured(plain)


def test_a_log_that_is_cut_off_gives_a_failed_row() -> None:
    text = started(*GPU, delegates=ON_METAL)
    (found,) = measured(text[: text.index("INFO: count=54")])
    assert found.row.status == "not measured"
    assert "the log ends without times" in found.row.reason


@pytest.mark.parametrize("text", ["", "\n\n", "INFO: nothing of the kind\n", "\x00\udcff" * 100])
def test_a_text_without_a_start_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="no start of the benchmark is in it"):
        measured(text)


def test_the_log_of_another_model_is_refused() -> None:
    with pytest.raises(DataError, match=r"it is of the model other.tflite, and --graph names float32.tflite"):
        measured(started(model="other.tflite"))


@pytest.mark.parametrize("value", ["", "5; rm -rf /", "999999999999999999999"])
def test_parameters_that_make_no_sense_are_refused_by_name(value: str) -> None:
    with pytest.raises(DataError, match="the flags that it states make no sense: .*num_interpreter_threads="):
        measured(started(f"Num threads: [{value}]"))


@pytest.mark.parametrize(
    "flag", ["use_coreml", "use_xnnpack", "gpu_precision_loss_allowed", "max_delegated_partitions"]
)
def test_flags_are_known_by_what_logs_call_them(flag: str) -> None:
    parameter = PARAMETERS[flag]
    beside = [] if flag.startswith("use") else ["Use gpu: [1]"]
    value = "0" if parameter.default is True else "1"
    (found,) = measured(started(*beside, f"{parameter.log}: [{value}]"))
    assert parameter.format(parameter.parse(value)) in found.row.flags
