"""Many configurations from a few flags: the native tool's lists of options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration
from evaltools.delegates import DELEGATES, PARAMETERS
from evaltools.delegates.registry import owner_of
from evaltools.errors import UsageError
from evaltools.parameter import did_you_mean, split_flag

Flags = list[tuple[str, str]]

NONE: Final = "none"
ALL: Final = "all"
_CPU_THREADS: Final = (1, 2, 4)
_RESET: Final = frozenset(
    {"num_threads", "num_interpreter_threads", "kernels", "delegate", "use_gpu", "use_xnnpack", "xnnpack_force_fp16",
     "gpu_precision_loss_allowed", "use_nnapi", "nnapi_accelerator_name", "disable_nnapi_cpu", "nnapi_allow_fp16",
     "max_delegated_partitions", "use_hexagon", "use_coreml", "use_npu"}
)  # fmt: skip
"""What an option of the list states itself, whatever the command line says."""


def _cpu_options() -> dict[str, str]:
    found = {}
    for threads in _CPU_THREADS:
        name = f"cpu w/ {threads} threads"
        found[name] = f"num_threads={threads} use_xnnpack=false"
        found[f"{name} (xnnpack)"] = f"num_threads={threads} use_xnnpack=true"
    return found


_OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "cpu": _cpu_options(),
    "gpu": {
        "gpu-fp16": "use_gpu=true gpu_precision_loss_allowed=true",
        "gpu-default": "use_gpu=true gpu_precision_loss_allowed=false",
    },
    "npu": {"npu": "use_npu=true npu_vendor=qualcomm"},
    "nnapi": {"nnapi(w/o accel name)": "use_nnapi=true"},
    "dsp": {"dsp w/ hexagon": "use_hexagon=true"},
    "coreml": {"coreml": "use_coreml=true"},
}
PERF_OPTIONS: Final = (ALL, *_OPTIONS, NONE)
ALL_HERE: Final = tuple(_OPTIONS)
ALL_OF_NATIVE: Final = ("cpu", "gpu", "nnapi", "dsp")
"""What ``all`` stands for in the native tool on Android."""


def option_configurations(
    text: str, own: Sequence[tuple[str, str]], all_options: Sequence[str] = ALL_HERE
) -> list[Configuration]:
    """The configurations of ``--perf_options_list``; ``own`` are the configuration flags of the command line.

    ``all_options`` is what ``all`` stands for.

    What an option states goes before these; ``none`` stands for exactly these, and has no configuration here. Raises
    :class:`UsageError` as the native tool does, and for a flag that no option reads, since each leaves its delegate
    switched off. Source: benchmark_performance_options.cc.

    >>> [entry.name for entry in option_configurations("gpu,dsp", [])]
    ['gpu-fp16', 'gpu-default', 'dsp w/ hexagon']
    """
    chosen = [word.lstrip(" ") for word in text.split(",")]
    unknown = [word for word in chosen if word not in PERF_OPTIONS]
    if unknown:
        message = (
            f"There are invalid perf options in --perf_options_list: {text!r}. Valid perf options are: "
            f"[{', '.join(PERF_OPTIONS)}]"
        )
        raise UsageError(f"{message}.{did_you_mean(unknown[0], PERF_OPTIONS)}")
    if NONE in chosen:
        if len(chosen) > 1:
            raise UsageError(
                "The 'none' option can not be used together with other perf options in --perf_options_list!"
            )
        return []
    kept = [(name, value) for name, value in own if name not in _RESET]
    given = {name for name, _ in kept}
    found = []
    for kind in all_options if ALL in chosen else dict.fromkeys(chosen):
        for name, words in _OPTIONS[kind].items():
            option = [split_flag(word, CONFIGURATION_PARAMETERS) for word in words.split()]
            option = [(flag, value) for flag, value in option if flag not in given]
            found.append(Configuration.from_flags(name, [*_with_effect(kept, option), *option]))
    read = {flag for entry in found for flag, _ in entry.delegates.given}
    unread = [name for name, _ in kept if name in PARAMETERS and name not in read]
    if unread:
        raise UsageError(f"--{unread[0]} has no effect on any option of --perf_options_list={text}; leave it out")
    return found


def optional_names(text: str, configurations: Sequence[Configuration]) -> frozenset[str]:
    """The names of those configurations of a list with ``all`` that a machine may lack without an error."""
    names = {name for options in _OPTIONS.values() for name in options}
    if ALL not in text.replace(" ", "").split(","):
        return frozenset()
    return frozenset(entry.name for entry in configurations if entry.name in names and entry.delegates.one_session)


def overruled_flags(text: str, own: Iterable[str]) -> list[str]:
    """The names of command-line flags whose values the options of a list replace; empty without a list.

    >>> overruled_flags("cpu", ["num_threads", "runtime"])
    ['num_threads']
    """
    return [] if text == NONE else [name for name in own if name in _RESET]


def _with_effect(kept: Flags, option: Flags) -> Flags:
    """The command line's own flags, without those of delegates that the option leaves switched off."""
    values = {name: PARAMETERS[name].parse(value) for name, value in [*kept, *option] if name in PARAMETERS}
    enabled = [delegate for delegate in DELEGATES if delegate.is_enabled(values)]
    readable = frozenset().union(*(delegate.common for delegate in enabled))
    return [
        (name, value)
        for name, value in kept
        if name not in PARAMETERS or owner_of(name) in enabled or (owner_of(name) is None and name in readable)
    ]
