"""What ``benchmark_model`` prints and writes: lines in small pieces, so that a command can print while it measures.

The lines have their prefix, ``INFO: `` or ``WARN: ``, and belong on stdout. Numbers are printed as C++ streams print
them: floats with six digits, ``%g``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from evaltools.delegates import COMMON, DELEGATES
from evaltools.delegates.native_only import NNAPI
from evaltools.metrics.latency import summarise_latency, whole_us
from evaltools.native.lines.stat_line import format_stat, stat_figures
from evaltools.parameter import Parameter, Value
from evaltools.proto import BENCHMARK, message_class
from evaltools.result.facts import DelegateUsed, DelegationProof
from evaltools.result.rounds import Memory, Round, StatFigures

_ALWAYS_LOGGED: Final = frozenset({"verbose", "graph", "signature_to_run_for"})
_ONLY_WITH_NNAPI: Final = frozenset(parameter.name for parameter in NNAPI.parameters) - {NNAPI.enabled_by}
_CPU_THREADS: Final = Parameter("num_threads", "", default=-1, log="#threads used for CPU inference")
_DEFAULTS_OF_THE_BENCHMARK: Final[dict[str, Value]] = {"gpu_invoke_loop_times": 1}
_SUMMARY_TITLE: Final = "Summary of All Runs w/ Different Performance Options"
_APPROXIMATE: Final = (
    "Note: as the benchmark tool itself affects memory footprint, the following is only APPROXIMATE to the actual "
    "memory footprint of the model at runtime. Take the information at your discretion."
)
_XNNPACK_MESSAGES: Final = {
    "xnnpack_force_fp16": "XNNPack FP16 inference enabled.",
    "xnnpack_weight_cache_file_path": "XNNPack file-backed weight cache enabled.",
}


def starting_lines(
    parameters: Sequence[Parameter], given: Sequence[tuple[Parameter, Value]], verbose: bool = False
) -> list[str]:
    """The first lines: the flags that were given, or with ``verbose`` all of them.

    ``parameters`` are the benchmark's own in the order of native logs; those of the delegates are added here. ``given``
    may have any order, and a flag twice. A flag that native logs do not name is left out.

    >>> runs = Parameter("num_runs", "", default=50, log="Min num runs")
    >>> starting_lines([runs], [(runs, 5)])
    ['INFO: STARTING!', 'INFO: Min num runs: [5]']
    """
    values: dict[str, list[Value]] = {}
    for parameter, value in given:
        values.setdefault(parameter.name, []).append(value)
    values["verbose"] = [verbose]
    is_on_nnapi = values.get(NNAPI.enabled_by) == [True]
    lines = ["STARTING!"]
    for parameter in (*parameters, *delegate_parameters()):
        if not parameter.log or (parameter.name in _ONLY_WITH_NNAPI and not is_on_nnapi):
            continue
        shown = values.get(parameter.name, [])
        if not shown and (verbose or parameter.name in _ALWAYS_LOGGED):
            shown = [_DEFAULTS_OF_THE_BENCHMARK.get(parameter.name, parameter.default)]
        lines.extend(parameter.logged(value) for value in shown)
    return _info(lines)


def delegate_parameters() -> tuple[Parameter, ...]:
    """The flags of delegates in the order of native logs: common ones first, then delegate by delegate."""
    by_name = sorted(DELEGATES, key=lambda delegate: delegate.name.casefold())
    return (_CPU_THREADS, *COMMON, *(parameter for delegate in by_name for parameter in delegate.parameters))


def loaded_line(path: Path | str) -> str:
    """The model was read."""
    return f"INFO: Loaded model {path}"


def signature_line(key: str) -> str:
    """The signature that runs, where one was asked for."""
    return f"INFO: Using signature: {key}"


def delegation_lines(delegates: Sequence[DelegateUsed], proof: DelegationProof | None) -> list[str]:
    """What the delegates that were asked for took of the main graph, in the order in which they were applied.

    A graph is executed completely by a delegate where one partition has all of its nodes. As in the native tool, only
    the first delegate that was created is named as created, and one that could not be created is passed over.

    >>> delegation_lines([DelegateUsed("XNNPACK", True, {}, 31, 2)], DelegationProof(31, 31, {}))[1]
    'INFO: Explicitly applied XNNPACK delegate, and the model graph will be partially executed by the delegate
     w/ 2 delegate kernels.'
    """
    asked = [delegate for delegate in delegates if delegate.requested]
    created = [delegate for delegate in asked if delegate.nodes is not None]
    lines: list[str] = []
    for delegate in asked:
        lines.extend(text for option, text in _XNNPACK_MESSAGES.items() if delegate.options.get(option))
        if delegate in created[:1]:
            lines.append(f"{_native_name(delegate)} delegate created.")
    if len(created) > 1:
        lines.append(f"Going to apply {len(created)} delegates one after another.")
    return _info([*lines, *(_applied(delegate, proof) for delegate in created)])


def model_size_line(size_bytes: int) -> str:
    """The size of the model file, a warning where it is 0.

    >>> model_size_line(525598), model_size_line(0)
    ('INFO: The input model file size (MB): 0.525598', 'WARN: Failed to get the input model file size.')
    """
    if size_bytes <= 0:
        return "WARN: Failed to get the input model file size."
    return f"INFO: The input model file size (MB): {size_bytes / 1e6:g}"


def initialized_line(init_us: int) -> str:
    """What loading the model, applying delegates and allocating tensors took together."""
    return f"INFO: Initialized session in {init_us / 1e3:g}ms."


def running_line(min_runs: int, min_secs: float, max_secs: float) -> str:
    """What the phase that begins is about to do."""
    return (
        f"INFO: Running benchmark for at least {min_runs} iterations and at least {min_secs:g} seconds but terminate "
        f"if exceeding {max_secs:g} seconds."
    )


def stat_lines(figures: StatFigures) -> list[str]:
    """What the phase that ended has measured, and an empty line."""
    return [f"INFO: {format_stat(figures)}", ""]


def timings_line(init_us: int, warm_up: StatFigures, regular: StatFigures) -> str:
    """All times in one line; the first inference is the first warm-up run."""
    return (
        f"INFO: Inference timings in us: Init: {init_us}, First inference: {warm_up.first_us}, "
        f"Warmup (avg): {warm_up.avg_us:g}, Inference (avg): {regular.avg_us:g}"
    )


def memory_lines(memory: Memory) -> list[str]:
    """What the peak of resident memory grew by, in MB of 1024 * 1024 bytes; nothing where the platform does not say.

    With a monitored peak, that too, and where known what is resident in the end, each truncated to whole MB.
    """
    growth = footprint_growth(memory)
    if growth is None:
        return []
    init_kb, overall_kb = growth
    lines = [
        _APPROXIMATE,
        "Memory footprint delta from the start of the tool (MB): "
        f"init={init_kb / 1024:g} overall={overall_kb / 1024:g}",
    ]
    if memory.monitored_peak_kb:
        peak_mb = memory.monitored_peak_kb / 1024
        lines.append(f"Overall peak memory footprint (MB) via periodic monitoring: {peak_mb:g}")
        if memory.steady_kb is not None and memory.anonymous_kb is not None:
            lines.extend(_resident(memory.steady_kb, memory.steady_kb - memory.anonymous_kb))
    return _info(lines)


def footprint_growth(memory: Memory) -> tuple[int, int] | None:
    """What the peak grew by until the session was initialized, and until the end, in units of 1024 bytes."""
    if memory.peak_start_kb is None or memory.peak_init_kb is None or memory.peak_kb is None:
        return None
    return memory.peak_init_kb - memory.peak_start_kb, memory.peak_kb - memory.peak_start_kb


def saved_lines(path: Path | str) -> list[str]:
    """Before and after the protobuf is written."""
    return _info([f"Saving benchmark result to: {path}", f"Saved benchmark result to: {path}"])


def performance_options_line(options: str) -> str:
    """The value of ``--perf_options_list``, before the first of its configurations."""
    return f"INFO: The list of TFLite runtime options to be benchmarked: [{options}]"


def summary_lines(rows: Iterable[tuple[str, StatFigures | None]]) -> list[str]:
    """The configurations of ``--perf_options_list``, fastest first, those without figures last.

    >>> from evaltools.native.lines.stat_line import stat_figures
    >>> summary_lines([("gpu-default", None), ("cpu w/ 1 threads", stat_figures([7]))])[2:]
    ['INFO:           cpu w/ 1 threads: count=1 curr=7 p5=7 median=7 p95=7',
     'INFO:                gpu-default:  failed!']
    """
    ordered = sorted(rows, key=lambda row: math.inf if row[1] is None else row[1].avg_us)
    lines = [
        f"INFO: {name:>26}: {' failed!' if figures is None else format_stat(figures)}" for name, figures in ordered
    ]
    return ["INFO: ", f"=============={_SUMMARY_TITLE}==============", *lines]


def _info(lines: Iterable[str]) -> list[str]:
    return [f"INFO: {line}" for line in lines]


def _native_name(delegate: DelegateUsed) -> str:
    """The name without the number that distinguishes several external delegates."""
    return delegate.name.partition("#")[0]


def _applied(delegate: DelegateUsed, proof: DelegationProof | None) -> str:
    name = _native_name(delegate)
    if not delegate.nodes:
        return f"Though {name} delegate is explicitly applied, the model graph will not be executed by the delegate."
    start = f"Explicitly applied {name} delegate, and the model graph will be"
    if proof is not None and delegate.partitions == 1 and delegate.nodes == proof.total_nodes:
        return f"{start} completely executed by the delegate."
    return f"{start} partially executed by the delegate w/ {delegate.partitions} delegate kernels."


def _resident(rss_kb: int, shared_kb: int) -> list[str]:
    """The lines about the end, with the native tool's spelling; it subtracts after truncating."""
    rss_mb, shared_mb = rss_kb // 1024, shared_kb // 1024
    return [
        "Memory status at the end of exeution:",
        f"- VmRSS              : {rss_mb} MB",
        f"+ RssAnnon           : {rss_mb - shared_mb} MB",
        f"+ RssFile + RssShmem : {shared_mb} MB",
    ]


