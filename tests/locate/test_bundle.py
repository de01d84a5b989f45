"""What lies in a bundle, and that its script shows the fault without evaltools."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.errors import OutputError
from evaltools.locate.bundle import script, try_script, write_bundle
from evaltools.model import read_model
from tests.locate import found
from tests.locate.bundle_cases import SmallModel, addition, case_of, large_sum, result_of
from tests.runtime.openers import gpu_or_skip
from tests.tflite_writer import Graph

EVERY_FILE = ("README.md", "inputs.npz", "model.tflite", "reproduce.py")
FP16 = "runtime=compiled use_xnnpack=true xnnpack_force_fp16=true"


def faulty(library: Path, fault: str, runtime: str = "litert") -> str:
    return f"runtime={runtime} external_delegate_path={library} external_delegate_options=fault:{fault}"


@pytest.mark.parametrize(
    ("runtime", "fault", "shown"),
    [("litert", "scale;amount:2", "228."), ("tflite_runtime", "scale;amount:2", "228."), ("litert", "nan", "nan")],
)
def test_a_fault_of_an_external_delegate_is_reproduced(
    runtime: str, fault: str, shown: str, faulty_delegate: Path, tmp_path: Path
) -> None:
    case = case_of(addition(), faulty(faulty_delegate, fault, runtime), tmp_path)
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case)
    assert bundle.reproduced, bundle.printed
    assert (bundle.files, bundle.folder) == (EVERY_FILE, str(tmp_path / "bundle"))
    assert "wrong in 3 of 3 runs" in bundle.printed
    assert shown in bundle.printed
    readme = (tmp_path / "bundle" / "README.md").read_text()
    assert readme.startswith(f"# {case.operator} gives wrong values with ")
    assert bundle.printed in readme
    assert (tmp_path / "bundle" / "model.tflite").read_bytes() == case.model.read_bytes()
    with np.load(tmp_path / "bundle" / "inputs.npz", allow_pickle=False) as archive:
        assert sorted(archive.files) == ["expected", "given", "input_0", "input_1"]
        np.testing.assert_array_equal(archive["input_1"], case.inputs[1])
        np.testing.assert_array_equal(archive["given"], case.given)


def test_a_sum_beyond_fp16_is_reproduced_with_compiled_model(tmp_path: Path) -> None:
    case = case_of(large_sum(), FP16, tmp_path, tolerance=100.0)
    assert not abs(case.given.item() - case.expected.item()) < 50_000  # 65 504 or infinity
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case)
    assert bundle.reproduced, bundle.printed
    assert "SUM gives wrong values with XNNPACK in fp16" in (tmp_path / "bundle" / "reproduce.py").read_text()


@pytest.mark.parametrize("exact", [True, False])
def test_what_a_gpu_gives_is_reproduced_as_far_as_it_is_wrong(exact: bool, tmp_path: Path) -> None:
    (tmp_path / "probe.tflite").write_bytes(addition().content)
    gpu_or_skip(read_model(tmp_path / "probe.tflite"))
    flags = f"runtime=compiled use_gpu=true gpu_precision_loss_allowed={'false' if exact else 'true'}"
    case = case_of(large_sum(), flags, tmp_path, tolerance=100.0)
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case)
    assert bundle.reproduced != exact, bundle.printed
    assert "fully accelerated: True" in bundle.printed


@pytest.mark.parametrize(
    "flags",
    ["runtime=litert use_xnnpack=true", "runtime=tflite_runtime", "runtime=compiled"],
)
def test_without_a_fault_nothing_is_reproduced(flags: str, tmp_path: Path) -> None:
    case = case_of(addition(), flags, tmp_path)
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case)
    assert not bundle.reproduced
    assert "wrong in 0 of 3 runs" in bundle.printed


def test_a_fault_of_some_runs_is_run_often(faulty_delegate: Path, tmp_path: Path) -> None:
    case = case_of(addition(), faulty(faulty_delegate, "offset;amount:3;every:10"), tmp_path, runs=10)
    result = result_of(case, [found.evidence("single", "0", 1, 10)])
    bundle = write_bundle(tmp_path / "bundle", result, case)
    assert bundle.reproduced, bundle.printed
    assert "of 50 runs" in bundle.printed


def test_a_part_with_a_state_is_run_once(faulty_delegate: Path, tmp_path: Path) -> None:
    graph = Graph()
    fed, state = graph.tensor("fed", (1, 4)), graph.tensor("state", (1, 4), variable=True)
    graph.node("ADD", [fed, state], graph.tensor("sum", (1, 4)), "AddOptions")
    model = SmallModel(graph.to_bytes([fed], [2]), (np.ones((1, 4), np.float32),), "ADD", "sum")
    case = case_of(model, faulty(faulty_delegate, "scale"), tmp_path)
    assert "wrong in 1 of 1 runs" in write_bundle(tmp_path / "bundle", result_of(case), case).printed


@pytest.mark.parametrize("fault", ["stale", "frozen"])
def test_an_output_of_another_run_is_reproduced(fault: str, faulty_delegate: Path, tmp_path: Path) -> None:
    case = case_of(addition(), faulty(faulty_delegate, fault), tmp_path)
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case)
    assert bundle.reproduced, bundle.printed


def test_a_delegate_that_cannot_be_loaded_reproduces_nothing(rounding_delegate: Path, tmp_path: Path) -> None:
    library = tmp_path / "gone.so"
    library.write_bytes(rounding_delegate.read_bytes())
    case = case_of(addition(), f"runtime=litert external_delegate_path={library}", tmp_path)
    library.unlink()
    bundle = write_bundle(tmp_path / "bundle", result_of(case), case)
    assert not bundle.reproduced
    assert "gone.so" in bundle.printed


def test_an_npu_has_no_script_but_everything_else(tmp_path: Path) -> None:
    case = case_of(addition(), "runtime=compiled", tmp_path)
    flags = "runtime=compiled use_npu=true npu_vendor=qualcomm"
    npu = replace(case, configuration=Configuration.from_text("npu", flags))
    bundle = write_bundle(tmp_path / "bundle", result_of(npu), npu)
    assert (bundle.reproduced, bundle.files) == (False, EVERY_FILE[:3])
    assert bundle.printed.startswith("no script: ")


def test_a_process_that_dies_reproduces_a_crash(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source = "#include <stdlib.h>\nvoid *tflite_plugin_create_delegate(void) { abort(); }"
    library = tmp_path / "crashing.so"
    build = [compiler, "-x", "c", "-", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run(build, input=source, text=True, check=True)
    case = case_of(addition(), "runtime=litert kernels=builtin", tmp_path)
    inputs: dict[str, Any] = {name: values for name, values in case.loaded.items() if name not in ("given", "before")}
    np.savez(case.arrays, **inputs)
    crash = replace(
        case, configuration=Configuration.from_text("crash", f"runtime=litert external_delegate_path={library}")
    )
    bundle = write_bundle(tmp_path / "bundle", result_of(crash), crash)
    assert bundle.reproduced
    assert "(its process was ended by SIGABRT)" in bundle.printed
    assert str(tmp_path) not in bundle.printed
    assert (tmp_path / "bundle" / "README.md").read_text().startswith("# ADD crashes with crashing.so")


def test_names_of_a_model_do_no_harm(faulty_delegate: Path, tmp_path: Path) -> None:
    name = 'a"""b\n`c``d|é<script>@someone #1 \\ $x {y} \udcff'.encode("utf-8", "replace").decode()
    case = replace(case_of(addition(name), faulty(faulty_delegate, "zero"), tmp_path), operator=name)
    bundle = write_bundle(tmp_path / 'odd "folder" é $x', result_of(case), case)
    assert bundle.reproduced, bundle.printed


def test_without_a_case_there_is_nothing_to_reproduce(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "bundle", result_of(None), None)
    assert (bundle.files, bundle.reproduced, bundle.printed) == (("README.md",), False, "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle").chmod(0o500)
    with pytest.raises(OutputError, match="cannot be written"):
        write_bundle(tmp_path / "bundle", result_of(None), None)


# ---- The script -----------------------------------------------------------------------------


def script_of(flags: str, folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    case = replace(
        case_of(addition(), "runtime=litert", folder), configuration=Configuration.from_text("tested", flags)
    )
    text = script(case, "it is wrong", 3)
    ast.parse(text)
    return text


@pytest.mark.parametrize("flags", ["runtime=litert external_delegate_path=/a.so", "runtime=compiled use_gpu=true"])
def test_scripts_are_short_need_the_wheel_and_numpy_and_read_as_ruff_wants_them(flags: str, tmp_path: Path) -> None:
    text = script_of(flags, tmp_path)
    assert len(text.splitlines()) < 75
    nodes = list(ast.walk(ast.parse(text)))
    names = {str(each.module) for each in nodes if isinstance(each, ast.ImportFrom)}
    names |= {alias.name for each in nodes if isinstance(each, ast.Import) for alias in each.names}
    assert {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) == {"numpy", "ai_edge_litert"}
    path = tmp_path / "reproduce.py"
    path.write_text(text)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length=120", "--select=E,F,W,I,B,SIM"]
    done = subprocess.run([*command, "--ignore=B905", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_external_delegates_are_loaded_in_order_with_their_options(tmp_path: Path) -> None:
    flags = (
        f"runtime=litert external_delegate_path={tmp_path}/a.so external_delegate_options='k:v;p:q' "
        f"external_delegate_path={tmp_path}/b.so num_interpreter_threads=-1 kernels=builtin"
    )
    text = script_of(flags, tmp_path)
    assert f"DELEGATES = [('{tmp_path}/a.so', {{'k': 'v', 'p': 'q'}}), ('{tmp_path}/b.so', {{}})]" in text
    assert "OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, None, DELEGATES" in text
    text = script_of("runtime=tflite_runtime", tmp_path)
    assert "from tflite_runtime.interpreter import" in text
    assert "'numpy<2'" in text


def test_compiled_model_gets_the_options_of_the_gpu_and_of_xnnpack(tmp_path: Path) -> None:
    flags = "runtime=compiled use_gpu=true gpu_precision_loss_allowed=false gpu_infinite_float_capping=true"
    text = script_of(flags, tmp_path)
    assert "gpu_options.enforce_f32 = True\n" in text
    assert "gpu_options.infinite_float_capping = True\n" in text
    assert "allow_src_quantized" not in text
    assert "HardwareAccelerator.GPU | HardwareAccelerator.CPU" in text
    text = script_of("runtime=compiled use_xnnpack=true xnnpack_force_fp16=true num_interpreter_threads=2", tmp_path)
    assert "num_threads=2, kernel_mode=litert.CpuKernelMode.DELEGATE, xnnpack_flags=7" in text


# ---- Trying it ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "timeout_s", "reproduced", "printed"),
    [
        ("print('é\\nwrong in 1 of 3 runs'); raise SystemExit(1)", 60.0, True, "é\nwrong in 1 of 3 runs"),
        ("print('wrong in 0 of 3 runs')", 60.0, False, "wrong in 0 of 3 runs"),
        ("raise SystemExit(1)", 60.0, False, ""),
        ("import os; print('begun'); os.kill(os.getpid(), 11)", 60.0, False,
         "begun\n(its process was ended by SIGSEGV)"),
        ("print('begun')\nimport time; time.sleep(100)", 3.0, False, "begun\n(ended after 3 seconds)"),
    ],
)  # fmt: skip
def test_what_a_script_shows(source: str, timeout_s: float, reproduced: bool, printed: str, tmp_path: Path) -> None:
    (tmp_path / "reproduce.py").write_text(source)
    trial = try_script(tmp_path / "reproduce.py", timeout_s)
    assert (trial.reproduced, trial.printed) == (reproduced, printed)
