"""Regenerates the files that are derived from code: protobuf descriptors, JSON Schema, the reference of flags, a model.

Run it after a change of ``evaltools/proto/*.proto``, ``evaltools/result``, ``tasks/*/result.py`` or
``evaltools/delegates``: ``python scripts/generate.py``. A test fails where one of the files is out of date. Needs the
``dev`` extra.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def native_messages() -> bytes:
    """The compiled descriptors of the native tools' messages."""
    from grpc_tools import protoc

    folder = ROOT / "evaltools" / "proto"
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "out.binpb"
        files = sorted(path.name for path in folder.glob("*.proto"))
        status = protoc.main(["protoc", f"-I{folder}", f"--descriptor_set_out={target}", "--include_imports", *files])
        if status != 0:
            raise SystemExit(f"protoc failed with status {status}")
        return target.read_bytes()


def schema_of_results() -> bytes:
    """The JSON Schema of the result."""
    from evaltools.result.json_file import schema_text
    from evaltools.result_file import result_schema

    return schema_text(result_schema()).encode()


def benchmark_schema() -> bytes:
    """The JSON Schema of the result of a benchmark."""
    from evaltools.result.benchmark import BenchmarkResult
    from evaltools.result.json_file import json_schema, schema_text

    return schema_text(json_schema(BenchmarkResult, "evaltools benchmark result")).encode()


def delegate_flags() -> bytes:
    """The reference page of delegate flags."""
    from evaltools.cli.delegates import reference_page

    return reference_page().encode()


def resize_model() -> bytes:
    """A model of one RESIZE_BILINEAR, as the native tools build it; whoever reads it replaces the output's size."""
    sys.path.insert(0, str(ROOT))
    import numpy as np

    from evaltools.preprocess.resize import SIZE_IN_MODEL
    from tests.tflite_writer import Graph

    graph = Graph()
    image = graph.tensor("image", (1, 1, 1, 3))
    resized = graph.tensor("resized", (1, 1, 1, 3))
    size = graph.constant("size", np.array(SIZE_IN_MODEL, np.int32))
    fields = {"AlignCorners": False, "HalfPixelCenters": False}
    graph.node("RESIZE_BILINEAR", [image, size], resized, "ResizeBilinearOptions", **fields)
    return graph.to_bytes([image], [resized])


def locate_schema() -> bytes:
    """The JSON schema of what ``evaltools locate`` finds."""
    from evaltools.result.json_file import json_schema, schema_text
    from evaltools.result.locate import LocateResult

    return schema_text(json_schema(LocateResult, "evaltools locate result")).encode()


def suite_schema() -> bytes:
    """The JSON schema of the result of a suite."""
    from evaltools.gates.suite_result import SuiteResult
    from evaltools.result.json_file import json_schema, schema_text

    return schema_text(json_schema(SuiteResult, "evaltools suite result")).encode()


def task_file_schema() -> bytes:
    """The JSON schema of what stands in a task.yaml, for editors."""
    from evaltools.result.json_file import json_schema, schema_text
    from evaltools.tasks.task_file.schema import TaskFile

    return schema_text(json_schema(TaskFile, "evaltools task")).encode()


def python_stub() -> bytes:
    """The types of what ``import evaltools`` gives, with every option and every figure by its name."""
    import evaltools

    public = {name: getattr(evaltools, name) for name in evaltools.__all__}
    functions = [
        name for name, found in public.items() if inspect.isfunction(found) and hasattr(found, "__signature__")
    ]
    places = sorted((found.__module__, name) for name, found in public.items() if name not in functions)
    imports = [f"from {module} import {name} as {name}" for module, name in places if name != "Configuration"]
    parts = [_STUB_HEAD + "\n".join(imports), _figures_stub(), _configuration_stub()]
    for name in functions:
        signature, text = inspect.signature(public[name]), inspect.getdoc(public[name])
        if signature.return_annotation != "Result | Models":
            parts.append(_function_stub(name, signature, text))
            continue
        for model, returned, shown in (("AnyPath", "Result", text), ("SeveralPaths", "Models", None)):
            one = signature.parameters["model"].replace(annotation=model)
            parameters = [one if each.name == "model" else each for each in signature.parameters.values()]
            overload = signature.replace(parameters=parameters, return_annotation=returned)
            parts.append(f"@overload\n{_function_stub(name, overload, shown)}")
    return ("\n\n".join(parts) + "\n").encode()


