"""``evaltools benchmark`` beside the recorded runs of the native tool: the same lines in the same order."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from evaltools.native.logs.benchmark import parse_benchmark_log
from evaltools.native.logs.delegates import delegate_lines
from tests.command import evaltools_here

pytest.importorskip("ai_edge_litert", reason="the runtime litert is not installed")

CASES = (
    "default_mnv1_025",
    "default_add",
    "default_string_input",
    "dry_run",
    "input_layer_bad",
    "input_layer_ok",
    "input_layer_resize",
    "input_range",
    "noxnn_mnv1_025",
    "num_runs_0",
    "num_runs_1_nowarm",
    "num_runs_5",
    "peak_mem",
    "peak_mem_50ms",
    "print_bad_negative",
    "run_delay",
    "run_frequency",
    "sig_run",
    "threads2_mnv1_025",
    "xnn_mnv1_025",
    "xnn_mnv1_025_float",
)
QUICK = {"min_secs": "0", "warmup_min_secs": "0", "max_secs": "20", "num_runs": "5"}
"""Shorter than recorded, where the recorded run takes the defaults; these flags are taken out of the lines again."""


def masked(text: str) -> list[str]:
    """Lines without measured figures and without what the two runs were told differently."""
    lines = []
    for line in text.splitlines():
        if re.match(r"INFO: (Min num runs|Min runs|Max runs|Min warmup runs duration|Graph|Loaded model)", line):
            continue
        if line.startswith("INFO: count="):
            line = "INFO: count="
        if line.startswith("INFO: Running benchmark for"):
            line = "INFO: Running benchmark for"
        lines.append(re.sub(r"(?<=[=: ])-?[0-9][0-9.e+-]*", "#", line))
    return lines


@pytest.mark.parametrize("case", CASES)
def test_the_lines_are_those_of_the_native_tool(case: str, shared: Path) -> None:
    folder = shared / "oracle" / "benchmark" / case
    flags = [
        flag.replace("realdata/zoo", str(shared / "realdata" / "zoo"))
        for flag in shlex.split((folder / "cmd.txt").read_text())[1:]
    ]
    given = {flag.removeprefix("--").partition("=")[0] for flag in flags}
    quick = [f"--{name}={value}" for name, value in QUICK.items() if name not in given and case != "dry_run"]
    done = evaltools_here("benchmark", *flags, *quick, "--runtime=litert")
    assert done.code == 0, done.err
    recorded = (folder / "stdout.txt").read_text()
    assert masked(done.out) == masked(recorded)
    ours, theirs = parse_benchmark_log(done.out), parse_benchmark_log(recorded)
    assert ours.round is not None
    assert delegate_lines(done.out) == delegate_lines(recorded)
    (size,) = [line for line in recorded.splitlines() if "model file size" in line]
    assert size in done.out
    unlike = {"Graph", "Min num runs", "Min runs duration (seconds)", "Max runs duration (seconds)"}
    unlike |= {"Min warmup runs duration (seconds)"}
    told = {name: value for name, value in theirs.parameters.items() if name not in unlike}
    assert {name: value for name, value in ours.parameters.items() if name not in unlike} == told
