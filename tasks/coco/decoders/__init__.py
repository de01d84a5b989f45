"""The raw heads that can be read. A new one is a file here with a ``DECODER``, plus its name in ``NAMES``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from evaltools.tasks.coco.decoders.kind import Decoder

NAMES: Final = ("yolov5", "yolov8", "yolox", "yolo_nms")
"""In the order in which they are taken where a shape fits several and nothing else tells them apart."""


def decoder_named(name: str) -> Decoder:
    """The decoder of that name; its file is read only now.

    >>> decoder_named("yolov8").name
    'yolov8'
    """
    found: Decoder = import_module(f"{__name__}.{name}").DECODER
    return found


def all_decoders() -> list[Decoder]:
    """Every one, in order."""
    return [decoder_named(name) for name in NAMES]