_STUB_HEAD = '''"""What ``import evaltools`` gives, with its types; scripts/generate.py writes it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, overload

from evaltools.api.benchmarks import OnRound
from evaltools.api.configurations import AnyPath, OneConfiguration, Tests
from evaltools.api.configurations import Configuration as _Configuration
from evaltools.api.evaluations import SeveralPaths
from evaltools.api.inputs import Inputs
from evaltools.api.locating import OnPart
from evaltools.api.progress import OnProgress
from evaltools.suite.run import OnEntry
from evaltools.tasks.own.definition import TaskFunction

__all__: list[str]
'''


def _function_stub(name: str, signature: inspect.Signature, text: str | None, indent: str = "") -> str:
    """A function with a parameter in each line."""
    lines = [f"{indent}def {name}("]
    is_keyword = False
    for parameter in signature.parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not is_keyword:
            lines.append(f"{indent}    *,")
            is_keyword = True
        shown = parameter.replace(annotation=inspect.Parameter.empty)
        typed = "" if parameter.annotation is inspect.Parameter.empty else f": {parameter.annotation}"
        default = "" if parameter.default is inspect.Parameter.empty else f" = {parameter.default!r}"
        lines.append(f"{indent}    {str(shown).partition('=')[0]}{typed}{default},")
    lines.append(f"{indent}) -> {signature.return_annotation}:")
    body = [
        line.rstrip() for line in textwrap.indent(f'"""{text}\n"""' if text else "...", f"{indent}    ").splitlines()
    ]
    return "\n".join([*lines, *body])


def _configuration_stub() -> str:
    from evaltools import Configuration

    text = textwrap.indent(f'"""{inspect.getdoc(Configuration)}\n"""', "    ")
    function = _function_stub("__init__", inspect.signature(Configuration.__init__), None, "    ")
    return f"class Configuration(_Configuration):\n{text}\n\n{function}"


def _figures_stub() -> str:
    """The figures of a configuration that limits can name."""
    from evaltools.api.result import Measured
    from evaltools.result.metrics import METRICS
    from evaltools.task_kind import registered_kinds

    metrics = {each.name: each.meaning for kind in registered_kinds() for each in kind.metrics}
    metrics |= {each.name: each.meaning for each in METRICS} | {"latency_ratio": "time by that of the reference"}
    lines = ["class Figures:", '    """A number each, None where it is not known."""', ""]
    for name, meaning in metrics.items():
        if not hasattr(Measured, name):
            lines += [f"    {name}: Any", f'    """{meaning}"""']
    return "\n".join(lines)


GENERATED: dict[str, Callable[[], bytes]] = {
    "evaltools/proto/native_messages.binpb": native_messages,
    "evaltools/result/result.schema.json": schema_of_results,
    "evaltools/result/benchmark.schema.json": benchmark_schema,
    "evaltools/result/locate.schema.json": locate_schema,
    "evaltools/gates/suite.schema.json": suite_schema,
    "tasks/task_file/task.schema.json": task_file_schema,
    "docs/delegate-flags.md": delegate_flags,
    "evaltools/__init__.pyi": python_stub,
    "evaltools/preprocess/resize_bilinear.tflite": resize_model,
}


def main() -> int:
    """Write every generated file."""
    for name, content in GENERATED.items():
        (ROOT / name).write_bytes(content())
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
