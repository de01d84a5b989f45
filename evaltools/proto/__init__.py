"""The native tools' protobuf messages.

The classes are made at run time from ``native_messages.binpb``, which ``scripts/generate.py`` compiles from the
``.proto`` files beside it. They live in a descriptor pool of their own, so that a program may also import the official
generated modules, which define the same names.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

EVALUATION: Final = "tflite.evaluation"
BENCHMARK: Final = "tflite.tools.benchmark"
PROFILING: Final = "tflite.profiling"
"""Packages of the evaluation tools' messages, of the benchmark's result and of its profile of operators."""


def message_class(name: str, package: str = EVALUATION) -> Any:
    r"""The class of a message of one of the packages.

    >>> message_class("EvaluationStageMetrics")(num_runs=3).SerializeToString()
    b'\x08\x03'
    >>> message_class("MiscMetrics", BENCHMARK)(num_runs=3).SerializeToString()
    b'\x10\x03'
    """
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{package}.{name}"))


@lru_cache(maxsize=1)
def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    compiled = descriptor_pb2.FileDescriptorSet.FromString(
        files("evaltools.proto").joinpath("native_messages.binpb").read_bytes()
    )
    for file in compiled.file:
        pool.Add(file)
    return pool
