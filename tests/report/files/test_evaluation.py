"""Which files are written for which configurations."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.errors import UsageError
from evaltools.report.files.evaluation import plan_files, rendered
from tests.results import configuration, result, row_with


def test_a_stated_format_is_that_of_any_name() -> None:
    made = result(configuration("reference", "reference"), configuration("cpu"))
    for stated, name, start in (("json", "a.out", b"{"), ("csv", "a.json", b"configuration"), ("md", "a", b"# ")):
        files = plan_files(Path(name), ["cpu"], stated)
        (make,) = rendered(made, files, stated).values()
        content = make()
        assert content.lstrip().startswith(start), (stated, content[:40])
    assert list(plan_files(Path("a.json"), ["gpu", "cpu"], "pb")) == ["gpu", "cpu"]


@pytest.mark.parametrize("name", ["r.json", "r.JSON"])
def test_json_is_one_file(name: str) -> None:
    assert list(plan_files(Path(name), ["a", "b"]).values()) == [Path(name)]


def test_the_first_configuration_keeps_its_name_even_when_it_is_not_measured() -> None:
    gone = row_with(configuration("gpu"), status="not measured", latency=None)
    files = plan_files(Path("o/out.pb"), ["gpu", "cpu"])
    assert files == {"gpu": Path("o/out.pb"), "cpu": Path("o/out.cpu.pb")}
    assert list(rendered(result(gone, configuration("cpu")), files)) == ["cpu"]


def test_names_that_would_meet_in_one_file_are_refused() -> None:
    with pytest.raises(UsageError, match=r"two configurations would be written to out\.b_c\.pb"):
        plan_files(Path("out.pb"), ["a", "b c", "b/c"])
