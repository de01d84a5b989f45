"""Where a mistake can be planted into a module, and its text with that mistake; the mistakes are Cosmic Ray's."""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

Place = tuple[int, int]
_HARMLESS: Final = ("RemoveDecorator", "ExceptionReplacer", "VariableReplacer", "VariableInserter")
"""Kinds of mistakes that are not tried: hardly a module can be loaded without a decorator or with another exception."""


class Mutant(NamedTuple):
    """A mistake in a module: ``kind`` at a line, the ``occurrence``-th of its kind in the module."""

    path: Path
    line: int
    kind: str
    occurrence: int

    def text(self) -> str:
        """The module with the mistake."""
        mutated = mutate_code(self.path.read_text(encoding="utf-8"), get_operator(self.kind)(), self.occurrence)
        if mutated is None:
            raise ValueError(f"{self} is not in the module")
        return str(mutated)


def drawn(paths: list[Path], count: int, seed: int) -> list[Mutant]:
    """So many mistakes: places are drawn with equal chance, and at each of them a kind."""
    chance = random.Random(seed)
    by_place: dict[tuple[Path, Place], list[Mutant]] = defaultdict(list)
    for path in paths:
        for place, mutant in _all_of(path):
            by_place[path, place].append(mutant)
    places = chance.sample(sorted(by_place), min(count, len(by_place)))
    return [chance.choice(by_place[place]) for place in places]


def _all_of(path: Path) -> Iterator[tuple[Place, Mutant]]:
    """Every mistake that a module can have, with its place; none in types and classes' settings, never computed."""
    tree = get_ast_from_path(path)
    types = _lines_of_types(ast.parse(path.read_text(encoding="utf-8")))
    for kind in operator_names():
        operator = get_operator(kind)
        if kind.endswith(_HARMLESS) or operator.arguments():
            continue
        places = (place for node in ast_nodes(tree) for place, _ in operator().mutation_positions(node))
        for occurrence, place in enumerate(places):
            if not any(first <= place < last for first, last in types):
                yield place, Mutant(path, place[0], kind, occurrence)


def _lines_of_types(tree: ast.Module) -> list[tuple[Place, Place]]:
    """From where to where annotations of variables, parameters and results are, and what classes say of themselves.

    That is ``frozen=True``, which nothing depends on that is written.
    """
    found = []
    for node in ast.walk(tree):
        stated = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.ClassDef):
            stated += [keyword.value for keyword in node.keywords]
        for each in stated:
            if isinstance(each, ast.expr):
                last = (each.end_lineno or each.lineno, each.end_col_offset or 0)
                found.append(((each.lineno, each.col_offset), last))
    return found
