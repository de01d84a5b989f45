"""What ran, where and how: the proof of each row, devices, the command, what was printed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

from evaltools.report.content import first_lines, sentences, some_of
from evaltools.report.page.figures import temperatures
from evaltools.report.words.devices import clocks, model_of, throttling
from evaltools.report.words.facts import counted, delegate_name, label, left_on_cpu
from evaltools.report.words.numbers import in_seconds, megabytes
from evaltools.result.device import DeviceFacts, DeviceFinding, DeviceList, DeviceRun, hottest
from evaltools.result.facts import Model, Tensor
from evaltools.result.result import LIMIT, Result, Row
from evaltools.result.section import (
    Axis,
    Block,
    Cell,
    Chart,
    Files,
    Lines,
    Linked,
    Mark,
    Note,
    Number,
    Section,
    Table,
    number_cell,
)
from evaltools.text import shortened

_MOST_FAILED: Final = 10
_WRITTEN: Final = (
    "--output",
    "--plot=",
    "--bundle=",
    "--run_dir=",
    "--save_outputs=",
)
"""The beginnings of flags that name files with more."""
_OPENED_BY: Final = "ui.perfetto.dev (open trace file) and chrome://tracing show it"
_MOST_OPERATORS: Final = 12
_MOST_TENSORS: Final = 8
_MOST_BARS: Final = 24
_LONGEST_MESSAGE: Final = 240
_CPU: Final = "CPU"
_OPENED: Final = ("reference", "test")
"""The roles of rows that are configurations."""
Named = Sequence[tuple[Row, str]]
"""Rows with what a page calls them."""

_COLUMNS: Final = (
    "serial", "state", "model", "Python", "ABI", "Android", "SoC", "CPUs", "battery", "hottest", "throttling", "free",
)  # fmt: skip
_UNKNOWN: Final = "-"
_GIB: Final = 1 << 30


def proof(result: Result) -> Section | None:
    """What ran each configuration; None for a result that has none."""
    placed = [(place, row) for place, row in enumerate(result.rows) if row.role in _OPENED and not _has_limits(row)]
    if not placed:
        return None
    opened = [(row, label(result.models, row)) for _, row in placed]
    rows = [_row(row, name, f"rows/{place}") for (place, _), (row, name) in zip(placed, opened, strict=True)]
    columns = ("configuration", "delegate", "nodes", "partitions", "left on the CPU", "runtime", "evidence")
    blocks: list[Block] = [Table("What ran each configuration", columns, rows, ranks=(0, 1, 0, 4, 2, 3, 5))]
    drawn = _nodes(opened)
    return Section(
        "Did it run?",
        [*blocks, *([drawn] if drawn else []), *_without_answer(result)],
        place="run",
        intro="A delegate that did not run is never a pass. Nodes are those of the model's main graph.",
    )


def _has_limits(row: Row) -> bool:
    """Whether it is one of a gate, which ran nothing itself."""
    return any(part.role == LIMIT for part in row.rows)


def _row(entry: Row, name: str, path: str) -> Sequence[Cell]:
    runtime = entry.runtime
    if runtime is None:
        return name, "", "not opened", "", "", "", entry.reason
    proof = entry.delegation
    threads = "" if entry.num_threads == -1 else f", {counted(entry.num_threads, 'thread')}"
    nodes: Cell = "not stated"
    if proof is not None:
        text = f"{proof.delegated_nodes} of {proof.total_nodes}"
        nodes = Number(text, proof.delegated_nodes, f"{path}/delegation/delegated_nodes")
    partitions = [str(each.partitions) for each in entry.delegates if each.partitions is not None]
    evidence = [each.evidence for each in entry.delegates if each.evidence]
    reasons = [f"not measured: {entry.reason}"] if entry.reason else []
    reasons += [f"fell back to the CPU: {entry.fallback}"] if entry.fallback else []
    return (
        name,
        ", ".join(map(delegate_name, entry.delegates)) or "none",
        nodes,
        ", ".join(partitions) or "-",
        _left(entry),
        f"{runtime.package} {runtime.version}, {runtime.kernels} kernels{threads}",
        "; ".join([*reasons, *evidence]),
    )


def _left(entry: Row) -> str:
    if entry.delegation is None:
        return ""
    if not entry.delegation.delegated_nodes:
        return "everything"
    return left_on_cpu(entry.delegation, _MOST_OPERATORS) or "nothing"


def _nodes(opened: Named) -> Chart | None:
    """Who ran how many nodes, of the configurations that have a delegate."""
    rows: dict[str, dict[str, float]] = {}
    for entry, name in opened:
        if entry.delegation is not None and any(each.nodes for each in entry.delegates):
            by = {each.name: float(each.nodes) for each in entry.delegates if each.nodes}
            rows[name] = {**by, _CPU: float(entry.delegation.total_nodes - entry.delegation.delegated_nodes)}
    if not rows:
        return None
    drawn = dict(list(rows.items())[:_MOST_BARS])
    marks = [
        Mark(size, name, part, "missing" if part == _CPU else "")
        for name, by in drawn.items()
        for part, size in by.items()
    ]
    most_on_cpu = sorted(drawn.items(), key=lambda each: -each[1][_CPU])
    lines = [f"{name}: {', '.join(f'{part} {size:.0f}' for part, size in by.items())}" for name, by in most_on_cpu]
    text = sentences(some_of(len(drawn), len(rows), "configurations"))
    return Chart("Nodes by who ran them", "bars", marks, text, Axis("nodes"), lines=first_lines(lines))


def _messages(result: Result) -> list[str]:
    """What runtimes printed while they loaded the model, the beginnings of long texts."""
    found = [(label(result.models, row), row.runtime.messages) for row in result.rows if row.runtime is not None]
    return [f"{name}: {shortened(text, _LONGEST_MESSAGE)}" for name, text in found if text]


def _models(models: Sequence[Model]) -> list[Table]:
    """All that is known of the only model; of several, a row each."""
    if len(models) == 1:
        return [_model(models[0])]
    rows = [(each.file, f"{megabytes(each.size_bytes)} MB", str(each.node_count), each.sha256) for each in models]
    return [Table("The models", ("file", "size", "nodes", "sha256"), rows)]


def _model(model: Model) -> Table:
    tensors = [("input", each) for each in model.inputs] + [("output", each) for each in model.outputs]
    rows: list[Sequence[Cell]] = [
        ("file", model.file),
        ("sha256", model.sha256),
        ("size", f"{megabytes(model.size_bytes)} MB, {counted(model.node_count, 'node')}"),
        *((kind, _tensor(each)) for kind, each in tensors[:_MOST_TENSORS]),
    ]
    return Table("The model", (), rows, some_of(min(len(tensors), _MOST_TENSORS), len(tensors), "tensors"))


def _tensor(tensor: Tensor) -> str:
    scale = "" if tensor.scale is None else f", scale {tensor.scale:.4g}, zero point {tensor.zero_point}"
    return f"{tensor.name}: {tensor.dtype}[{', '.join(map(str, tensor.shape))}]{scale}"


def connected(found: DeviceList) -> list[Block]:
    """The table, then a line for each device that cannot be used, with what to do."""
    if not found.devices:
        return [Lines(["no device is connected"])]
    table = Table("Devices", _COLUMNS, [_cells(finding) for finding in found.devices], names=2)
    problems = [Note("warning", finding.problem, "open") for finding in found.devices if finding.facts is None]
    return [table, *([Lines(problems)] if problems else [])]


def _cells(finding: DeviceFinding) -> list[str]:
    if finding.facts is None:
        state = "no answer" if finding.state == "device" else finding.state
        return [finding.serial, state, *[_UNKNOWN] * (len(_COLUMNS) - 2)]
    return [finding.serial, finding.state, *(cell or _UNKNOWN for cell in _fact_cells(finding.facts))]


def _fact_cells(facts: DeviceFacts) -> list[str]:
    """The cells behind serial and state, empty where nothing is known."""
    conditions = facts.conditions
    level = "" if conditions.battery_level is None else f"{conditions.battery_level}%"
    warmth = "" if conditions.battery_temperature is None else f"{conditions.battery_temperature / 10:.1f} C"
    highest = hottest(conditions)
    sdk = "" if facts.sdk is None else f"(SDK {facts.sdk})"
    return [
        " ".join(filter(None, [facts.manufacturer, facts.model])),
        facts.python or "",
        facts.abi or facts.machine or "",
        " ".join(filter(None, [facts.android, sdk])),
        facts.soc or "",
        "" if facts.cpus is None else str(facts.cpus),
        " ".join(filter(None, [level, warmth])),
        "" if highest is None else f"{highest:.1f} C",
        throttling(conditions.thermal_status),
        "" if facts.free_bytes is None else f"{facts.free_bytes / _GIB:.1f} GiB",
    ]


def devices(run: DeviceRun | None) -> Section | None:
    """A row per device, temperatures before and after, what was lost; None for a run only on this computer."""
    if run is None:
        return None
    blocks: list[Block] = [_on_each(run)]
    warmth = temperatures({work.serial: (hottest(work.before), hottest(work.after)) for work in run.work}, "devices")
    blocks += [] if warmth is None else [warmth]
    notes = [
        Note(
            work.serial, f"lost after {attempt.elapsed_s:.0f} s ({attempt.kind}: {attempt.reason}), done again", "open"
        )
        for work in run.work
        for attempt in work.lost
    ]
    notes += [Note(left.serial, f"left out: {left.reason}", "open") for left in run.left_out]
    return Section("Devices", [*blocks, *([Lines(notes)] if notes else [])], is_brief=True)


def _on_each(run: DeviceRun) -> Table:
    facts = {device.serial: device for device in run.devices}
    rows: list[Sequence[Cell]] = []
    for work in run.work:
        both = work.both
        warmest = max((known for known in map(hottest, both) if known is not None), default=None)
        statuses = [found.thermal_status for found in both if found.thermal_status is not None]
        rows.append(
            [
                work.serial,
                number_cell(len(work.lost)),
                number_cell(warmest, "{:.1f} C".format),
                throttling(max(statuses, default=None)) or _UNKNOWN,
                clocks(work.after) or clocks(work.before) or _UNKNOWN,
                model_of(facts[work.serial]) or _UNKNOWN,
                number_cell(work.elapsed_s, "{:.1f} s".format),
            ]
        )
    return Table(
        f"{run.program} on each device", ("device", "lost", "hottest", "throttling", "CPU", "model", "time"), rows
    )


def origin(result: Result) -> list[Section]:
    """The command as typed, the trace, the models, and what runtimes printed."""
    environment = result.environment
    packages = ", ".join(f"{name} {version}" for name, version in environment.packages.items())
    rows: list[Sequence[Cell]] = [
        ("command", shlex.join(environment.command) if environment.command else "from Python"),
        ("evaltools", environment.evaltools),
        ("Python", environment.python),
        ("packages", packages),
        ("system", environment.platform),
        ("processor", f"{environment.processor or environment.machine}, {environment.cpu_count} CPUs"),
        ("started", environment.started_at),
        ("took", in_seconds(environment.elapsed_s)),
    ]
    written = [word for word in environment.command if word.startswith(_WRITTEN)]
    if written:
        rows.insert(1, ("files", ", ".join(written)))
    shows = "every read, decode, run and write" if result.is_of_examples else "loading, runs, memory, operators"
    models = _models([*result.models, *result.other_models]) if any(row.role in _OPENED for row in result.rows) else []
    blocks: list[Block] = [Table("As it was run", (), rows), *models, *_traces(environment.trace, shows)]
    found = [Section("Command and environment", blocks, place="run")]
    messages = _messages(result)
    return [*found, *([Section("Messages of the runtimes", [Lines(messages)], place="run")] if messages else [])]


def _without_answer(result: Result) -> list[Table]:
    """The first few examples that failed, where there are some."""
    failed = result.failed
    shown = [(each.example, each.configuration or "all", each.stage, each.reason) for each in failed[:_MOST_FAILED]]
    below = some_of(len(shown), len(failed), "examples")
    columns = ("example", "configuration", "stage", "reason")
    return [Table("Examples without an answer", columns, shown, below)] if failed else []


def _traces(name: str, shows: str) -> list[Block]:
    """A link to the trace of a run; nothing where none was written."""
    return [Files("Trace", [Linked(name, f"{shows}; {_OPENED_BY}")])] if name else []
