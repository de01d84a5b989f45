"""What the compilers of NPUs' vendors take of a model, chip by chip, as ``evaltools inspect --npu_soc`` says it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import evaltools
from evaltools.datasets import sample
from evaltools.errors import UsageError
from evaltools.inspection import npu_chips
from evaltools.model.cut import schema_package
from evaltools.runtime.emulated import compiler
from tests.command import Completed, evaltools_here
from tests.runtime.emulated.bare import emulator_or_skip
from tests.tflite_writer import Graph

LEAVES_CONVOLUTIONS = sample.model_file("dynamic_range")
REPORTS_AND_DIES = """\
#!/bin/sh
echo 'Partitioned subgraph<0>, selected 8 ops, from a total of 13 ops. resulted in 5 partitions.' >&2
kill -SEGV $$
"""


def inspect(*arguments: object) -> Completed:
    return evaltools_here("inspect", *map(str, arguments), "--run=false")


def operators(file: Path) -> Counter[str]:
    """The operators of the first graph by the schema of ai-edge-litert; custom ones by their own names."""
    schema = schema_package()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(file.read_bytes(), 0))
    builtin = {number: name for name, number in vars(schema.BuiltinOperator).items() if isinstance(number, int)}
    codes = [code.customCode.decode() if code.customCode else builtin[code.builtinCode] for code in model.operatorCodes]
    return Counter(codes[operator.opcodeIndex] for operator in model.subgraphs[0].operators)


def test_what_is_said_of_each_chip_is_in_its_compiled_file(tmp_path: Path) -> None:
    emulator_or_skip()
    output, folder = tmp_path / "out.json", tmp_path / "new" / "folder"
    done = inspect(
        LEAVES_CONVOLUTIONS, "--npu_soc=SM8350,SM8650", f"--save_compiled={folder}", f"--output_file_path={output}"
    )
    assert done.code == 0, done.err
    assert "compiling for SM8350 (1 of 2)\ncompiling for SM8650 (2 of 2)\n" in done.err
    before = operators(LEAVES_CONVOLUTIONS)
    rows = [row for row in json.loads(output.read_text())["rows"] if row["role"] == "chip"]
    assert len(rows) == 2
    (sdk,) = re.findall(r"compiled here by .*SDK (2\.\S+)", done.out)
    for row in rows:
        name, proof = row["name"], row["delegation"]
        file = folder / f"dynamic_range_{name}.tflite"
        assert (row["texts"]["saved_as"], row["counts"]["compiled_bytes"]) == (str(file), file.stat().st_size)
        after = operators(file)
        assert row["delegates"][0]["partitions"] == after.pop("DISPATCH_OP")
        assert {each["name"]: each["counts"]["nodes"] for each in row["rows"] if each["role"] == "operator"} == after
        assert (proof["delegated_nodes"], proof["total_nodes"]) == (before.total() - after.total(), before.total())
        assert f"{name}  {proof['delegated_nodes']} of {proof['total_nodes']} nodes" in done.out
        compiled = inspect(file).out
        assert f"compiled for the NPU of Qualcomm {name} (by its SDK {sdk}): DISPATCH_OP x6" in compiled
    assert "all: CPU keeps CONV_2D x6, float32 [int8, float32] -> float32 (from the graph); the compiler: " in done.out
    assert "all: warning: 6 partitions: values go to the NPU and back as often" in done.out


def test_a_model_that_the_compiler_refuses_is_a_row_with_its_reason(tmp_path: Path) -> None:
    emulator_or_skip()
    graph = Graph()
    fed, kept = graph.tensor("fed", (1, 4)), graph.tensor("kept", (1, 4), variable=True)
    path = tmp_path / "state.tflite"
    path.write_bytes(graph.to_bytes([fed], [graph.node("ADD", [fed, kept], graph.tensor("sum", (1, 4)), "AddOptions")]))
    done = inspect(path, "--npu_soc=SM8650", f"--save_compiled={tmp_path / 'out'}")
    assert done.code == 0, done.err
    assert "SM8650  refused: Variable tensors not yet supported" in done.out
    assert list((tmp_path / "out").iterdir()) == []


def test_nothing_installed_is_one_sentence_and_the_rest_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_sdk_folder", "_package_folders"):
        monkeypatch.setattr(compiler, name, lambda *_: None)
    done = inspect(LEAVES_CONVOLUTIONS, "--npu_soc=all")
    assert done.code == 3
    assert "not tested: the SDK of qualcomm is not installed: " in done.out
    assert "Known traps of GPUs in this graph" in done.out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--npu_soc=SM1"], "--npu_soc=SM1: ai-edge-litert compiles for no such chip. Use one of SA8255, "),
        (["--npu_soc=SM8650", "--npu_vendor=samsung"], "--npu_vendor is gone: --npu_soc is about Qualcomm's chips"),
        (["--npu_soc=SM8650", "--save_compiled={folder}"], "would overwrite an input of this run"),
        (["--save_compiled={folder}"], "--save_compiled has no effect without --npu_soc"),
    ],
)
def test_what_cannot_be_compiled_is_refused_before_anything_runs(
    tmp_path: Path, flags: list[str], message: str
) -> None:
    model = tmp_path / "a.tflite"
    model.write_bytes(LEAVES_CONVOLUTIONS.read_bytes())
    (tmp_path / "a_SM8650.tflite").symlink_to(model)
    done = inspect(model, *(flag.format(folder=tmp_path) for flag in flags))
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert model.read_bytes() == LEAVES_CONVOLUTIONS.read_bytes()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (REPORTS_AND_DIES, "died (SIGSEGV) while it compiled the model for SM8750"),
        ("#!/bin/sh\nexec sleep 60\n", "was not done with the model for SM8750 within 0.2 s; it was ended"),
    ],
)
def test_a_compiler_that_dies_or_hangs_is_a_row_not_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    tool = tmp_path / "tools" / "apply_plugin_main"
    plugin = tmp_path / "vendors" / "qualcomm" / "compiler" / "libLiteRtCompilerPlugin_Qualcomm.so"
    for file in (tool, plugin):
        file.parent.mkdir(parents=True)
        file.write_text(program)
    tool.chmod(0o755)
    monkeypatch.setattr(compiler, "_program", lambda: tool)
    monkeypatch.setattr(npu_chips, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(compiler, "backend_here", lambda: compiler.Backend("1", (tmp_path,)))
    monkeypatch.setattr(npu_chips, "backend_here", lambda: compiler.Backend("1", (tmp_path,)))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = inspect(LEAVES_CONVOLUTIONS, "--npu_soc=SM8750")
    assert done.code == 3
    assert "SM8750  not tested: Qualcomm's compiler" in done.out
    assert reason in " ".join(done.out.split())


def test_python_has_the_same() -> None:
    with pytest.raises(UsageError, match="npu_soc=E9965: ai-edge-litert compiles for no such chip"):
        evaltools.inspect(LEAVES_CONVOLUTIONS, run=False, npu_soc=["E9965"])
