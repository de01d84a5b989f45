from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltools.locate.bundle.trial import software_gpu, try_script
from evaltools.runtime.compiled.gpu import default_folder


def trial_of(tmp_path: Path, source: str, timeout_s: float = 60.0) -> tuple[bool, bool, str]:
    script = tmp_path / "reproduce.py"
    script.write_text(source)
    trial = try_script(script, timeout_s)
    return trial.reproduced, trial.crashed, trial.printed


def test_a_script_reproduces_with_its_status_and_its_word(tmp_path: Path) -> None:
    assert trial_of(tmp_path, "print('é\\nreproduced'); raise SystemExit(1)") == (True, False, "é\nreproduced")
    assert trial_of(tmp_path, "print('not reproduced')") == (False, False, "not reproduced")


@pytest.mark.parametrize(
    "source", ["raise SystemExit(1)", "raise ValueError", "print('reproduced'); raise SystemExit(2)"]
)
def test_neither_will_do_alone(source: str, tmp_path: Path) -> None:
    assert trial_of(tmp_path, source)[:2] == (False, False)


def test_a_process_that_dies_is_told(tmp_path: Path) -> None:
    reproduced, crashed, printed = trial_of(tmp_path, "import os; print('begun'); os.kill(os.getpid(), 11)")
    assert (reproduced, crashed) == (False, True)
    assert printed == "begun\n(its process was ended by SIGSEGV)"


def test_a_process_that_hangs_is_ended(tmp_path: Path) -> None:
    source = "print('begun', flush=True)\nimport time; time.sleep(100)"
    assert trial_of(tmp_path, source, 3.0) == (False, False, "begun\n(ended after 3 seconds)")


def test_where_the_bundle_lies_is_not_told(tmp_path: Path) -> None:
    assert str(tmp_path) not in trial_of(tmp_path, "raise ValueError(__file__)")[2]


def test_a_software_gpu_is_found_where_there_is_no_other(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path), "LD_LIBRARY_PATH": "/mine"}
    assert software_gpu(environment) == {}
    folder = default_folder(environment)
    libraries = folder / "root" / "usr" / "lib" / "x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    for name in ("libvulkan.so.1", "libvulkan_lvp.so"):
        (libraries / name).touch()
    (folder / "icd.json").write_text(json.dumps({"ICD": {"library_path": str(libraries / "libvulkan_lvp.so")}}))
    given = environment | {"VK_DRIVER_FILES": str(folder / "icd.json")}
    assert software_gpu(given) == {
        "VK_DRIVER_FILES": str(folder / "icd.json"),
        "LD_LIBRARY_PATH": f"{libraries}:/mine",
    }
    assert software_gpu(environment | {"VK_DRIVER_FILES": "/another/icd.json"}) == {}
