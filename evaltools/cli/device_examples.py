"""What a task evaluates, as far as devices need to know it: how many examples, and which pictures belong to each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from evaltools.cli.configurations import read_configurations
from evaltools.cli.flags import GivenFlags
from evaltools.datasets.image_folder import list_images
from evaltools.engine import Shard
from evaltools.engine.task import Example

_FEWEST_PER_PART: Final = 10
_MOST_PER_PART: Final = 500
_PARTS_PER_DEVICE: Final = 4


@dataclass(frozen=True)
class TaskExamples:
    """The examples of a task.

    ``pictures`` are those of a flag's folder in the order of the examples; they repeat where there are fewer. The first
    ``shared`` are needed by every part. ``in_one_part``: each example depends on those before it.
    """

    count: int
    pictures: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    shared: int = 0
    in_one_part: bool = False

    def parts(self, asked: int, devices: int) -> int:
        """How many parts to make."""
        return 1 if self.in_one_part else parts_of(self.count, asked, devices)

    def pictures_of(self, flag: str, shard: Shard) -> tuple[Path, ...]:
        """The pictures that a part needs, in the order of their names."""
        paths = self.pictures[flag]
        examples = [Example(index, "") for index in range(self.count)]
        needed = {example.index % len(paths) for example in shard.of(examples)} | set(
            range(min(self.shared, len(paths)))
        )
        return tuple(paths[index] for index in sorted(needed))


def parts_of(examples: int, asked: int, devices: int) -> int:
    """How many parts to make: as asked for, else few enough to be worth it and small enough to be lost.

    >>> parts_of(200, 0, 2), parts_of(50_000, 0, 1), parts_of(15, 4, 1)
    (8, 100, 4)
    """
    if asked:
        return max(1, min(asked, examples))
    enough = -(-examples // _MOST_PER_PART)
    if devices > 1:
        enough = max(enough, min(_PARTS_PER_DEVICE * devices, examples // _FEWEST_PER_PART))
    return max(1, enough)


def _of_imagenet(flags: GivenFlags) -> TaskExamples:
    from evaltools.cli.imagenet_run import plan_files, read_request
    from evaltools.tasks.imagenet.evaluation import prepare

    configurations = read_configurations(flags)
    request = read_request(flags, configurations, [])
    plan_files(flags, configurations, request)
    evaluation = prepare(request)
    evaluation.check_here()
    return TaskExamples(evaluation.example_count, {"ground_truth_images_path": evaluation.pictures})


def _of_coco(flags: GivenFlags) -> TaskExamples:
    from evaltools.cli.coco_run import plan_files, read_request
    from evaltools.tasks.coco.evaluation import PICTURES_TRIED, prepare

    configurations = read_configurations(flags)
    request = read_request(flags, configurations, [])
    plan_files(flags, configurations, request)
    material = prepare(request)
    paths = material.pictures
    return TaskExamples(len(paths), {"ground_truth_images_path": paths}, shared=PICTURES_TRIED)


def _of_inference_diff(flags: GivenFlags) -> TaskExamples:
    from evaltools.cli.inference_diff_run import diff_configurations, plan_files, read_request
    from evaltools.tasks.inference_diff.request import prepare

    configurations = diff_configurations(flags)
    request = read_request(flags, configurations, [])
    plan_files(flags, configurations, request)
    material = prepare(request)
    folder = request.inputs.images
    pictures = {} if folder is None else {"input_images": list_images(folder, "--input_images").paths}
    return TaskExamples(len(material.task.examples), pictures, shared=1, in_one_part=material.stateful)


_TASKS: Final[Mapping[str, Callable[[GivenFlags], TaskExamples]]] = {
    "imagenet": _of_imagenet,
    "coco": _of_coco,
    "inference-diff": _of_inference_diff,
    "diff": _of_inference_diff,
}


def examples_of(task: str, flags: GivenFlags) -> TaskExamples:
    """Read and check model and data here, before anything is sent; raises :class:`UsageError` and its kinds."""
    return _TASKS[task](flags)
