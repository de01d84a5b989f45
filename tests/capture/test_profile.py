"""Profiles of models that a program runs itself, compared with what the program knows of its own calls."""

from __future__ import annotations

import importlib
import json
import mmap
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evaltools
from evaltools.errors import OutputError, UsageError
from tests.interpreters import RUNTIMES, runtime_module
from tests.report.files.test_benchmark_trace import violations

MODELS = Path(__file__).resolve().parents[2] / "datasets" / "sample" / "models"
FLOAT = str(MODELS / "float32.tflite")
WRAPPED = {"ModifyGraphWithDelegate", "AllocateTensors", "SetTensor", "Invoke", "GetTensor"}


def events(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "trace.json").read_text())["traceEvents"]
    return found


def work(folder: Path, kind: str) -> list[dict[str, Any]]:
    return [event for event in events(folder) if event["ph"] == "X" and event["name"] == kind]


def rows(folder: Path) -> dict[int, str]:
    return {
        event["tid"]: event["args"]["name"]
        for event in events(folder)
        if event["ph"] == "M" and event["name"] == "thread_name"
    }


def opened(runtime: str, model: str = FLOAT) -> Any:
    interpreter = runtime_module(runtime).Interpreter(model)
    interpreter.allocate_tensors()
    return interpreter


def native_class(runtime: str) -> Any:
    return runtime_module(runtime)._interpreter_wrapper.InterpreterWrapper


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_call_is_there_and_lies_within_the_programs_own_times(runtime: str, tmp_path: Path) -> None:
    before = time.perf_counter()
    with evaltools.profile(tmp_path) as recorded:
        begun = time.perf_counter()
        interpreter = opened(runtime)
        place = interpreter.get_input_details()[0]
        interpreter.set_tensor(place["index"], np.zeros(place["shape"], np.float32))
        own_us = []
        for _ in range(3):
            start = time.perf_counter()
            interpreter.invoke()
            own_us.append(((start - begun) * 1e6, (time.perf_counter() - before) * 1e6))
        interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert violations(events(tmp_path)) == []
    counts = Counter(event["name"] for event in events(tmp_path) if event["ph"] == "X")
    assert counts == {"open": 1, "allocate": 1, "write input": 1, "invoke": 3, "read output": 1}
    invokes = work(tmp_path, "invoke")
    for event, (start, end) in zip(invokes, own_us, strict=True):
        assert start <= event["ts"] <= event["ts"] + event["dur"] <= end
    assert invokes[0]["ts"] + invokes[0]["dur"] <= invokes[1]["ts"]
    (model,) = recorded.summary.models
    assert model.calls["invoke"].calls == 3
    assert model.calls["invoke"].total_ms == pytest.approx(sum(event["dur"] for event in invokes) / 1e3)
    assert set(rows(tmp_path).values()) == {"float32.tflite (MainThread)"}
    assert json.loads((tmp_path / "summary.json").read_text())["models"][0]["name"] == "float32.tflite"


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_nodes_are_those_that_the_interpreter_lists(runtime: str, tmp_path: Path) -> None:
    module = runtime_module(runtime)
    kernels = module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    with evaltools.profile(tmp_path) as recorded:
        plain = module.Interpreter(FLOAT, experimental_op_resolver_type=kernels)
        plain.allocate_tensors()
        plain.invoke()
        delegated = opened(runtime)
        delegated.invoke()
    listed = [operator["op_name"] for operator in plain._get_ops_details()]
    without, with_xnnpack = recorded.summary.models
    assert (without.nodes, without.delegated_nodes, without.cpu_operators) == (len(listed), 0, Counter(listed))
    assert [operator["op_name"] for operator in delegated._get_ops_details()].count("DELEGATE") == 1
    assert (with_xnnpack.nodes, with_xnnpack.delegated_nodes) == (len(listed), len(listed))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_models_of_before_methods_looked_up_before_and_signatures_are_seen(runtime: str, tmp_path: Path) -> None:
    invoke, signature = opened(runtime).invoke, opened(runtime).get_signature_runner()
    (name,) = signature.get_input_details()
    with evaltools.profile(tmp_path) as recorded:
        invoke()
        signature(**{name: np.zeros(signature.get_input_details()[name]["shape"], np.float32)})
    found = [(model.name, model.calls["invoke"].calls) for model in recorded.summary.models]
    assert found == [("model opened before", 1), ("model opened before #2", 1)]


def test_a_compiled_model_and_its_buffers_are_seen(tmp_path: Path) -> None:
    compiled_model = pytest.importorskip("ai_edge_litert.compiled_model")
    with evaltools.profile(tmp_path) as recorded:
        model = compiled_model.CompiledModel.from_file(FLOAT)
        inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
        inputs[0].write(np.zeros((1, 64, 64, 3), np.float32))
        model.run_by_index(0, inputs, outputs)
        outputs[0].read(10, np.float32)
    found = {
        (entry.name, kind): calls.calls for entry in recorded.summary.models for kind, calls in entry.calls.items()
    }
    assert found == {
        ("float32.tflite", "open"): 1,
        ("float32.tflite", "invoke"): 1,
        ("tensor buffers", "write input"): 1,
        ("tensor buffers", "read output"): 1,
    }


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_everything_is_put_back_also_after_an_error_which_is_raised(runtime: str, tmp_path: Path) -> None:
    interpreter = opened(runtime)
    before = dict(vars(native_class(runtime)))

    def fail() -> None:
        with evaltools.profile(tmp_path):
            assert {name for name in WRAPPED if vars(native_class(runtime))[name] is not before[name]} == WRAPPED
            interpreter.invoke()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert dict(vars(native_class(runtime))) == before
    assert len(work(tmp_path, "invoke")) == 1


