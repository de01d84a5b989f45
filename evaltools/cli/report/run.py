"""``evaltools report`` behind its flags: read, render, write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evaltools.cli.shared.streams import complain
from evaltools.errors import UsageError
from evaltools.exit_codes import OK
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.page.content.sources import Sources
from evaltools.report.page.file import page_file, require_page_file
from evaltools.report.page.from_files import read_sources
from evaltools.report.page.make import histories_in


def report(results: Sequence[str], output: Path, images: Path | None) -> int:
    """Write a page about result files; returns the exit code."""
    files = [Path(word) for word in results]
    require_page_file(output, "--output")
    require_output_file(output, "--output", files)
    if images is not None and not images.is_dir():
        raise UsageError(f"--images={images}: no such folder; give the one with the pictures, or leave it out")
    sources = read_sources(files)
    _require_content(sources)
    content = page_file(sources, output, images)
    write_file(output, content)
    complain(f"{output} written ({len(content) / 1e6:.2f} MB)")
    return OK


def _require_content(sources: Sources) -> None:
    """Raise :class:`UsageError` for baselines that have nothing of the same model and examples beside them."""
    if sources.count or not sources.baselines or any(len(history.releases) > 1 for history in histories_in(sources)):
        return
    raise UsageError(
        "a baseline alone is no page; give a result beside it, or another baseline of "
        f"{sources.baselines[0].about} on the same examples, which are told over time"
    )
