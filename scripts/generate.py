"""Regenerates the files that are derived from code: protobuf descriptors, JSON Schema, the reference of flags, a model.

Run it after a change of ``evaltools/proto/*.proto``, ``evaltools/result``, ``tasks/*/result.py`` or
``evaltools/delegates``: ``python scripts/generate.py``. A test fails where one of the files is out of date. Needs the
``dev`` extra.
"""

from __future__ import annotations

import sys
import tempfile
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


GENERATED: dict[str, Callable[[], bytes]] = {
    "evaltools/proto/native_messages.binpb": native_messages,
    "evaltools/result/result.schema.json": schema_of_results,
    "evaltools/result/benchmark.schema.json": benchmark_schema,
    "evaltools/result/locate.schema.json": locate_schema,
    "evaltools/gates/suite.schema.json": suite_schema,
    "tasks/task_file/task.schema.json": task_file_schema,
    "docs/delegate-flags.md": delegate_flags,
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
