"""The request of an ImageNet evaluation, checked."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from evaltools.datasets.order import Order
from evaltools.gates.accuracy_verdict import DEFAULT_MARGIN
from evaltools.request import Request
from evaltools.tasks.imagenet.task import ImagenetOptions
from evaltools.tasks.shared.options.pictures import read_margin
from evaltools.tasks.shared.request import TaskRequest, shared_fields


class ImagenetRequest(TaskRequest, frozen=True):
    """What to evaluate with which configurations.

    ``margin`` is the change of accuracy, 0..1, that counts as none in verdicts.
    """

    options: ImagenetOptions
    label_check: bool = True
    record_examples: bool = False
    margin: float = DEFAULT_MARGIN


def read_request(request: Request) -> ImagenetRequest:
    """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""
    given = request.options
    options = ImagenetOptions(
        ground_truth_images_path=Path(given.text("ground_truth_images_path")),
        ground_truth_labels=Path(given.text("ground_truth_labels")),
        model_output_labels=Path(given.text("model_output_labels")),
        denylist_file_path=given.path("denylist_file_path"),
        num_images=given.number("num_images"),
        order=cast(Order, given.text("order")),
        seed=given.number("seed"),
        normalization=given.text("normalization"),
        label_offset=given.number("label_offset") if "label_offset" in given else None,
        native=request.is_native,
    )
    return ImagenetRequest(
        **shared_fields(request),
        options=options,
        label_check=given.is_on("label_check"),
        record_examples=given.is_on("record_examples"),
        margin=read_margin(given),
    )
