"""Requests made as the command line makes them."""

from __future__ import annotations

from evaltools.commands.evaluation import request_of_task
from evaltools.known_tasks import task_command
from evaltools.request import Request
from evaltools.request.flags import GivenFlags, parse_flags

REQUIRED = {
    "imagenet": (
        "--model_file=m.tflite", "--ground_truth_images_path=images", "--ground_truth_labels=truth.txt",
        "--model_output_labels=labels.txt",
    ),
    "coco": ("--model_file=m.tflite", "--ground_truth_images_path=images"),
    "inference_diff": ("--model_file=m.tflite",),
}  # fmt: skip
"""What a command line needs so that it is one."""


def flags_of(task: str, *words: str) -> GivenFlags:
    """The flags of a task, without what it requires."""
    command = task_command(task)
    return parse_flags(command.words, "", "", command.groups, words)


def request_of(task: str, *words: str) -> Request:
    """A request with what the task requires, and more flags."""
    command = task_command(task)
    typed = (*REQUIRED[task], *words)
    return request_of_task(command, flags_of(task, *typed), ("evaltools", command.words, *typed))
