"""The options that tasks have in common, so that one word means one thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaltools.configuration import OWN_PARAMETERS
from evaltools.delegates import COMMON, DELEGATES
from evaltools.parameter import Parameter
from evaltools.tasks.shared.options import configurations, execution


def with_shared_options(own: Mapping[str, Sequence[Parameter]], one_worker: bool) -> dict[str, Sequence[Parameter]]:
    """The options of a task under their headings, and behind them those of every task.

    ``one_worker``: unless more are asked for, for its latency is that of all examples.
    """
    return {
        **own,
        "execution": execution.PARAMETERS_WITH_ONE_WORKER if one_worker else execution.PARAMETERS,
        "configurations": (*configurations.PARAMETERS, *OWN_PARAMETERS),
        **{f"delegate {delegate.name}": delegate.parameters for delegate in DELEGATES},
        "delegates, common": COMMON,
    }
