"""``evaltools convert ios-log``: what the benchmark app for iOS printed, as a result of evaltools benchmark."""

from __future__ import annotations

from pathlib import Path

from evaltools.benchmark.ios import result_of_ios_log
from evaltools.cli.shared.terminal import make_console
from evaltools.exit_codes import NOT_MEASURED, OK
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.tables.benchmark import print_benchmark
from evaltools.request.flags import GivenFlags
from evaltools.result.json_file import encode_json


def convert_ios_log(flags: GivenFlags) -> int:
    """Read the log, write the result, print the table."""
    log, graph, output = Path(flags.text("log_file")), Path(flags.text("graph")), flags.path("output_file_path")
    if output is not None:
        require_output_file(output, "--output_file_path", [log, graph])
    command = ["evaltools", "convert", "ios-log", *(f"--{name}={text}" for name, text in flags.given)]
    result = result_of_ios_log(log, graph, command, flags.is_on("allow_fallback"))
    if output is not None:
        write_file(output, encode_json(result))
    print_benchmark(result, make_console(), False)
    return NOT_MEASURED if any(row.status == "failed" for row in result.rows) else OK
