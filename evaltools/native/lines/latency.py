"""A latency as the native tools write it."""

from __future__ import annotations

from typing import Any

from evaltools.metrics.latency import Latency


def fill_latency(message: Any, latency: Latency, with_std: bool = True) -> None:
    """Fill a ``LatencyMetrics``."""
    message.last_us = latency.last_us
    message.max_us = latency.max_us
    message.min_us = latency.min_us
    message.sum_us = latency.sum_us
    message.avg_us = latency.avg_us
    if with_std:
        message.std_deviation_us = latency.std_us
