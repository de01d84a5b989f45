"""What of a screen or a result depends on the machine, its load or its clock is replaced by a word."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any, Final

_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")
_RULES: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\x1b\[[0-9;]*m", ""),
        (r"(ai-edge-litert|tflite-runtime|numpy|scipy) \d+(\.\d+)+", r"\1 VERSION"),
        (r"[<>~]?\d+(\.\d+)?x(?: \[[^]]*\])?(?: the speed of \w+)?", "SPEED"),
        (r"[\d.]+ times (?:faster|slower)(?: \[[^]]*\])?|\bas fast(?! as)\b", "SPEED"),
        (r"\b(?:faster|slower) than \w+\b|\bas fast as \w+\b", "SPEED"),
        (r"(avg|std_dev|min|max|std|first|curr)=[-\d.e+]+(?=\(us\)| \(us\))", r"\1=TIME"),
        (r"(?<![\w.])\d+(\.\d+)? ?(?:us|ms|s|MB|GB|/s)\b", "AMOUNT"),
        (r"(?<![\w.])\d+(\.\d+)?/s\b", "RATE"),
        (r"(count|first|min|max|avg|std|curr|p5|median|p95|init|overall)=[-\d.e+]+", "FIGURE"),
        (r"(?:Init|First inference|\(avg\)): [-\d.e+]+", "FIGURE"),
        (r"--runtime=compiled, emulated", "--runtime=compiled"),  # an extra that may be there
        (r" {2,}", "  "),
        (r"[-─━]{4,}", "----"),
    )
)
_UNSTEADY_LINES: Final = re.compile(
    r"^(?:evaluated \d|latency in quiet|noise floor:|runs: \d|.*\bbound by\b|.*\bAMOUNT left\b|.*latency|.*p50"
    r"|.*the machine was not quiet)"
)
"""Lines about progress and speed."""
_MANY: Final = 16
_UNSTEADY_KEYS: Final = re.compile(
    r"(?:environment|execution|memory|latency|_us|_ms|_s|_mb|seconds|drift|folder|file|images|digest|version"
    r"|^load$|messages|processes|packages|command|speed|source|startup|timing|sha256|started_at|peak|trace)"
)


def blank_text(text: str) -> str:
    """The screen without times and progress.

    >>> blank_text("x: 2.19x [2.02, 2.35] the speed of reference; 3.5 ms")
    'x: SPEED; AMOUNT\\n'
    """
    lines = []
    for line in text.splitlines():
        for pattern, replacement in _RULES:
            line = pattern.sub(replacement, line)
        if not _UNSTEADY_LINES.match(line) or line.startswith("INFO:"):
            lines.append(line.rstrip())
    return "\n".join(lines) + "\n" if lines else ""


def facts(document: Any, path: str = "") -> Iterator[str]:
    """A line ``path: value`` for each value of a JSON document that does not depend on the machine.

    Of many numbers in a list their number and sum are facts.

    >>> list(facts({"a": [1, {"b": None}], "elapsed_s": 3.5}))
    ['a[0]: 1', 'a[1].b: null']
    """
    if isinstance(document, dict):
        for key in sorted(document):
            if not _UNSTEADY_KEYS.search(key):
                yield from facts(document[key], f"{path}.{key}" if path else key)
    elif isinstance(document, list) and len(document) > _MANY and _are_numbers(document):
        known = [value for value in document if value is not None]
        yield f"{path}: {len(known)} numbers, sum {math.fsum(known)}"
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from facts(value, f"{path}[{index}]")
    else:
        yield f"{path}: {'null' if document is None else document}"


def _are_numbers(values: list[Any]) -> bool:
    return all(value is None or isinstance(value, int | float) for value in values)


def differences(recorded: str, now: str, tolerance: float) -> list[str]:
    """The pairs of lines that differ in more than numbers within the relative tolerance.

    >>> differences("a 1.00 b", "a 1.04 b", 0.05), differences("a 1.00 b", "a 1.2 b", 0.05)
    ([], ['- a 1.00 b', '+ a 1.2 b'])
    """
    found: list[str] = []
    for old, new in zip_longest(recorded.splitlines(), now.splitlines()):
        if old is None or new is None or not _are_alike(old, new, tolerance):
            found.extend(f"{sign} {line}" for sign, line in (("-", old), ("+", new)) if line is not None)
    return found


def _are_alike(old: str, new: str, tolerance: float) -> bool:
    if old == new:
        return True
    if _NUMBER.sub("N", old) != _NUMBER.sub("N", new):
        return False
    pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
    return all(math.isclose(float(one), float(other), rel_tol=tolerance, abs_tol=1e-12) for one, other in pairs)
