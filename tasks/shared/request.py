"""The part of a request that every evaluation has, checked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from evaltools.configuration import Configuration
from evaltools.engine.execution import Execution
from evaltools.request import Request
from evaltools.tasks.shared.options.execution import flags_to_repeat, read_execution


class TaskRequest(Struct, frozen=True, kw_only=True):
    """What every evaluation is asked for, checked.

    ``max_failed_examples`` None: no limit. ``flags`` are those that a resumed run must repeat. ``command`` is only
    recorded. ``source`` is the request that a run folder keeps, None for a program of its own.
    """

    model_file: Path
    reference: Configuration | None
    tests: tuple[Configuration, ...]
    allow_fallback: bool = False
    max_failed_examples: int | None = None
    execution: Execution = field(default_factory=Execution)
    flags: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    source: Request | None = None

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        """The reference, if there is one, and the others."""
        return ((self.reference,) if self.reference else ()) + self.tests

    @property
    def reference_name(self) -> str | None:
        """The name of the reference, if there is one."""
        return None if self.reference is None else self.reference.name


def shared_fields(request: Request) -> dict[str, Any]:
    """The fields of :class:`TaskRequest` that a request gives, whatever the task."""
    options = request.options
    limit = options.number("max_failed_examples")
    return {
        "model_file": Path(options.text("model_file")),
        "reference": request.reference,
        "tests": request.tests,
        "allow_fallback": options.is_on("allow_fallback"),
        "max_failed_examples": (0 if request.is_native else None) if limit < 0 else limit,
        "execution": read_execution(options),
        "flags": flags_to_repeat(options),
        "command": request.command,
        "source": request,
    }
