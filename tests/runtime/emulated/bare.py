"""A model through Qualcomm's compiler and emulator by the vendors' own Python, without evaltools."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from evaltools.runtime.session import Array
from tests.expected import leave_out

NEEDED = ("onnxruntime_qnn", "onnx")


def emulator_or_skip() -> None:
    """The test is skipped without the extra npu-qualcomm, unless CI says that it is there."""
    for module in NEEDED:
        if find_spec(module) is None:
            leave_out("NPU", "the extra npu-qualcomm is not installed")


def bare_outputs(model: Path, chip: str, inputs: Sequence[Array], folder: Path) -> tuple[list[Any], str]:
    """What a model that is taken as a whole computes, and the compiler's report, as `aot_compile` gives them."""
    import ai_edge_litert

    onnx, onnxruntime, qnn_package = (import_module(name) for name in ("onnx", "onnxruntime", "onnxruntime_qnn"))
    from ai_edge_litert import schema_py_generated as schema
    from flatbuffers import flexbuffers

    qnn = Path(str(qnn_package.__file__)).parent
    (folder / "libQnnLpai.so").symlink_to(qnn / "libQnnSaver.so")
    code = (
        "import sys; from ai_edge_litert.aot import aot_compile;"
        "from ai_edge_litert.aot.vendors.qualcomm import target;"
        "print(aot_compile.aot_compile(sys.argv[1], output_dir=sys.argv[2], keep_going=False,"
        "target=target.Target(target.SocModel[sys.argv[3]])).compilation_report())"
    )
    python = Path(ai_edge_litert.__file__).parents[4] / "bin" / "python"
    report = subprocess.run(
        [str(python), "-c", code, str(model), str(folder / "out"), chip],
        env=os.environ | {"LD_LIBRARY_PATH": f"{qnn}:{qnn}.libs:{folder}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (compiled,) = (folder / "out").glob("*.tflite")
    data = compiled.read_bytes()
    graph = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0)).subgraphs[0]
    (node,) = graph.operators
    option: Any = flexbuffers.Loads(bytes(node.customOptions))
    binary = data[option["bytecode_offset"] : option["bytecode_offset"] + option["bytecode_size"]]

    def described(places: Any) -> list[Any]:
        types = {0: 1, 9: 3, 3: 2}  # of the two schemas: float32, int8, uint8
        return [
            onnx.helper.make_tensor_value_info(
                re.sub(r"\W", "_", graph.tensors[place].name.decode()),
                types[graph.tensors[place].type],
                [int(size) for size in graph.tensors[place].shape],
            )
            for place in places
        ]

    given, made = described(node.inputs), described(node.outputs)
    context = onnx.helper.make_node(
        "EPContext",
        [each.name for each in given],
        [each.name for each in made],
        domain="com.microsoft",
        embed_mode=1,
        main_context=1,
        source="QNN",
        ep_cache_context=binary,
        partition_name=option["name"],
        name=option["name"],
    )
    opsets = [onnx.helper.make_opsetid("com.microsoft", 1), onnx.helper.make_opsetid("", 17)]
    wrapped = onnx.helper.make_model(
        onnx.helper.make_graph([context], "g", given, made), opset_imports=opsets, ir_version=9
    )
    if "QNNExecutionProvider" not in {each.ep_name for each in onnxruntime.get_ep_devices()}:
        onnxruntime.register_execution_provider_library("QNNExecutionProvider", qnn_package.get_library_path())
    devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == "QNNExecutionProvider"][:1]
    options = onnxruntime.SessionOptions()
    options.add_provider_for_devices(devices, {"backend_path": qnn_package.get_qnn_htp_path()})
    session = onnxruntime.InferenceSession(wrapped.SerializeToString(), options)
    feeds = {each.name: np.asarray(value) for each, value in zip(given, inputs, strict=True)}
    return session.run([each.name for each in made], feeds), report
