"""Who has the nodes that a delegate did not take."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evaltools.errors import DelegateTookNothing
from evaltools.runtime import DelegateCoverage, Delegation
from evaltools.runtime.did_not_run import require_delegates_ran


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


def test_a_graph_without_operators_has_nothing_to_take() -> None:
    with pytest.raises(DelegateTookNothing, match="XNNPACK delegate was applied but had nothing to take: the graph"):
        require_delegates_ran(Delegation(0, (DelegateCoverage("XNNPACK", True, 0, 0),), {}))