def native_benchmark_proto(rounds: Sequence[Round], model_size_bytes: int, input_bytes: int) -> bytes:
    """``BenchmarkResult`` of rounds that were measured, serialised; times are in ms.

    ``input_bytes`` is the size of all inputs of one run. Of several rounds all runs count, init and first inference are
    the mean, each footprint is the largest. Field presence is the native tool's: no ``name``, memory only where the
    platform says it, ``peak_mem_mb`` only where it was monitored. Without runs the native tool writes the limits of
    int64 as ``min_ms`` and ``max_ms``; here they are 0.
    """
    warm_ups = [each.warm_up.invokes_us for each in rounds]
    values_us = [whole_us(value) for each in rounds for value in each.regular.invokes_us]
    warm_up = stat_figures([value for values in warm_ups for value in values])
    regular = stat_figures(values_us)
    message = message_class("BenchmarkResult", BENCHMARK)()
    latency = message.latency_metrics
    latency.init_ms = _mean([each.opening.total_us for each in rounds]) / 1e3
    latency.first_inference_ms = _mean([whole_us(values[0]) for values in warm_ups if values]) / 1e3
    latency.average_warm_up_ms = warm_up.avg_us / 1e3
    _fill_inference(latency, regular)
    _fill_memory(message, [each.memory for each in rounds])
    misc = message.misc_metrics
    misc.model_size_mb = model_size_bytes / 1e6
    misc.num_runs = regular.count
    misc.num_warmup_runs = warm_up.count
    misc.model_throughput_in_mb_per_sec = _throughput(input_bytes * regular.count, sum(values_us))
    data: bytes = message.SerializeToString()
    return data


