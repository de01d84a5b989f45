"""The flags of commands that give verdicts."""

from __future__ import annotations

from typing import Final

from evaltools.parameter import Parameter

FILES: Final = (
    Parameter("junit", "JUnit XML file with a test case for each verdict.", role="output_file", about="result"),
    Parameter(
        "markdown", "Markdown file with the verdicts, for the summary of a CI job.", role="output_file", about="result"
    ),
    Parameter(
        "badge",
        "JSON file for an endpoint badge: how many failed and passed, in a colour.",
        role="output_file",
        about="result",
    ),
    Parameter(
        "report",
        "One page with the verdicts and the results behind them: FILE.html, or FILE.md for its first screen.",
        role="output_file",
        about="result",
    ),
    Parameter("output_file_path", "JSON file with the verdicts.", role="output_file", about="result", short="output"),
    Parameter("json", "The same as --output_file_path.", role="output_file", about="result"),
)
"""The files in which they are written."""
