from __future__ import annotations

import ast
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from evaltools.configuration import Configuration
from evaltools.delegates import COMPILED, LITERT, TFLITE_RUNTIME
from evaltools.locate.bundle.script import NoScript, ScriptFacts, script


def facts_of(flags: str, runtime: str, **changed: object) -> ScriptFacts:
    values: dict[str, object] = {
        "headline": "it is wrong",
        "configuration": Configuration.from_text("tested", flags),
        "runtime": runtime,
        "tolerances": {"failing.tflite": 0.5},
        "unit": "absolute",
        "runs": 3,
        "outputs": {"failing.tflite": 0, "passing.tflite": 1},
    }
    return ScriptFacts(**values | changed)  # type: ignore[arg-type]


def script_of(flags: str, runtime: str, **changed: object) -> str:
    text = script(facts_of(flags, runtime, **changed))
    ast.parse(text)
    return text


def test_a_script_needs_nothing_but_the_wheel_and_numpy() -> None:
    for runtime, flags in ((LITERT, ""), (TFLITE_RUNTIME, ""), (COMPILED, "use_gpu=true")):
        text = script_of(flags, runtime)
        nodes = ast.walk(ast.parse(text))
        names = {each.module for each in nodes if isinstance(each, ast.ImportFrom)}
        names |= {
            alias.name for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Import) for alias in each.names
        }
        packages = {str(name).partition(".")[0] for name in names} - set(sys.stdlib_module_names)
        assert packages == {"numpy", "tflite_runtime" if runtime == TFLITE_RUNTIME else "ai_edge_litert"}


def test_a_fault_of_the_mean_is_looked_for_in_the_mean() -> None:
    text = script_of("", LITERT, on_average=True, unit="steps", tolerances={"failing.tflite": 0.4})
    assert 'bool((to_one_side(given, expected) if model == "failing.tflite" else off.max()) > TOLERANCES' in text
    assert "# steps of the quantised output, on average to one side" in text
    assert "to_one_side" not in script_of("", LITERT)


@pytest.mark.parametrize("flags", ["", "external_delegate_path=a.so", "use_gpu=true"])
def test_scripts_read_as_ruff_wants_them(flags: str, tmp_path: Path) -> None:
    for zeros in (False, True):
        path = tmp_path / "reproduce.py"
        path.write_text(script_of(flags, COMPILED if "gpu" in flags else LITERT, zeros_between=zeros))
        command = [sys.executable, "-m", "ruff", "check", "--isolated", "--line-length=120", "--select=E,F,W,I,B,SIM"]
        done = subprocess.run([*command, "--ignore=B905", str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_external_delegates_are_loaded_in_order_with_their_options(tmp_path: Path) -> None:
    flags = (
        f"external_delegate_path={tmp_path}/a.so external_delegate_options='k:v;p:\"C:\\x\"' "
        f"external_delegate_path={tmp_path}/b.so num_interpreter_threads=-1 kernels=builtin"
    )
    text = script_of(flags, TFLITE_RUNTIME)
    assert f'LIBRARIES = ["{tmp_path}/a.so", "{tmp_path}/b.so"]' in text
    assert 'OPTIONS = [{"k": "v", "p": "C:\\\\x"}, {}]' in text
    assert 'opened(model, "BUILTIN_WITHOUT_DEFAULT_DELEGATES", None, delegates)' in text
    assert "from tflite_runtime.interpreter import load_delegate" in text
    assert "'numpy<2'" in text


def test_the_gpu_gets_its_options() -> None:
    text = script_of("use_gpu=true gpu_precision_loss_allowed=false gpu_infinite_float_capping=true", COMPILED)
    assert "gpu_options.enforce_f32 = True\n" in text
    assert "gpu_options.infinite_float_capping = True\n" in text
    assert "allow_src_quantized" not in text
    assert "compiled_for(model, HardwareAccelerator.GPU | HardwareAccelerator.CPU)" in text
    assert "gpu_options.enforce_f32 = False\n" in script_of("use_gpu=true", COMPILED)


def test_an_npu_gets_its_libraries_and_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "1.2.3")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: ModuleSpec(name, None))
    options = (
        "intel_openvino_graph_backends=cpu intel_openvino_performance_mode=latency "
        "intel_openvino_enable_weight_sharing=false intel_openvino_configs_map=INFERENCE_PRECISION_HINT=f32"
    )
    text = script_of(f"use_npu=true npu_vendor=intel_openvino {options}", COMPILED)
    intel = "options.intel_openvino_options"
    assert f'{intel}.graph_backend = {intel}.GRAPH_BACKEND["CPU"]' in text
    assert f'{intel}.performance_mode = {intel}.PERFORMANCE_MODE["LATENCY"]' in text
    assert f"{intel}.enable_weight_sharing = False" in text
    assert f'{intel}.configs_map = {{"INFERENCE_PRECISION_HINT": "f32"}}' in text
    assert "pip install ai-edge-litert==1.2.3 openvino==1.2.3 numpy" in text
    assert "    load_openvino()\n" in text
    assert '"vendors" / "intel_openvino" / "dispatch"' in text
    options = "qualcomm_vtcm_size=3 qualcomm_use_fold_relu=false qualcomm_dump_tensor_ids=1,2 qualcomm_dlc_dir=x"
    flags = f"use_npu=true npu_vendor=qualcomm dispatch_library_path={tmp_path} {options}"
    text = script_of(flags, COMPILED)
    assert f'LIBRARIES = ["{tmp_path}"]' in text
    assert "dispatch_library_path=LIBRARIES[0]," in text
    assert '"vendors" / "qualcomm" / "compiler"' in text
    for line in ("vtcm_size = 3", "use_fold_relu = False", "dump_tensor_ids = [1, 2]", 'dlc_dir = "x"'):
        assert f"options.qualcomm_options.{line}\n" in text


def test_xnnpack_in_compiled_model_gets_its_flags() -> None:
    text = script_of("use_xnnpack=true xnnpack_force_fp16=true num_interpreter_threads=2", COMPILED)
    assert "num_threads=2, kernel_mode=litert.CpuKernelMode.DELEGATE, xnnpack_flags=7" in text
    assert "compiled = compiled_for(model, HardwareAccelerator.CPU)" in text


def test_there_is_no_script_for_runtimes_of_other_packages() -> None:
    with pytest.raises(NoScript, match="the runtime theirs is another package's"):
        script(facts_of("", "theirs"))


@pytest.mark.parametrize("headline", ['"""', "\\", 'ends with "', "two\nlines", "é\u2028\udcff", "${x} $y {z}", "\0"])
def test_headlines_cannot_end_the_docstring(headline: str) -> None:
    tree = ast.parse(script_of("", LITERT, headline=headline))
    assert "pip install" in (ast.get_docstring(tree) or "")
    assert len([node for node in tree.body if isinstance(node, ast.Expr)]) == 1
