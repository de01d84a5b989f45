"""The manifest of a folder of saved outputs, which is written when there is a result of the run."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from evaltools.engine.opening import describe_tensor
from evaltools.model import TensorInfo
from evaltools.result.facts import RuntimeUsed, Tensor
from evaltools.result.result import Result, Row
from evaltools.tasks.inference_diff.material import DiffMaterial
from evaltools.tasks.inference_diff.saved_outputs import (
    INPUTS,
    Manifest,
    OutputsWriter,
    SavedConfiguration,
    SavedFile,
)


def finish(material: DiffMaterial, writer: OutputsWriter, result: Result) -> str:
    """Write the manifest, without which the folder cannot be read; why something could not be written."""
    writer.finish(_manifest(material, writer, result.rows))
    return writer.failure or ""


def _manifest(material: DiffMaterial, writer: OutputsWriter, configurations: Sequence[Row]) -> Manifest:
    return Manifest(
        schema_version="1",
        signature=material.options.signature,
        invocations_per_run=material.options.invocations,
        warmup_runs=material.options.warmup_runs,
        inputs=[_saved_tensor(tensor) for tensor in material.plan.tensors],
        input_files=writer.files(INPUTS),
        configurations=[
            _saved_configuration(entry, entry.runtime, material, writer.files(entry.name))
            for entry in configurations
            if entry.runtime is not None and writer.files(entry.name)
        ],
        kinds={str(run): kind for run, kind in enumerate(material.plan.kinds)},
    )


def _saved_configuration(
    entry: Row, runtime: RuntimeUsed, material: DiffMaterial, files: list[SavedFile]
) -> SavedConfiguration:
    is_reference = entry.role == "reference"
    model = material.models[-1 if is_reference else 0]
    outputs = material.pair.reference_outputs if material.pair and is_reference else material.model.outputs
    return SavedConfiguration(
        name=entry.name,
        role="reference" if is_reference else "test",
        model_file=str(model.path),
        model_sha256=model.sha256,
        flags=entry.flags,
        num_threads=entry.num_threads,
        runtime=runtime,
        tensors=[_saved_tensor(tensor) for tensor in outputs],
        outputs=files,
    )


def _saved_tensor(tensor: TensorInfo) -> Tensor:
    """The tensor with the shape that it was run with."""
    return replace(describe_tensor(tensor), shape=list(tensor.shape))
