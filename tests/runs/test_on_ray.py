"""A Ray that does not start: it raises what only a busy machine makes it raise, so that it is imitated here."""

from __future__ import annotations

import signal

import pytest

from evaltools.errors import UsageError
from evaltools.runs.on_ray import joined


class LateRay:
    """A Ray whose node does not start in time, after it has taken a signal for itself."""

    def __init__(self) -> None:
        self.is_shut_down = False

    def init(self, **_settings: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Exception("The current node timed out during startup.")

    def shutdown(self) -> None:
        self.is_shut_down = True


def test_a_node_that_does_not_start_in_time_is_told_and_leaves_nothing() -> None:
    ray, before = LateRay(), signal.getsignal(signal.SIGTERM)
    said = r"^Ray cannot be started here: The current node timed out during startup; try .* leave --executor=ray out$"
    with pytest.raises(UsageError, match=said), joined(ray, ""):
        pytest.fail("no cluster was joined")
    assert ray.is_shut_down
    assert signal.getsignal(signal.SIGTERM) is before
