"""Whose run folder it is: a search goes on only in that of the same search."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.engine.journal import Journal, open_journal
from evaltools.engine.run_folder import IDENTITY
from evaltools.errors import UsageError
from evaltools.locate import run
from evaltools.locate.command import COMMAND, request_of_flags
from evaltools.locate.request import LocateRequest, read_request
from evaltools.request.flags import parse_flags
from tests import locate_models


def search(folder: Path, *flags: str) -> LocateRequest:
    model = folder / "net.tflite"
    model.write_bytes(locate_models.all_models()["net"])
    words = [str(model), "--num_inputs=1", f"--run_dir={folder / 'run'}", *flags]
    return read_request(
        request_of_flags(parse_flags("locate", "", "", COMMAND.groups, words), ("evaltools", "locate", *words))
    )


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "delegate.so"
    path.write_bytes(b"built once")
    return path


def begun(request: LocateRequest, folder: Path) -> Journal:
    journal = open_journal(folder / "run")
    journal.state(run._new_facts(journal, request))
    assert run._new_facts(journal, request) == {}
    return journal


def test_a_library_that_was_built_anew_is_noticed_before_it_is_loaded(library: Path, tmp_path: Path) -> None:
    request = search(tmp_path, f"--external_delegate_path={library}")
    begun(request, tmp_path).close()
    library.write_bytes(b"built twice")
    with pytest.raises(UsageError, match=r"holds another run: the library .*delegate\.so was .*, now it is"):
        run.locate(request)


def test_another_runtime_and_another_evaltools_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = search(tmp_path, "--use_xnnpack")
    journal = begun(request, tmp_path)
    stated = IDENTITY.read(journal)
    assert stated is not None
    assert version("ai-edge-litert") in stated.configurations["that is tested"]["its runtime"]
    IDENTITY.write(journal, replace(stated, evaltools="0.0.1"))
    with pytest.raises(UsageError, match=r"evaltools was 0\.0\.1, now it is"):
        run._new_facts(journal, request)
    IDENTITY.write(journal, stated)
    monkeypatch.setattr(run, "installed_version", lambda _name: "9.9.9")
    with pytest.raises(UsageError, match=r"its runtime was litert .*, now it is litert 9\.9\.9"):
        run._new_facts(journal, request)
    journal.close()


def test_a_library_whose_name_is_no_unicode(tmp_path: Path) -> None:
    library = Path(os.fsdecode(os.fsencode(tmp_path) + b"/dele\xffgate.so"))
    library.write_bytes(b"no library")
    begun(search(tmp_path, f"--external_delegate_path={library}"), tmp_path).close()


def test_a_file_where_tensors_should_lie_is_said(tmp_path: Path) -> None:
    request = search(tmp_path, "--use_xnnpack")
    open_journal(tmp_path / "run").close()
    (tmp_path / "run" / "tensors").write_text("mine")
    with pytest.raises(UsageError, match="tensors cannot be made: File exists; give another --run_dir"):
        run.locate(request)
