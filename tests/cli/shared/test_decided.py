"""What is decided beside the start of a command."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from evaltools.cli.shared.decided import Decided, decided_beside
from evaltools.errors import UsageError
from evaltools.request import Request
from tests.requests import flags_of, request_of


def deciding(monkeypatch: pytest.MonkeyPatch, decide: Callable[[Request], tuple[Request, str]]) -> None:
    monkeypatch.setattr("evaltools.candidates.with_tests_here", lambda request, _ahead: decide(request))


@pytest.mark.parametrize(("flags", "said"), [((), "no GPU"), (("--quiet",), "")])
def test_what_is_missing_is_told_unless_quiet(
    monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], said: str
) -> None:
    asked, other = request_of("imagenet", *flags), request_of("coco")
    deciding(monkeypatch, lambda request: (other, "no GPU"))
    with decided_beside(flags_of("imagenet", *flags), asked) as decided:
        assert decided() == Decided(other, said)
    with decided_beside(flags_of("imagenet", *flags, "--kernels=default"), asked) as decided:
        assert decided() == Decided(asked)


def test_an_error_is_that_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_request: Request) -> tuple[Request, str]:
        raise UsageError("no such model")

    deciding(monkeypatch, wrong)
    with (
        pytest.raises(UsageError, match="no such model"),
        decided_beside(flags_of("imagenet"), request_of("imagenet")) as decided,
    ):
        decided()


def test_ctrl_c_leaves_no_one_deciding(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would have children while the command ends all of them."""
    ended = []

    def slow(request: Request) -> tuple[Request, str]:
        time.sleep(0.2)
        ended.append(1)
        return request, ""

    deciding(monkeypatch, slow)
    with pytest.raises(KeyboardInterrupt), decided_beside(flags_of("imagenet"), request_of("imagenet")):
        raise KeyboardInterrupt
    assert ended == [1]
