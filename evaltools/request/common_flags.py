"""Which flags a short help lists: those that most people need. ``--help=all`` lists every one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.parameter import Parameter, format_value

MOST_LISTED: Final = 45
"""A command with more flags has a short help."""
_GROUPS_OF_DETAILS: Final = ("delegate", "sampling", "execution", "configurations")
"""Groups, by how their titles begin, of which only common flags are listed."""
_COMMON: Final = frozenset({
    "allow_fallback", "compat", "config", "configs", "delegate", "external_delegate_options", "external_delegate_path",
    "num_interpreter_threads", "output_format", "quiet", "reference", "report", "run_dir", "runtime", "sweep",
    "workers",
})  # fmt: skip
"""Of these groups, beside the switch of each delegate."""
_DETAILS: Final = frozenset({
    "bootstrap_resamples", "channel_order", "coco_evaluator", "debug_mode", "letterbox_fill",
    "memory_footprint_check_interval_ms", "native_lines", "nms_iou", "op_profiling_output_file", "op_profiling_runs",
    "option_benchmark_run_delay", "profiling_output_csv_file", "random_shuffle_benchmark_runs", "record_examples",
    "result_file_path", "run_delay", "run_frequency", "run_timeout", "warmup_min_secs",
})  # fmt: skip
"""Of the other groups, which are those of the command itself, all flags but these are listed."""


def common_groups(groups: Mapping[str, Sequence[Parameter]]) -> dict[str, list[Parameter]]:
    """What a short help lists of each group; those of all delegates are one, and those without such a flag none."""
    listed: dict[str, list[Parameter]] = {}
    for title, group in groups.items():
        common = [each for each in group if _is_common(title, each)]
        if common:
            listed.setdefault(_shown(title), []).extend(common)
    return listed


def whole_help(parameter: Parameter) -> str:
    """What is known of a flag: its choices, its help, its default."""
    choices = "|".join(format_value(choice) for choice in parameter.choices if choice != "")
    default = "" if parameter.given_counts else format_value(parameter.default)
    return (f"{choices}: " if choices else "") + parameter.help + (f" Default: {default}." if default else "")


def summary_of(parameter: Parameter) -> str:
    """The first sentence of a flag's help."""
    return parameter.help.partition(". ")[0].rstrip(".") + "."


def where_the_others_are(groups: Mapping[str, Sequence[Parameter]], listed: Mapping[str, Sequence[Parameter]]) -> str:
    """The last line of a short help."""
    kept = {parameter.name for group in listed.values() for parameter in group}
    left_out = [(title, each) for title, group in groups.items() for each in group if each.name not in kept]
    titles = dict.fromkeys(_shown(title) for title, _ in left_out)
    return f"--help=all lists {len(left_out)} more flags: of {', '.join(titles)}; and the exit codes"


def _shown(title: str) -> str:
    return "delegates" if title.startswith("delegate") else title


def _is_common(title: str, parameter: Parameter) -> bool:
    if not title.startswith(_GROUPS_OF_DETAILS):
        return parameter.name not in _DETAILS
    is_switch = title.startswith("delegate ") and parameter.name.startswith("use_")
    return is_switch or parameter.name in _COMMON
