"""What a capture found, for a person."""

from __future__ import annotations

from collections.abc import Sequence

from evaltools.result.capture import CallFigures, ModelCalls, ModelsCapture, ProcessUse, RunCapture

_NOTHING = (
    "no model ran: no Interpreter and no CompiledModel of tflite-runtime or ai-edge-litert was called in this process "
    "meanwhile (what evaltools runs itself is in processes of its own)"
)


def models_in_words(captured: ModelsCapture) -> list[str]:
    """A line for each model and each kind of call, the longest in all first, then what the process used."""
    lines = [] if captured.models else [_NOTHING]
    for model in captured.models:
        lines.append(f"{model.name} ({model.runtime}){_delegation(model)}")
        width = max(map(len, model.calls))
        in_order = sorted(model.calls.items(), key=lambda entry: -entry[1].total_ms)
        lines += [f"  {kind:<{width}}  {_calls(figures)}" for kind, figures in in_order]
    return [*lines, f"{captured.seconds:.3g} s; {use_in_words(captured.process)}"]


def run_in_words(captured: RunCapture) -> list[str]:
    """How fast a run is, on what it works, what each process uses, and what could not be seen."""
    rate, done = captured.examples_per_second, captured.examples_done
    figures = [] if rate is None else [f"{rate:.1f} examples/s"]
    figures += [] if done is None else [f"{done} done"]
    lines = [f"{captured.seconds:.1f} s of a run{': ' if figures else ''}{', '.join(figures)}"]
    total = sum(captured.stage_seconds.values())
    if total:
        shares = (f"{stage} {100 * spent / total:.0f} %" for stage, spent in captured.stage_seconds.items())
        lines.append(f"work: {', '.join(shares)}")
    width = max((len(use.name) for use in captured.processes), default=0)
    lines += [f"  {use.name:<{width}}  {use_in_words(use)}" for use in captured.processes]
    return lines + [f"note: {note}" for note in captured.notes]


def use_in_words(use: ProcessUse) -> str:
    """What a process used."""
    memory = f"{use.mean_memory_mb:.0f} MB of memory, {use.peak_memory_mb:.0f} at its peak"
    return f"{use.cores:.2f} cores, {memory}, {use.threads} thread{'s' * (use.threads != 1)}"


def _calls(figures: CallFigures) -> str:
    times = f"{figures.calls} call{'s' * (figures.calls != 1)}, {figures.total_ms:.3g} ms"
    if figures.calls > 1:
        limits = f"[{figures.min_ms:.3g}, {figures.max_ms:.3g}]"
        times += f": median {figures.median_ms:.3g} {limits}, first {figures.first_ms:.3g}"
    return times + (f"; {figures.failed} failed" if figures.failed else "")


def _delegation(model: ModelCalls) -> str:
    if model.nodes is None:
        return ""
    left = ", ".join(f"{name} x{count}" for name, count in _items(model.cpu_operators))
    kept = f", the CPU keeps {left}" if left and model.delegated_nodes else ""
    return f": {model.delegated_nodes} of {model.nodes} nodes on a delegate{kept}"


def _items(counts: dict[str, int] | None) -> Sequence[tuple[str, int]]:
    return list((counts or {}).items())
