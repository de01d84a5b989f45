"""What ``--help`` says of flags. A short help lists those that most people need; ``--help=all`` lists every one."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.parameter import Parameter, described
from evaltools.text import in_paragraphs, wrapped

_PLACE_OF_SUMMARIES: Final = 36
_WIDTH_IN_PIPES: Final = 120
_MOST_LINES: Final = 70
_END_OF_SENTENCE: Final = re.compile(r"(?<=[^.])\. ")
_GROUPS_OF_DETAILS: Final = ("delegate", "sampling", "execution", "configurations")
"""Groups, by how their titles begin, of which only common flags are listed."""
_COMMON: Final = frozenset({
    "allow_fallback", "compat", "config", "external_delegate_options", "external_delegate_path",
    "num_interpreter_threads", "output_format", "quiet", "reference", "report", "run_dir", "runtime", "sweep",
    "workers",
})  # fmt: skip
"""Of these groups, beside the switch of each delegate."""
_DETAILS: Final = frozenset({
    "allow_model_mismatch", "bootstrap_resamples", "channel_order", "coco_evaluator", "debug_mode", "input_layout",
    "letterbox_fill", "max_failed_examples", "memory_footprint_check_interval_ms", "native_lines", "nms_iou",
    "op_profiling_output_file", "op_profiling_runs", "option_benchmark_run_delay", "profiling_output_csv_file",
    "random_shuffle_benchmark_runs", "record_examples", "result_file_path", "run_delay", "run_frequency",
    "warmup_min_secs",
})  # fmt: skip
"""Of the other groups, which are those of the command itself, all flags but these are listed."""


def short_help(command: str, description: str, groups: Mapping[str, Sequence[Parameter]], columns: int | None) -> str:
    """The flags that most people need: with all that is known of each, else a line of it in as many groups as fit."""
    listed = _common_groups(groups)
    about = description.partition("\n\n")[2] or description
    width = columns or _WIDTH_IN_PIPES
    attempts = [
        (_paragraph, listed),
        *((_line, dict([*listed.items()][:count])) for count in range(len(listed), 0, -1)),
    ]
    for lines_of, shown in attempts:
        lines = [f"usage: evaltools {command} --flag=value ...", "", wrapped(in_paragraphs(about), width)]
        for title, group in shown.items():
            lines += ["", f"{title}:"]
            for parameter in group:
                lines += lines_of(parameter, width)
        text = "\n".join([*lines, "", wrapped(_where_the_others_are(groups, shown), width)])
        if len(text.splitlines()) <= _MOST_LINES:
            break
    return text


def _paragraph(parameter: Parameter, width: int) -> list[str]:
    """The names of a flag, and all that is known of it: its choices, its help, its default."""
    choices, meaning = described(parameter)
    summary = f"{choices}: {meaning}" if choices else meaning
    indent = " " * _PLACE_OF_SUMMARIES
    names = f"  --{', --'.join(parameter.names)}".ljust(_PLACE_OF_SUMMARIES)
    lines = [indent + line for line in _wrapped(summary, width)]
    return [names + lines[0].lstrip(), *lines[1:]] if names.endswith(" ") else [names, *lines]


def _line(parameter: Parameter, width: int) -> list[str]:
    """The names of a flag, or the first of them, and the first sentence of its help, in one line."""
    names = f"  --{', --'.join(parameter.names)} "
    name = (names if len(names) <= _PLACE_OF_SUMMARIES else f"  --{parameter.name} ").ljust(_PLACE_OF_SUMMARIES)
    summary = _END_OF_SENTENCE.split(parameter.help)[0].rstrip(".") + "."
    return [name + _wrapped(summary, width - len(name) + _PLACE_OF_SUMMARIES, most=1)[0]]


def _wrapped(summary: str, width: int, most: int | None = None) -> list[str]:
    return textwrap.wrap(
        summary,
        width - _PLACE_OF_SUMMARIES,
        max_lines=most,
        placeholder=" ...",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _common_groups(groups: Mapping[str, Sequence[Parameter]]) -> dict[str, list[Parameter]]:
    """What a short help lists of each group; those of all delegates are one, and those without such a flag none."""
    listed: dict[str, list[Parameter]] = {}
    for title, group in groups.items():
        common = [each for each in group if _is_common(title, each)]
        if common:
            listed.setdefault(_shown(title), []).extend(common)
    return listed


def _where_the_others_are(groups: Mapping[str, Sequence[Parameter]], listed: Mapping[str, Sequence[Parameter]]) -> str:
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
