"""What of a screen or a result depends on the machine, its load or its clock is replaced by a word."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher, unified_diff
from typing import Any, Final

_NUMBER: Final = re.compile(r"(?<![\w.])(?!(?<=\[)\d+\])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])")
"""Not the index in ``outputs[3]``, which is no figure."""
_RULES: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\x1b\[[0-9;]*m", ""),
        (r"(ai-edge-litert|tflite-runtime|numpy|scipy) \d+(\.\d+)+", r"\1 VERSION"),
        (r"(?:about )?\d+(?:\.\d+)?x(?: \([\d.]+ to [\d.]+\)| \[[^]]*\])?(?: as fast as \w+)?(?![\w.])", "SPEED"),
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
    r"evaluated \d|[\w+ ]+: \d+ of \d+ \(\d+ %\)|.*\bbound by\b|.*\bAMOUNT left\b|.*the machine was not quiet"
)
"""Lines about progress and load."""
_MANY: Final = 16
_UNSTEADY_KEYS: Final = re.compile(
    r"blocks|notes|environment|(?:.*_)?version|load|drift|speed|speed_interval|memory|(?:.*_)?latency(?:_.*)?|.*_(?:us|ms|s|seconds|kb|mb)"
    r"|workers|one_worker|bound|quiet_latency_examples"
)
"""The whole of a key; what there is to show is on the screen that is recorded."""


def blank_text(text: str) -> str:
    """The screen without times and progress."""
    lines = []
    for line in text.splitlines():
        for pattern, replacement in _RULES:
            line = pattern.sub(replacement, line)
        if not _UNSTEADY_LINES.match(line) or line.startswith("INFO:"):
            lines.append(line.rstrip())
    return "\n".join(lines) + "\n" if lines else ""


def blank_paths(text: str, names: Mapping[str, str]) -> str:
    """The text with a name for each path, and without the quotes that a shell needs for blanks in the path alone."""
    for path, name in names.items():
        if shlex.quote(path) != path:
            text = re.sub(rf"'([-=\w]*){re.escape(path)}([-./\w]*)'", rf"\1{name}\2", text)
        text = text.replace(path, name)
    return text


def facts(document: Any, path: str = "") -> Iterator[str]:
    """A line ``path: value`` for each value of a JSON document that does not depend on the machine.

    Of many numbers in a list their number and sum are facts.
    """
    if isinstance(document, dict):
        for key in sorted(document):
            if not _UNSTEADY_KEYS.fullmatch(key):
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
    """A unified diff of the lines; numbers within the relative tolerance are equal."""
    old, new = recorded.splitlines(), now.splitlines()
    before, after = ([_NUMBER.sub("N", line) for line in lines] for lines in (old, new))
    for tag, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            pairs = zip(old[first:last], new[start:end], strict=True)
            old[first:last] = [other if _are_alike(one, other, tolerance) else one for one, other in pairs]
    return list(unified_diff(old, new, lineterm="", n=1))[2:]


def _are_alike(old: str, new: str, tolerance: float) -> bool:
    pairs = zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True)
    return all(math.isclose(float(one), float(other), rel_tol=tolerance, abs_tol=1e-12) for one, other in pairs)
