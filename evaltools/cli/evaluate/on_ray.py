"""``--executor=ray`` at a terminal: the shards are done on a cluster, then merged here."""

from __future__ import annotations

from evaltools.cli.evaluate.carry_out import carry_out
from evaltools.cli.shared.progress import show_progress
from evaltools.cli.shared.terminal import make_console
from evaltools.request import Request
from evaltools.runs.on_ray import shards_on_ray


def carry_out_on_ray(request: Request) -> int:
    """Have the shards done, merge them; returns the exit code."""
    progress = request.options.text("progress")
    with shards_on_ray(request, lambda count: show_progress("shards", count, make_console(), progress)) as shards:
        return carry_out(request.without("executor", "ray_address", "ray_tasks", "run_dir"), shards)
