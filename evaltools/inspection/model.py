"""An inspection: what is in a model, what follows from that, and what delegates take of it when they are tried."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from evaltools.configuration import Configuration
from evaltools.engine.opening import describe_model
from evaltools.inspection.blocks import ANSWERS, sections
from evaltools.inspection.npu_chips import ChipsAsked, npu_coverage
from evaltools.inspection.tried import try_delegates
from evaltools.model import ModelFile, read_model
from evaltools.model.compiled_for import CompiledFor, compiled_for
from evaltools.model.contents import ModelContents, read_contents
from evaltools.model.gpu_faults import gpu_traps
from evaltools.model.half_precision import constants_outside_half
from evaltools.model.kind import quantization_kind, support_of
from evaltools.result.environment import describe_environment
from evaltools.result.figure import Figure
from evaltools.result.result import Result, Row
from evaltools.runtime import Open, open_session


def inspect_model(
    path: Path,
    run: bool = True,
    opener: Open = open_session,
    chips: ChipsAsked | None = None,
    report: Callable[[str], None] = lambda _: None,
    asked: Configuration | None = None,
    command: Sequence[str] = (),
) -> Result:
    """Read a model, and with ``run`` open it with the delegates that this machine may have, each in its own process.

    ``asked`` is a configuration whose delegates are tried as well. With ``chips`` it is compiled for them, and
    ``report`` gets a line before each. Raises :class:`~evaltools.errors.ModelError` for a file that is not a sound
    model, and :class:`~evaltools.errors.UsageError` for unknown chips. What cannot be tried is ``not tested`` in
    the result, with the reason. The first row is the model, with what its graph shows as parts.
    """
    started_at, start = datetime.now(timezone.utc), time.monotonic()
    model = read_model(path)
    contents = read_contents(model)
    npu = npu_coverage(model, contents.main, chips, report) if chips else None
    compiled = compiled_for(model.read(), contents.graphs)
    runs = try_delegates(model, contents.main, _not_opened(run, compiled), opener, asked)
    described = _model(model, contents, compiled)
    return Result(
        command="inspect",
        environment=describe_environment(
            list(command), started_at.isoformat(timespec="seconds"), time.monotonic() - start
        ),
        models=[describe_model(model)],
        rows=[described, *runs, *(npu.chips if npu else ())],
        blocks=sections(model, contents, described, runs, npu),
    )


def _not_opened(run: bool, compiled: Sequence[CompiledFor]) -> str:
    """Why no delegate is tried; empty where each is."""
    if not run:
        return "--run=false"
    return "; ".join(f"{each.operator} was compiled for {each.hardware}" for each in compiled)


def _model(model: ModelFile, contents: ModelContents, compiled: Sequence[CompiledFor]) -> Row:
    """What is in the file; as parts what was compiled, which delegates fit, faults of GPUs, and what fp16 lacks."""
    kind = quantization_kind(contents.graphs)
    return Row(
        model.path.name,
        "model",
        counts={
            "graphs": len(contents.graphs),
            "tensors": contents.tensor_count,
            "dynamic_tensors": sum(tensor.is_dynamic for graph in contents.graphs for tensor in graph.tensors),
            "constant_bytes": contents.constant_bytes,
            "stateful": int(model.stateful),
        },
        texts={
            "kind": kind.kind,
            "why": kind.reason,
            "description": contents.description,
            "signatures": ", ".join(contents.signatures),
            "metadata": ", ".join(contents.metadata),
        },
        rows=list(_parts(contents, kind.kind, compiled)),
    )


def _parts(contents: ModelContents, kind: str, compiled: Sequence[CompiledFor]) -> Iterator[Row]:
    for each in compiled:
        texts = {"hardware": each.hardware, "manufacturer": each.manufacturer, "chip": each.chip, "sdk": each.sdk}
        yield Row(each.operator, "compiled", counts={"nodes": each.count}, texts=texts)
    for fit in support_of(kind, compiled):
        texts = {"fits": ANSWERS[fit.supported], "platforms": fit.platforms, "remark": fit.remark}
        yield Row(fit.delegate, "support", texts=texts)
    for trap in gpu_traps(contents.main):
        yield Row(trap.trap, "trap", texts={"found": trap.found, "source": trap.source})
    for constant in constants_outside_half(contents.graphs):
        count = constant.count
        numbers = {"values": count.values, "too_large": count.too_large, "vanish": count.vanish}
        yield Row(
            constant.tensor or "unnamed",
            "constant",
            counts={"graph": constant.graph, "subnormal": count.subnormal, **numbers},
            texts={"consumers": ", ".join(constant.consumers)},
            figures={"smallest": Figure(count.smallest), "largest": Figure(count.largest)},
        )
