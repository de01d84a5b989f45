"""A search on a device: what is sent for it, and the names that its result has here."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from rich.console import Console

from evaltools.commands.device_run import parse
from evaltools.device.run.flags import read_device_flags
from evaltools.device.run.locate import DeviceSearch, _kept_there, locate_on_device, with_host_names
from evaltools.device.run.request import device_request
from evaltools.engine.journal import open_journal
from evaltools.engine.run_folder import REQUEST, has_own_request
from evaltools.errors import EvaltoolsError, UsageError
from evaltools.locate.request import read_request
from evaltools.report.words.locate import answer_lines
from evaltools.request import Request
from evaltools.result.locate import Errors, OutputErrors, Verdict
from evaltools.tasks.shared.host_names import HostNames
from tests import locate_models
from tests.locate.bundle.cases import result_of

ROOT = "/data/local/tmp/evaltools"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.tflite"
    path.write_bytes(locate_models.all_models()["net"])
    return path


def asked(model: Path, *flags: str) -> Request:
    return parse("locate", [str(model), *flags])


def sent(request: Request, folder: Path, place: dict[str, str]) -> dict[str, Any]:
    """The request that a device gets."""
    search = DeviceSearch(read_request(request), device_request(request, ROOT), place, folder, lambda _done: None)
    plain: dict[str, Any] = json.loads(search._work.request)
    return plain


def test_the_device_searches_with_its_own_files_and_tells_of_its_progress(model: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "picture.npy", np.zeros(locate_models.NET_SHAPE, np.float32))
    request = asked(
        model, "--use_xnnpack", "--max_compiles=4", f"--input_files={tmp_path / 'picture.npy'}",
        "--serials=R5", "--quiet", f"--output={tmp_path / 'here.json'}", f"--bundle={tmp_path / 'bundle'}",
    )  # fmt: skip
    plain = sent(request, tmp_path, {"run_dir": f"{ROOT}/searches/0123456789abcdef"})
    options = plain["options"]
    assert (plain["task"], plain["devices"], plain["command"]) == ("locate", None, [])
    assert plain["tests"][0]["flags"] == ["--use_xnnpack=true"]
    assert options.pop("model_file").startswith(f"{ROOT}/store/")
    (array,) = options.pop("input_files")
    assert (array.startswith(f"{ROOT}/store/"), array.endswith("/picture.npy")) == (True, True)
    assert options == {
        "max_compiles": 4,
        "output_file_path": "result.msgpack",
        "progress": "json",
        "bundle": "bundle",
        "run_dir": f"{ROOT}/searches/0123456789abcdef",
    }


def test_without_a_run_folder_and_a_bundle_there_are_none_there(model: Path, tmp_path: Path) -> None:
    options = sent(asked(model), tmp_path, {})["options"]
    assert options.keys() == {"model_file", "output_file_path", "progress"}


def test_every_text_has_the_names_of_here_and_every_number_stays() -> None:
    there = f"{ROOT}/store/1f/net.tflite"
    found = result_of(None)
    found = replace(
        found,
        model=replace(found.model, file=there),
        configuration=replace(found.configuration, flags=[f"--external_delegate_path={there}"], reason=f"{there}: no"),
        verdict=Verdict("not decided", (0,), f"{there} is damaged"),
        operators=(replace(found.operators[0], reason=f"in {there}", gain=math.inf), found.operators[1]),
        outputs=(OutputErrors("sum", "absolute", Errors(math.inf, 1.0, math.inf, 4, 4), 0.5, math.inf),),
    )
    named = with_host_names(found, HostNames({there: "models/net.tflite"}))
    assert there not in repr(named)
    assert named == replace(
        found,
        model=replace(found.model, file="models/net.tflite"),
        configuration=replace(
            found.configuration,
            flags=["--external_delegate_path=models/net.tflite"],
            reason="models/net.tflite: no",
        ),
        verdict=Verdict("not decided", (0,), "models/net.tflite is damaged"),
        operators=(replace(found.operators[0], reason="in models/net.tflite", gain=math.inf), found.operators[1]),
    )
    assert answer_lines(named)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--device_program=native"], "--device_program=native gives no tensors"),
        (["--device_program=app"], "A search needs evaltools itself on the device, and so Python"),
        (["--split=each"], "--split=each has no effect on a search"),
        (["--parts=2"], "--parts has no effect on a search"),
    ],
)
def test_what_makes_no_sense_is_said_before_a_device_is_looked_for(
    flags: list[str], message: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    request = asked(model, "--use_xnnpack", *flags)
    assert request.devices is not None
    with pytest.raises(UsageError, match=message):
        locate_on_device(read_request(request), read_device_flags(request.devices), Console(), lambda _done: None)


def test_the_folder_of_another_run_is_not_taken(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    journal = open_journal(tmp_path / "run")
    journal.state({REQUEST: "{}"})
    journal.close()
    request = asked(model, "--use_xnnpack", f"--run_dir={tmp_path / 'run'}")
    assert request.devices is not None
    with pytest.raises(UsageError, match="holds another run, no search on a device"):
        locate_on_device(read_request(request), read_device_flags(request.devices), Console(), lambda _done: None)


def test_a_search_of_somebody_else_that_goes_on_is_sealed_anew(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    request = asked(model, "--use_xnnpack", f"--run_dir={tmp_path / 'run'}")
    assert request.devices is not None
    for user in ("theirs", "mine"):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / user))
        with pytest.raises(EvaltoolsError, match="adb"):
            locate_on_device(read_request(request), read_device_flags(request.devices), Console(), lambda _done: None)
    journal = open_journal(tmp_path / "run")
    assert has_own_request(journal)
    journal.close()


@pytest.mark.parametrize("name", ["../../..", "/sdcard", "0123456789abcde", "0123456789abcdef\n"])
def test_a_journal_cannot_name_another_folder_of_the_device(name: str, model: Path, tmp_path: Path) -> None:
    request = asked(model, "--use_xnnpack", f"--run_dir={tmp_path / 'run'}")
    assert request.devices is not None
    flags, on_device = read_device_flags(request.devices), device_request(request, ROOT)
    with _kept_there(request, flags, on_device) as place:
        assert place["run_dir"].startswith("/")
    journal = open_journal(tmp_path / "run")
    journal.state({"search on a device": name})
    journal.close()
    with pytest.raises(UsageError, match="its journal says"), _kept_there(request, flags, on_device):
        pass