def _fill_inference(latency: Any, regular: StatFigures) -> None:
    assert regular.p5_us is not None
    assert regular.median_us is not None
    assert regular.p95_us is not None
    latency.avg_ms = regular.avg_us / 1e3
    latency.min_ms = regular.min_us / 1e3
    latency.max_ms = regular.max_us / 1e3
    latency.stddev_ms = regular.std_us / 1e3
    latency.median_ms = regular.median_us / 1e3
    latency.p5_ms = regular.p5_us / 1e3
    latency.p95_ms = regular.p95_us / 1e3


def _fill_memory(message: Any, memories: Sequence[Memory]) -> None:
    growths = [growth for growth in map(footprint_growth, memories) if growth is not None]
    if not growths:
        return
    message.memory_metrics.init_footprint_kb = max(init_kb for init_kb, _ in growths)
    message.memory_metrics.overall_footprint_kb = max(overall_kb for _, overall_kb in growths)
    monitored = [memory.monitored_peak_kb for memory in memories if memory.monitored_peak_kb]
    if monitored:
        message.memory_metrics.peak_mem_mb = max(monitored) / 1024


def _mean(values_us: Sequence[int]) -> float:
    return summarise_latency(values_us).avg_us


def _throughput(read_bytes: int, total_us: int) -> float:
    """Bytes of input read per second, in units of 1024 * 1024; no number without runs, as in the native tool."""
    if total_us == 0:
        return math.inf if read_bytes else math.nan
    return read_bytes * 1e6 / total_us / (1024 * 1024)
