"""A delegate that did not run is never measured, unless the user says so; who has the nodes that it did not take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates.gpu import GPU
from evaltools.engine.opening import NotMeasured, Opened, open_all, open_configuration
from evaltools.errors import ConfigurationUnavailable, DelegateTookNothing, UsageError
from evaltools.model import ModelFile
from evaltools.runtime import DelegateCoverage, Delegation, ProcessSession
from evaltools.runtime.delegation import require_delegates_ran
from tests.runtime.fake import FakeSession

MODEL = ModelFile(Path("m.tflite"), "", 0, (), (), 4, None)


def session_with(*coverage: DelegateCoverage) -> FakeSession:
    return FakeSession(lambda inputs: (inputs[0],), Delegation(4, coverage, {"ADD": 3, "MUL": 1}))


TOOK_NOTHING = DelegateCoverage("EXTERNAL", True, 0, 0)
XNNPACK_TOOK_NOTHING = DelegateCoverage("XNNPACK", True, 0, 0)


@pytest.mark.parametrize("allow", [False, True])
@pytest.mark.parametrize(
    ("text", "coverage", "reason"),
    [
        (
            "external_delegate_path=x",
            [TOOK_NOTHING],
            "the EXTERNAL delegate was applied but took none of the 4 nodes (the CPU keeps ADD x3, MUL x1)",
        ),
        (
            "external_delegate_path=x use_xnnpack=true",
            [DelegateCoverage("EXTERNAL", True, 4, 1), XNNPACK_TOOK_NOTHING],
            "the XNNPACK delegate was applied but took none of the 4 nodes",
        ),
        ("", [DelegateCoverage("XNNPACK", False, 0, 0)], ""),
    ],
    ids=["the only one", "one of two", "nobody asked"],
)
def test_every_delegate_that_was_asked_for_must_take_something(
    text: str, coverage: Sequence[DelegateCoverage], reason: str, allow: bool
) -> None:
    session = session_with(*coverage)
    entry = open_configuration(MODEL, Configuration.from_text("c", text), lambda _model, _configuration: session, allow)
    assert isinstance(entry, Opened) == (allow or not reason) == (not session.closed)
    said = entry.fallback if isinstance(entry, Opened) else entry.reason
    assert said.startswith(reason)
    assert bool(said) == bool(reason)


def without_gpu(_model: ModelFile, configuration: Configuration) -> ProcessSession:
    if GPU in configuration.delegates.requested:
        raise ConfigurationUnavailable("no GPU here", GPU.name)
    return session_with()


@pytest.mark.parametrize("allow", [True, False])
def test_a_delegate_that_cannot_be_created(allow: bool) -> None:
    configuration = Configuration.from_text("c", "use_gpu=true num_interpreter_threads=2")
    entry = open_configuration(MODEL, configuration, without_gpu, allow)
    if allow:
        assert isinstance(entry, Opened)
        assert (entry.fallback, entry.configuration) == ("no GPU here", configuration)
    else:
        assert entry == NotMeasured(configuration, "no GPU here")


def test_a_fallback_names_delegates_as_they_were_asked_for_also_behind_one_that_was_left_out() -> None:
    def without_first_and_third(_model: ModelFile, configuration: Configuration) -> ProcessSession:
        for delegate in configuration.delegates.requested:
            path = configuration.delegates.values_of(delegate)["external_delegate_path"]
            if path in ("a", "c"):
                raise ConfigurationUnavailable(f"{delegate.name} of {path} has no device", delegate.name)
        second, fourth = (delegate.name for delegate in configuration.delegates.requested)
        return session_with(DelegateCoverage(second, True, 3, 1), DelegateCoverage(fourth, True, 0, 0))

    text = " ".join(f"external_delegate_path={path}" for path in "abcd")
    opened = open_configuration(MODEL, Configuration.from_text("c", text), without_first_and_third, True)
    assert isinstance(opened, Opened)
    assert [entry.delegate for entry in opened.session.delegation.delegates] == ["EXTERNAL#2", "EXTERNAL#4"]
    assert opened.fallback == (
        "EXTERNAL of a has no device; EXTERNAL#3 of c has no device; the EXTERNAL#4 delegate was applied but took none "
        "of the 4 nodes (EXTERNAL#2 took 3; the CPU keeps ADD x3, MUL x1)"
    )


def test_what_is_no_delegates_fault_is_not_measured_even_with_fallback() -> None:
    def broken(_model: ModelFile, _configuration: Configuration) -> ProcessSession:
        raise ConfigurationUnavailable("no runtime")

    configuration = Configuration.from_text("c", "use_gpu=true")
    assert open_configuration(MODEL, configuration, broken, True) == NotMeasured(configuration, "no runtime")


def test_sessions_are_closed_when_a_later_one_is_the_users_mistake() -> None:
    session = session_with()

    def second_is_wrong(_model: ModelFile, configuration: Configuration) -> ProcessSession:
        if configuration.name == "b":
            raise UsageError("no such file")
        return session

    both = [Configuration("a"), Configuration("b")]
    with pytest.raises(UsageError), open_all([(MODEL, one) for one in both], second_is_wrong, False):
        pass
    assert session.closed


def test_the_nodes_that_a_delegate_did_not_take_are_where_they_are() -> None:
    def who(cpu: dict[str, int], *taken: DelegateCoverage) -> str:
        idle = DelegateCoverage("EXTERNAL", True, 0, 0)
        with pytest.raises(DelegateTookNothing) as caught:
            require_delegates_ran(Delegation(19, (idle, *taken), cpu))
        return str(caught.value)

    xnnpack = DelegateCoverage("XNNPACK", False, 18, 1)
    assert who({"SOFTMAX": 1}, xnnpack).endswith("none of the 19 nodes (XNNPACK took 18; the CPU keeps SOFTMAX x1)")
    assert who({}, replace(xnnpack, nodes=19)).endswith("(XNNPACK took 19)")
    six = dict.fromkeys("ABCDEF", 1)
    assert who(six).endswith("(the CPU keeps A x1, B x1, C x1, D x1, E x1, and 1 more)")
    assert who(dict.fromkeys("ABCDE", 1)).endswith("D x1, E x1)")


def test_a_setting_that_had_nothing_to_do_is_not_measured() -> None:
    everything = DelegateCoverage("XNNPACK", True, 19, 1)
    require_delegates_ran(Delegation(19, (everything,), {}))
    with pytest.raises(DelegateTookNothing, match="^fp16 had nothing to do$"):
        require_delegates_ran(Delegation(19, (everything,), {}, without_effect="fp16 had nothing to do"))
