"""What devices did stands on the page beside what is known of the host."""

from __future__ import annotations

from msgspec.structs import replace

from evaltools.report.page.content.sources import Sources
from evaltools.result.device_run import DeviceConditions
from tests.report.page.samples import classifier, read
from tests.report.tables.test_device_run import BOARD, PHONE, lost, part, run_of, timed


def test_who_did_how_much_how_fast_and_how_warm_it_became() -> None:
    cool, warm = DeviceConditions(temperatures={"skin": 30.5}), DeviceConditions(temperatures={"skin": 41.25})
    run = run_of(
        part(0, PHONE.serial, timed("xnnpack", 1000, 3000), before=cool, after=warm),
        part(1, PHONE.serial, timed("xnnpack", 2000), before=warm, after=warm),
        part(2, BOARD.serial, lost=(lost(PHONE.serial),)),
        devices=(PHONE, BOARD),
    )
    page = read(Sources({"r": replace(classifier(), device_run=run)}))
    (table,) = [table for table in page.all("table") if "evaltools on each device" in table.text]
    assert "R58MPixel 7 (Google GS201)22010.0 s2 ms" in "".join(table.text.split("\n"))
    assert "10.0.0.9:5555" in table.text
    labels = [svg.attributes["aria-label"] for svg in page.all("svg")]
    assert any("R58M: 30.5 to 41.2 °C" in label for label in labels)
    assert "part 3 of 4 was lost by R58M after 7 s (time-out: R58M: too late)" in page.source


def test_a_run_on_the_host_alone_has_no_such_section() -> None:
    assert "Devices" not in read(Sources({"r": classifier()})).headings
