"""The flags of vendors of NPUs are those of LiteRT's own tools, and what has no effect is refused."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from evaltools.configuration import Configuration
from evaltools.delegates.npu_flags import FLAGS, NOT_EMULATED
from evaltools.delegates.npu_settings import fields, vendor_flags
from evaltools.parameter import format_value
from evaltools.runtime.emulated.compiler import compile_for
from tests import tiny_models
from tests.runtime.emulated.bare import emulator_or_skip
from tests.runtime.openers import model_of

_SECTION: Final = re.compile(r"Flags from litert/tools/flags/vendors/\w+\.cc:(.*?)(?=Flags from|Try --helpfull|$)")
_FLAG: Final = re.compile(r"--(\w+) \(.*?\); default: (.*?);(?= --\w+ \(|\s*$)")


@pytest.fixture(scope="module")
def compiler() -> Path:
    """LiteRT's own compiler, which has the flags of all vendors."""
    package = importlib.util.find_spec("ai_edge_litert")
    program = Path(str(package.origin)).parent / "tools" / "apply_plugin_main" if package else Path()
    if not program.is_file():
        pytest.skip("the ai-edge-litert here has no apply_plugin_main")
    return program


def printed_by(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return " ".join((done.stdout + done.stderr).split())


def test_every_flag_of_a_vendor_has_its_native_name_and_default(compiler: Path) -> None:
    sections = _SECTION.findall(printed_by(compiler, "--helpfull"))
    native = {name: text.strip('"') for section in sections for name, text in _FLAG.findall(section)}
    assert len(sections) == 5
    assert {name: format_value(flag.default) for name, flag in FLAGS.items()} == native


def test_every_choice_is_one_of_the_native_tool_which_takes_no_other(compiler: Path) -> None:
    closed = [flag for flag in FLAGS.values() if flag.choices]
    for place in range(max(len(flag.choices) for flag in closed)):
        words = [f"--{flag.name}={flag.choices[min(place, len(flag.choices) - 1)]}" for flag in closed]
        assert "Illegal value" not in printed_by(compiler, "--cmd=noop", *words)
    refused = printed_by(compiler, "--cmd=noop", *(f"--{flag.name}=another" for flag in closed))
    assert [flag.name for flag in closed if f"for flag '{flag.name}'" not in refused] == []


def test_fields_of_python_are_those_of_the_package() -> None:
    """With the names of its enumerations."""
    litert = pytest.importorskip("ai_edge_litert.options", reason="ai-edge-litert is not installed")
    options = litert.Options()
    for flag in (flag for flag in FLAGS.values() if flag.field):
        own = options.qualcomm_options
        assert hasattr(own, flag.field), flag.name
        for choice in set(flag.choices) - {"lpai"}:
            (field,) = fields(configured(f"npu_vendor=qualcomm {flag.name}={choice}").delegates)
            assert field.member in getattr(own, flag.field.upper()).__members__, field.given


def configured(flags: str) -> Configuration:
    return Configuration.from_text("test", f"use_npu=true {flags}")


def test_the_options_of_the_compiler_get_members_lists_and_values() -> None:
    given = configured(
        "npu_vendor=qualcomm qualcomm_backend=htp qualcomm_dump_tensor_ids=3,17 qualcomm_vtcm_size=4"
    ).delegates
    found = {field.name: (field.value, field.member) for field in fields(given)}
    assert found["dump_tensor_ids"] == ([3, 17], "")
    assert found["vtcm_size"] == (4, "")
    assert found["backend"] == ("htp", "HTP")


def test_the_compiler_gets_the_flags_as_they_were_given() -> None:
    given = configured("npu_vendor=mediatek mediatek_optimization_hint=normal mediatek_dla_dir='a b'").delegates
    assert vendor_flags(given) == ["--mediatek_optimization_hint=normal", "--mediatek_dla_dir=a b"]


def test_flags_that_an_emulated_chip_refuses_change_nothing_or_leave_nothing_to_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And those that remain, of the compiler for HTP, are passed on and change what is compiled."""
    emulator_or_skip()
    monkeypatch.chdir(tmp_path)  # some write files where they run
    model = model_of(tiny_models.conv((1, 16, 16, 4), 8), tmp_path)

    def compiled(*flags: str) -> bytes:
        return compile_for(model, "SM8750", [f"--qualcomm_{flag}" for flag in flags]).content

    plain = compiled()
    without_effect = [
        *("htp_performance_mode=burst", "htp_perf_ctrl_mode=auto", "htp_pd_session=signed", "profiling=optrace"),
        *("dsp_performance_mode=burst", "dsp_perf_ctrl_mode=auto", "dsp_pd_session=signed", "dsp_encoding=dynamic"),
        *("lpai_target=x86", "lpai_fps=30", "lpai_ftrt_ratio=5", "lpai_client_perf_type=real_time"),
        *("lpai_core_affinity_type=hard", "lpai_core_selection=1", f"dsp_skel_dir={tmp_path}", "log_level=verbose"),
    ]
    assert compiled(*without_effect) == plain
    nothing_to_run = ["backend=ir", "enable_just_in_time=true", f"dlc_dir={tmp_path}", f"saver_output_dir={tmp_path}"]
    assert [flag for flag in nothing_to_run if len(compiled(flag)) >= len(plain) / 2] == []
    stated = {flag.partition("=")[0] for flag in [*without_effect, *nothing_to_run]} | {"dump_tensor_ids"}
    assert {f"qualcomm_{name}" for name in stated} == set(NOT_EMULATED)
    for flag in ("optimization_level=O2", "use_conv_hmx=false", "vtcm_size=2", "num_hvx_thread=1", "htp_p_point=1"):
        assert compiled(flag) != plain, flag
