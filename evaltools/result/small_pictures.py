"""Small pictures of what a model gave for one example, drawn by its task for the page."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct


class Panel(Struct, frozen=True):
    """A small picture, ``png`` the content of its file; ``name`` says whose it is.

    ``is_over``: it has transparent places, and is laid over the picture of the example.
    """

    name: str
    png: bytes
    is_over: bool = False


class Drawing(Struct, frozen=True):
    """What changed for an example, ``changed`` by how much, 0 or above: the most come first.

    ``text`` says it in a few words, ``picture`` names the file of the example, and ``panels`` stand side by side.
    """

    changed: float
    text: str
    picture: str
    panels: Sequence[Panel]
