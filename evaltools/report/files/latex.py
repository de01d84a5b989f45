"""A table in LaTeX, for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.result.section import Number, Table, text_of
from evaltools.text import printable

_COMMANDS: Final = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
        "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
        "\u00b1": r"$\pm$", "\u2026": r"\ldots{}",
    }
)  # fmt: skip


def latex_of(table: Table) -> str:
    r"""A ``tabular`` of the package booktabs: numbers to the right, and what stands below the table as a comment.

    >>> print(latex_of(Table("", ["name", "top-1"], [["a_b", Number("90 %", 0.9)]], "All: 2 models.")))
    \begin{tabular}{lr}
    \toprule
    name & top-1 \\
    \midrule
    a\_b & 90 \% \\
    \bottomrule
    \end{tabular}
    % All: 2 models.
    """
    shown = table.compact
    sides = ["r" if any(isinstance(row[place], Number) for row in shown.rows) else "l" for place in _places(shown)]
    lines = [_row([text_of(cell) for cell in row]) for row in shown.rows]
    head = [_row(shown.columns), r"\midrule"] if shown.columns else []
    below = [f"% {printable(shown.below)}"] if shown.below else []
    begin = rf"\begin{{tabular}}{{{''.join(sides)}}}"
    return "\n".join([begin, r"\toprule", *head, *lines, r"\bottomrule", r"\end{tabular}", *below])


def _places(table: Table) -> range:
    return range(len(table.columns) or max(map(len, table.rows), default=0))


def _row(texts: Sequence[str]) -> str:
    return rf"{' & '.join(printable(text).translate(_COMMANDS) for text in texts)} \\"
