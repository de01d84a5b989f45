"""Runs parts in a process of its own: what crashes or hangs there is a finding, and costs one part."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.journal import Journal
from evaltools.errors import DataError, EvaltoolsError, SessionEnded
from evaltools.model import ModelFile
from evaltools.operators.child import capture, open_parts
from evaltools.operators.measurement import measure
from evaltools.operators.part import Outcome, Part, decode, encode
from evaltools.runtime.process.isolated import IsolatedSession, open_isolated
from evaltools.runtime.session import Array

_NO_LIMIT: Final = 0
Returned = TypeVar("Returned")


class GivenUp(EvaltoolsError):
    """The limit of compiles or of seconds was reached; the text says which."""


class Bench:
    """Measures parts of one model on the tensors of a reference.

    ``folder`` holds the tensors, ``journal`` what was measured before. ``on_part`` is called for each part that was
    measured. ``max_compiles`` and ``max_secs`` are limits, 0 for none.
    """

    def __init__(
        self,
        model: ModelFile,
        reference: Configuration,
        folder: Path,
        journal: Journal,
        timeout_s: float,
        max_compiles: int = _NO_LIMIT,
        max_secs: float = _NO_LIMIT,
        on_part: Callable[[Part], None] = lambda _part: None,
    ) -> None:
        self._model = model
        self._reference = reference
        self.folder: Final = folder
        self._journal = journal
        self._timeout_s = timeout_s
        self._max_compiles = max_compiles
        self._end = time.monotonic() + max_secs if max_secs else None
        self._on_part = on_part
        self._session: IsolatedSession | None = None
        self.compiles = 0
        self.inputs = 0
        self.changes_outputs = False

    def capture(self, inputs: Sequence[Sequence[Array]], tensors: Sequence[int]) -> None:
        """Run the reference on every set of inputs and keep all tensors.

        ``tensors`` are the numbers of the inputs. Raises what the reference raises, also where its process dies.
        """
        for run, values in enumerate(inputs):
            self._save(run, values, tensors)
            captured = self._call(capture, run)
            self.changes_outputs |= captured.changes_outputs
        self.inputs = len(inputs)

    def measure(self, part: Part) -> Outcome:
        """What comes of a part, from the journal where it was measured before; raises :class:`GivenUp`.

        A part that did not answer in time is known as such for this time only.
        """
        hung_key = f"{part.key}, {self._timeout_s:g} s"
        known = self._journal.fact(part.key) or self._journal.fact(hung_key)
        if known is not None:
            return self._stored(known)
        self._require_time()
        outcome = self._measured(part)
        self.compiles += outcome.compiled
        self._journal.state({hung_key if outcome.hung else part.key: encode(outcome)})
        self._on_part(part)
        return outcome

    def close(self) -> None:
        """End the process; the next part is measured in another one."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _stored(self, text: str) -> Outcome:
        try:
            return decode(text)
        except ValueError as error:
            raise DataError(f"the journal holds something else than expected: {error}; start the run anew") from error

    def _require_time(self) -> None:
        if self._max_compiles and self.compiles >= self._max_compiles:
            raise GivenUp(f"--max_compiles={self._max_compiles} was reached")
        if self._end is not None and time.monotonic() > self._end:
            raise GivenUp("--max_secs was reached")

    def _measured(self, part: Part) -> Outcome:
        """A part at which the process dies is tried again in a fresh one: an earlier part may be the one to blame."""
        was_fresh = self._session is None
        try:
            return self._call(measure, part, self.inputs)
        except SessionEnded as error:
            self.close()
            if was_fresh or error.hung:
                return Outcome(died=str(error), hung=error.hung, compiled=1)
        try:
            return replace(self._call(measure, part, self.inputs), compiled=2)
        except SessionEnded as error:
            self.close()
            return Outcome(died=str(error), hung=error.hung, compiled=2)

    def _call(self, function: Callable[..., Returned], *arguments: object) -> Returned:
        if self._session is None:
            opener = partial(open_parts, folder=self.folder)
            self._session = open_isolated(self._model, self._reference, self._timeout_s, opener, "--example_timeout")
        return self._session.call(function, *arguments)

    def _save(self, run: int, values: Sequence[Array], tensors: Sequence[int]) -> None:
        folder = self.folder / "values" / str(run)
        os.makedirs(folder, exist_ok=True)
        for tensor, array in zip(tensors, values, strict=True):
            np.save(folder / f"{tensor}.npy", array)
