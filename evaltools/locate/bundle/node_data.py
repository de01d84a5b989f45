"""The errors of operators as custom node data of Model Explorer, which colours the graph by them.

The format is that of ``model_explorer.node_data_builder``: by graph, then by node. Model Explorer's nodes of a
``.tflite`` file are the numbers of its operators; a graph without a name is called ``main``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Final

from evaltools.result.locate import Operator

_NAME: Final = "error alone / tolerance"
_MOST: Final = 1e9
"""Instead of infinity, which JSON does not have."""
_COLOURS: Final = ((1.0, "#c8e6c9"), (10.0, "#ffe082"), (_MOST, "#ef9a9a"))


def node_data(operators: Iterable[Operator], graph: str) -> bytes:
    """The file's content: the error of each operator that was measured alone, as a share of its tolerance."""
    results = {str(each.index): {"value": share} for each in operators if (share := _share(each)) is not None}
    thresholds = [{"value": value, "bgColor": colour} for value, colour in _COLOURS]
    content = {graph or "main": {"results": results, "name": _NAME, "thresholds": thresholds}}
    return json.dumps(content, indent=1, ensure_ascii=True).encode() + b"\n"


def _share(operator: Operator) -> float | None:
    if operator.local is None or operator.tolerance is None:
        return None
    worst = operator.local.worst
    share = worst / operator.tolerance if operator.tolerance else (math.inf if worst else 0.0)
    return min(share, _MOST) if not math.isnan(share) else _MOST
