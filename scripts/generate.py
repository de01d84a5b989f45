"""Regenerates the files that are derived from code: protobuf descriptors, JSON Schema, the reference of flags.

Run it after a change of ``evaltools/proto/*.proto``, ``evaltools/report/result.py`` or ``evaltools/delegates``:
``python scripts/generate.py``. A test fails where one of the files is out of date. Needs the ``dev`` extra.
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


def result_schema() -> bytes:
    """The JSON Schema of the result."""
    from evaltools.report.json_file import schema_text

    return schema_text().encode()


def delegate_flags() -> bytes:
    """The reference page of delegate flags."""
    from evaltools.cli.reference import reference_page

    return reference_page().encode()


GENERATED: dict[str, Callable[[], bytes]] = {
    "evaltools/proto/native_messages.binpb": native_messages,
    "evaltools/report/result.schema.json": result_schema,
    "docs/delegate-flags.md": delegate_flags,
}


def main() -> int:
    """Write every generated file."""
    for name, content in GENERATED.items():
        (ROOT / name).write_bytes(content())
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
