"""Results with one field edited: deleted, retyped, zeroed, enlarged, negative. The number of a case is its seed."""

from __future__ import annotations

import copy
import json
import random
from functools import cache
from pathlib import Path
from typing import Any, Final

_STORED: Final = Path(__file__).resolve().parent.parent / "report" / "page" / "stored"
_VALUES: Final[tuple[Any, ...]] = (
    None, True, 0, -1, 1, 2**31, -(2**63), 0.0, -0.5, 1e-300, 1e300, float("nan"), float("inf"), "", "x",
    "\x1b[2J\u202e", "../../../etc/passwd", "a" * 5000, [], {}, [0], ["x"], {"x": 1},
)  # fmt: skip


@cache
def documents() -> dict[str, Any]:
    """The stored results by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(_STORED.glob("*.json"))}


def edited(seed: int) -> tuple[str, bytes]:
    """A result with one edit, and what was done in words."""
    chance = random.Random(seed)
    name = chance.choice(list(documents()))
    document = copy.deepcopy(documents()[name])
    parent, key, place = chance.choice(list(places_in(document, name)))
    what = chance.choice(("delete", "value", "value", "value", "double", "swap"))
    if what == "delete":
        del parent[key]
    elif what == "double" and isinstance(parent, list):
        parent.append(copy.deepcopy(parent[key]))
    else:
        parent[key] = another_value(parent[key] if what == "swap" else None, chance)
    return f"{seed}: {what} {place}", json.dumps(document).encode()


def another_value(value: Any, chance: random.Random) -> Any:
    """One of another type, or a number that is larger, smaller or negative."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and chance.random() < 0.5:
        return chance.choice((value * 1000, -value, value / 1000, float(value), 0))
    return chance.choice(_VALUES)


def places_in(value: Any, place: str) -> Any:
    """Every value below, with its parent and key."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield value, key, f"{place}.{key}"
        yield from places_in(inner, f"{place}.{key}")
