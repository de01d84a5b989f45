"""Runs a model with a configuration and proves what ran where.

A new runtime is one file here, with a ``RUNTIME`` that follows :class:`Runtime`, plus one line in
``evaltools.configuration.OUR_RUNTIMES``, and a word in the file of each delegate that it can create.
"""

from evaltools.runtime.delegation import DelegateCoverage, Delegation
from evaltools.runtime.registry import Open, find_runtime, installed_runtimes, one_runtime_per_package, open_session
from evaltools.runtime.session import (
    BlockSession,
    Inference,
    Runtime,
    RuntimeFacts,
    Session,
    TensorSpec,
    TimedSession,
    Watched,
)

__all__ = [
    "BlockSession",
    "DelegateCoverage",
    "Delegation",
    "Inference",
    "Open",
    "Runtime",
    "RuntimeFacts",
    "Session",
    "TensorSpec",
    "TimedSession",
    "Watched",
    "find_runtime",
    "installed_runtimes",
    "one_runtime_per_package",
    "open_session",
]
