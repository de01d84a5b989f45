"""Runs a model with a configuration and proves what ran where.

A new runtime is one file here, with a ``RUNTIME`` that follows :class:`Runtime`, plus one line in
``evaltools.configuration.OUR_RUNTIMES``, and a word in the file of each delegate that it can create.
"""

from evaltools.runtime.delegation import DelegateCoverage, Delegation
from evaltools.runtime.registry import Open, find_runtime, installed_runtimes, one_runtime_per_package, open_session
from evaltools.runtime.session import (
    BlockSession,
    Inference,
    OpenProcess,
    ProcessSession,
    Runtime,
    RuntimeFacts,
    Session,
    TensorSpec,
    TimedSession,
)

__all__ = [
    "BlockSession",
    "DelegateCoverage",
    "Delegation",
    "Inference",
    "Open",
    "OpenProcess",
    "ProcessSession",
    "Runtime",
    "RuntimeFacts",
    "Session",
    "TensorSpec",
    "TimedSession",
    "find_runtime",
    "installed_runtimes",
    "one_runtime_per_package",
    "open_session",
]
