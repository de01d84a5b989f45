"""``evaltools doctor``: what works here, proven; what does not, with the next step."""

from __future__ import annotations

import importlib.util
import json
import time
from pathlib import Path

import pytest

from evaltools.candidates import SECONDS
from evaltools.cli.main import main
from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable, SessionEnded
from evaltools.inspection import machine_check
from evaltools.inspection.machine_check import Finding
from evaltools.model import ModelFile
from evaltools.runtime import Inference, Session
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.session import Array
from tests.command import evaltools
from tests.runtime.fake import FakeSession

PACKAGES = {"ai-edge-litert": "ai_edge_litert", "tflite-runtime": "tflite_runtime"}


def test_every_runtime_and_delegate_is_tried_and_proven(tmp_path: Path) -> None:
    output = tmp_path / "found.json"
    completed = evaltools("doctor", f"--output_file_path={output}")
    assert (completed.code, completed.err) == (0, "")
    found = {(entry["kind"], entry["name"]): entry for entry in json.loads(output.read_text())}
    for name, package in PACKAGES.items():
        if importlib.util.find_spec(package) is not None:
            assert found["runtime", name]["state"] == "works", found["runtime", name]
            assert "19 nodes; largest difference from builtin kernels 0" in found["runtime", name]["proof"]
    assert found["delegate", "xnnpack"]["state"] == "works"
    assert "19 of 19 nodes" in found["delegate", "xnnpack"]["proof"]
    assert found["delegate", "NNAPI"]["state"] == "elsewhere"
    assert "Android" in found["delegate", "NNAPI"]["proof"]
    assert found["delegate", "NPU of qualcomm"]["next_step"].endswith(
        ("from the vendor's SDK", "to emulate that chip here")
    )
    assert found["delegate", "gpu fp32"]["here"].startswith("WebGPU; neither Android's OpenCL or OpenGL delegate")
    assert found["delegate", "NPU of qualcomm"]["here"].endswith("the NPU of a phone only emulated (--npu_soc)")
    assert completed.out.count("         here: ") == 3
    for entry in found.values():
        assert entry["state"] != "missing" or entry["next_step"]
        assert f"{entry['name']} " in completed.out.replace("\n", " ")


def test_without_a_runtime_nothing_can_be_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def nothing_installed(_model: ModelFile, configuration: Configuration, _timeout_s: float) -> FakeSession:
        raise ConfigurationUnavailable(f"the runtime {configuration.runtime} is not installed; pip install it")

    monkeypatch.setattr("evaltools.inspection.machine_check.open_isolated", nothing_installed)
    code = main(["doctor"])
    out, err = capsys.readouterr()
    assert code == 3
    assert "the runtime litert is not installed; pip install it" in out
    assert "no runtime works here" in err
    assert "\n  yes  xnnpack" not in out


def test_what_several_lack_is_said_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = {"gpu fp32": "no Vulkan", "gpu fp16": "no Vulkan", "NPU": "no driver"}
    found = [Finding("delegate", name, "missing", "", reason) for name, reason in reasons.items()]
    monkeypatch.setattr("evaltools.inspection.machine_check.findings", lambda: iter(found))
    main(["doctor"])
    said = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith(" " * 9)]
    assert said == ["no Vulkan", "for the same reason as gpu fp32", "no driver"]


@pytest.mark.parametrize("factor", [1.001, float("nan")])
def test_a_delegate_with_wrong_numbers_does_not_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], factor: float
) -> None:
    """Right is what the first runtime gives."""
    real = open_isolated

    class Wrong:
        def __init__(self, session: object) -> None:
            self._session = session

        def __getattr__(self, name: str) -> object:
            return getattr(self._session, name)

        def run(self, inputs: object) -> Inference:
            outputs = self._session.run(inputs).outputs  # type: ignore[attr-defined]
            return Inference(tuple(values * factor for values in outputs), (1,))

    def opened(model: ModelFile, configuration: Configuration, timeout_s: float) -> object:
        session = real(model, configuration, timeout_s)
        return Wrong(session) if configuration.name == "xnnpack" else session

    monkeypatch.setattr("evaltools.inspection.machine_check.open_isolated", opened)
    code = main(["doctor"])
    line, next_step = capsys.readouterr().out.split("xnnpack  ")[1].splitlines()[:2]
    assert "largest difference" in line
    assert "its numbers are wrong: at most 1e-05 was expected" in next_step
    assert code == 0


def hang(_model: ModelFile, _configuration: Configuration) -> Session:
    time.sleep(600)
    raise AssertionError("it was to be ended")


@pytest.mark.parametrize("moment", ["while the model was loaded", "during a run"])
def test_what_hangs_costs_itself_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], moment: str
) -> None:
    real = open_isolated

    def no_answer(_inputs: object) -> tuple[Array, ...]:
        raise SessionEnded(f"no answer within 120 s {moment}; it was ended", hung=True)

    def opened(model: ModelFile, configuration: Configuration, timeout_s: float) -> object:
        assert timeout_s == SECONDS
        if configuration.name == "xnnpack":
            return real(model, configuration, 1.0, hang) if moment.startswith("while") else FakeSession(no_answer)
        return real(model, configuration, timeout_s)

    monkeypatch.setattr(machine_check, "open_isolated", opened)
    monkeypatch.setattr(machine_check, "PROVEN_DELEGATES", machine_check.PROVEN_DELEGATES[:3])
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert f"s {moment}; it was ended; its driver or library hangs: update that, or leave it out" in out
    assert "yes  xnnpack fp16" in out
