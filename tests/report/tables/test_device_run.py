"""What a person is told about the devices of a run."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.cli.shared.terminal import make_console
from evaltools.report.tables.device import print_device_run
from evaltools.report.tables.evaluation import print_result
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import (
    DeviceConditions,
    DeviceLeftOut,
    DevicePart,
    DeviceRun,
    LostAttempt,
    PartFigures,
)
from tests.results import configuration, result

PHONE = DeviceFacts("R58M", "device", model="Pixel 7", soc="Google GS201")
BOARD = DeviceFacts("10.0.0.9:5555", "device")
NOTHING = DeviceConditions()


def part(index: int, serial: str, *figures: PartFigures, **changed: Any) -> DevicePart:
    made = DevicePart(index, 4, serial, 10, "2026-01-01T00:00:00+00:00", 0.0, 5.0, NOTHING, NOTHING, figures=figures)
    return replace(made, **changed)


def timed(name: str, *times: int) -> PartFigures:
    return PartFigures(name, len(times), 0, times)


def lost(serial: str, kind: str = "time-out", elapsed_s: float = 7.0) -> LostAttempt:
    return LostAttempt(serial, kind, f"{serial}: too late", elapsed_s)


def run_of(
    *parts: DevicePart, devices: Sequence[DeviceFacts] = (PHONE,), left_out: Sequence[DeviceLeftOut] = ()
) -> Any:
    return DeviceRun("evaltools", "pool", tuple(devices), parts, tuple(left_out))


def printed(run: DeviceRun, width: int = 160) -> list[str]:
    text = io.StringIO()
    console = make_console(text)
    console.width = width
    print_device_run(run, console)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def table(run: DeviceRun) -> list[dict[str, str]]:
    """The rows by heading; columns are two blanks or more apart."""
    headings, *rows = (re.split(r" {2,}", line.strip()) for line in printed(run)[: 1 + len(run.devices)])
    return [dict(zip(headings, row, strict=True)) for row in rows]


def test_each_device_has_a_line_with_what_it_did() -> None:
    run = run_of(
        part(0, "R58M", timed("reference", 4000, 6000), timed("gpu", 1000)),
        part(1, "10.0.0.9:5555", timed("reference", 50_000), timed("gpu", 40_000), examples=9),
        part(2, "R58M", timed("reference", 8000), timed("gpu", 2000, 3000)),
        devices=[PHONE, BOARD],
    )
    unknown = {"hottest": "-", "throttling": "-", "parts lost": "0"}
    assert table(run) == [
        {"device": "R58M", "model": "Pixel 7 (Google GS201)", "parts": "2", "examples": "20",
         "p50 reference": "6 ms", "p50 gpu": "2 ms", **unknown},
        {"device": "10.0.0.9:5555", "model": "-", "parts": "1", "examples": "9",
         "p50 reference": "50 ms", "p50 gpu": "40 ms", **unknown},
    ]  # fmt: skip
    assert len(printed(replace(run, split="each"))) == 3


def test_a_benchmark_has_no_examples_to_count() -> None:
    done = part(0, "R58M", timed("a", 1000), examples=0)
    assert table(run_of(done))[0]["examples"] == "-"
    idle = run_of(part(0, "R58M"), devices=[PHONE, BOARD])
    assert [row["examples"] for row in table(idle)] == ["10", "0"]


def test_latencies_of_devices_of_several_kinds_are_warned_of_where_they_are_put_together() -> None:
    parts = [part(index, serial) for index, serial in enumerate(("R58M", "R58N", BOARD.serial))]
    alike = replace(PHONE, serial="R58N")
    mixed = run_of(*parts, devices=[PHONE, alike, BOARD])
    assert printed(mixed)[4:] == [
        "warning: devices of several kinds did parts of this run, so that latencies are of all of them together; "
        "--split=each compares them"
    ]
    assert len(printed(replace(mixed, split="each"))) == 4
    assert len(printed(run_of(*parts, devices=[PHONE, alike]))) == 3


def test_the_median_is_of_all_times_of_a_device_not_of_its_parts() -> None:
    """Those of the parts would be 2 and 100."""
    run = run_of(part(0, "R58M", timed("a", 1000, 2000, 3000)), part(1, "R58M", timed("a", 100_000)))
    assert table(run)[0]["p50 a"] == "2.5 ms"


def test_a_configuration_that_was_not_timed_on_a_device_has_no_median_there() -> None:
    run = run_of(part(0, "R58M", timed("a", 1000)), part(0, BOARD.serial, timed("a"), timed("b", 1)),
                 devices=[PHONE, BOARD])  # fmt: skip
    assert [(row["p50 a"], row["p50 b"]) for row in table(run)] == [("1 ms", "-"), ("-", "0.001 ms")]


def test_of_many_configurations_the_first_four_are_shown() -> None:
    run = run_of(part(0, "R58M", *(timed(name, 1000) for name in "abcdef")))
    assert [heading for heading in table(run)[0] if heading.startswith("p50 ")] == ["p50 a", "p50 b", "p50 c", "p50 d"]


@pytest.mark.parametrize(
    ("conditions", "hottest", "throttling"),
    [
        ([(NOTHING, NOTHING)], "-", "-"),
        ([(DeviceConditions(battery_temperature=287), NOTHING)], "28.7 C", "-"),
        ([(NOTHING, DeviceConditions(thermal_status=0))], "-", "none"),
        ([(DeviceConditions(temperatures={"SKIN": 31.24, "BIG": 48.26}), NOTHING)], "48.3 C", "-"),
        ([(NOTHING, DeviceConditions(battery_temperature=500, temperatures={"SKIN": 31.5}))], "50.0 C", "-"),
        (
            [
                (DeviceConditions(thermal_status=1, battery_temperature=300), DeviceConditions(thermal_status=0)),
                (
                    DeviceConditions(battery_temperature=399),
                    DeviceConditions(thermal_status=3, battery_temperature=350),
                ),
            ],
            "39.9 C",
            "severe",
        ),
    ],
)
def test_the_worst_before_and_after_any_part_is_shown(
    conditions: Sequence[tuple[DeviceConditions, DeviceConditions]], hottest: str, throttling: str
) -> None:
    parts = [part(index, "R58M", before=before, after=after) for index, (before, after) in enumerate(conditions)]
    elsewhere = part(9, "other", after=DeviceConditions(battery_temperature=900, thermal_status=6))
    (row,) = table(run_of(*parts, elsewhere))
    assert (row["hottest"], row["throttling"]) == (hottest, throttling)


def test_losses_count_for_the_device_that_had_them_and_are_told_one_by_one() -> None:
    run = run_of(
        part(0, "R58M"),
        part(2, "R58M", lost=(lost(BOARD.serial), lost(BOARD.serial, "no space", 12.6), lost("R58M"), lost("gone"))),
        devices=[PHONE, BOARD],
    )
    assert [row["parts lost"] for row in table(run)] == ["1", "2"]
    assert printed(replace(run, split="each"))[3:] == [
        "part 3 of 4 was lost by 10.0.0.9:5555 after 7 s (time-out) and done again by R58M",
        "part 3 of 4 was lost by 10.0.0.9:5555 after 13 s (no space) and done again by R58M",
        "part 3 of 4 was lost by R58M after 7 s (time-out) and done again by R58M",
        "part 3 of 4 was lost by gone after 7 s (time-out) and done again by R58M",
    ]


def test_devices_that_were_left_out_are_warned_of() -> None:
    run = run_of(part(0, "R58M"), left_out=[DeviceLeftOut("B", "not alike", "B is not like R58M: [x]")])
    assert printed(run)[2:] == ["warning: B was left out: B is not like R58M: [x]"]


def test_what_a_device_says_of_itself_cannot_move_the_cursor() -> None:
    odd = DeviceFacts("R\x1b[2J", "device", model="Pi\nxel", soc="\x07")
    run = run_of(
        part(0, odd.serial, lost=(lost("\x1b[A"),)),
        devices=[odd],
        left_out=[DeviceLeftOut("\r", "x", "two\nlines\x1b[31m")],
    )
    shown = "\n".join(printed(run))
    assert not set(shown) & set("\x1b\x07\r")
    assert "Pi\\nxel (\\x07)" in shown
    assert "warning: \\r was left out: two\\nlines\\x1b[31m" in shown


@pytest.mark.parametrize("width", [80, 100, 120])
def test_no_number_is_cut_where_the_terminal_is_narrow(width: int) -> None:
    facts = DeviceFacts("192.168.100.100:5555", "device", model="Galaxy S24 Ultra", soc="Qualcomm SM8650")
    hot = DeviceConditions(temperatures={"SKIN": 41.5}, thermal_status=2)
    figures = [timed("reference", 1_234_567), timed("gpu", 56_789)]
    run = run_of(part(0, facts.serial, *figures, after=hot, examples=12_345), devices=[facts])
    lines = printed(run, width)
    assert all(len(line) <= width for line in lines)
    whole = {"examples": "12345", "p50 reference": "1235 ms", "p50 gpu": "56.8 ms", "hottest": "41.5 C"}
    left_out = lines[2].removeprefix("a wider terminal also shows: ").split(", ") if len(lines) > 2 else []
    for heading, text in whole.items():
        assert (heading in left_out) != (heading in lines[0] and text in lines[1]), heading
    assert facts.serial in lines[1]
    assert "p50 reference" not in left_out


def test_the_table_stands_below_the_figures_of_a_run_on_devices_alone() -> None:
    def shown(device_run: DeviceRun | None) -> str:
        text = io.StringIO()
        print_result(replace(result(configuration("a")), device_run=device_run), make_console(text))
        return text.getvalue()

    with_devices, without = shown(run_of(part(0, "R58M", timed("a", 1000)))), shown(None)
    assert "Pixel 7 (Google GS201)" in with_devices
    assert "hottest" not in without
    assert len(with_devices.splitlines()) == len(without.splitlines()) + 2