def test_a_call_that_fails_is_marked_and_the_interpreter_goes_on(tmp_path: Path) -> None:
    interpreter = opened("ai_edge_litert")
    with evaltools.profile(tmp_path) as recorded:
        with pytest.raises(ValueError, match="imension") as kept:
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.zeros((1, 2), np.float32))
        interpreter.allocate_tensors()
        interpreter.invoke()
    assert kept.value is not None
    assert [event["args"].get("failed") for event in work(tmp_path, "write input")] == [True]
    assert recorded.summary.models[0].calls["write input"].failed == 1


def test_threads_have_rows_of_their_own(tmp_path: Path) -> None:
    interpreters = [opened("ai_edge_litert") for _ in range(3)]

    def run(interpreter: Any) -> None:
        for _ in range(20):
            interpreter.invoke()

    with evaltools.profile(tmp_path):
        threads = [
            threading.Thread(target=run, args=(each,), name=f"t{number}") for number, each in enumerate(interpreters)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    names = rows(tmp_path)
    counts = Counter(names[event["tid"]] for event in work(tmp_path, "invoke"))
    assert sorted(name.rpartition(" ")[2] for name in counts) == ["(t0)", "(t1)", "(t2)"]
    assert set(counts.values()) == {20}


def test_memory_of_the_process_is_drawn_over_time(tmp_path: Path) -> None:
    with evaltools.profile(tmp_path) as recorded:
        time.sleep(0.25)
        large = mmap.mmap(-1, 50_000_000)  # no memory that another test has given back
        large[:] = bytes(len(large))
        time.sleep(1.0)  # a busy machine looks late
    memory = [event["args"]["MB"] for event in events(tmp_path) if event["name"] == "resident memory"]
    assert max(memory) - memory[0] >= len(large) / 1024**2 - 5
    assert recorded.summary.process.peak_memory_mb == pytest.approx(max(memory), abs=0.01)


def test_a_runtime_that_is_imported_inside_is_seen_and_keeps_its_loader(tmp_path: Path) -> None:
    program = f"""
import sys, evaltools
with evaltools.profile({str(tmp_path)!r}) as recorded:
    assert "ai_edge_litert" not in sys.modules
    from ai_edge_litert.interpreter import Interpreter
    interpreter = Interpreter({FLOAT!r})
    interpreter.allocate_tensors()
    interpreter.invoke()
print(recorded.summary.models[0].calls["invoke"].calls)
native = sys.modules["ai_edge_litert._pywrap_litert_interpreter_wrapper"]
print(type(native.__spec__.loader).__name__, len([each for each in sys.meta_path if "capture" in str(each)]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["1", "ExtensionFileLoader", "0"], done.stderr


def test_nothing_is_imported_before_it_is_used() -> None:
    program = "import sys, evaltools; print([name for name in sys.modules if 'capture' in name or name == 'psutil'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_summary_in_words_names_models_calls_and_nodes(tmp_path: Path) -> None:
    with evaltools.profile(tmp_path) as recorded:
        opened("ai_edge_litert").invoke()
    first, *calls, last = str(recorded).splitlines()
    assert first == "float32.tflite (ai-edge-litert): 19 of 19 nodes on a delegate"
    assert {line.split("  ")[1] for line in calls} >= {"invoke", "allocate"}
    assert " cores, " in last
    with evaltools.profile(tmp_path) as nothing:
        pass
    assert str(nothing).startswith("no model ran: ")


def test_folders_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(UsageError, match="cannot be made: .*; give a folder that can be written"):
        evaltools.profile(file).__enter__()
    with pytest.raises(UsageError, match="expected a path, got 5"):
        evaltools.profile(5)  # type: ignore[arg-type]
    with evaltools.profile(tmp_path / "a") as recorded:
        with pytest.raises(UsageError, match="a profile is open in this process already"):
            evaltools.profile(tmp_path / "b").__enter__()
        with pytest.raises(UsageError, match="once its context has ended"):
            _ = recorded.summary
    with pytest.raises(UsageError, match="make another one"):
        recorded.__enter__()


def test_a_trace_that_is_a_folder_is_refused_and_leaves_nothing_wrapped(tmp_path: Path) -> None:
    (tmp_path / "trace.json").mkdir()
    importlib.import_module("ai_edge_litert.interpreter")
    before = dict(vars(native_class("ai_edge_litert")))
    with pytest.raises(UsageError, match="trace.json cannot be written"):
        evaltools.profile(tmp_path).__enter__()
    assert dict(vars(native_class("ai_edge_litert"))) == before


def test_a_summary_that_cannot_be_written_is_an_error_and_hides_none(tmp_path: Path) -> None:
    (tmp_path / "summary.json").mkdir()
    with pytest.raises(OutputError, match="summary.json"), evaltools.profile(tmp_path):
        pass

    def fail() -> None:
        with evaltools.profile(tmp_path):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
