"""What processes use, with samples summed up by hand."""

from __future__ import annotations

import psutil
import pytest

from evaltools.capture.running import Sample, UsedOverTime, sample_of, usage_events
from evaltools.result.capture import ProcessUse

SAMPLES = [Sample(10.0, 100.0, 3.0, 2), Sample(10.5, 130.0, 3.25, 7), Sample(12.0, 110.0, 6.0, 4)]


def test_samples_are_summed_up() -> None:
    used = UsedOverTime(77, "gpu, worker 0", SAMPLES)
    assert used.use == ProcessUse(77, "gpu, worker 0", 1.5, 340.0 / 3, 130.0, 7)
    assert UsedOverTime(77, "x", samples=SAMPLES[:1]).use.cores == 0.0


def test_processor_time_is_drawn_as_cores_from_the_sample_before_on() -> None:
    events = [(event["name"], event["ts"], event["args"]) for event in usage_events(77, SAMPLES[1], SAMPLES[0])]
    assert events == [
        ("resident memory", 10_500_000.0, {"MB": 130.0}),
        ("threads", 10_500_000.0, {"threads": 7}),
        ("processor", 10_000_000.0, {"cores": 0.5}),
    ]
    assert len(usage_events(77, SAMPLES[0], None)) == 2


def test_a_process_that_is_not_there_has_no_sample() -> None:
    own = psutil.Process()
    sample = sample_of(own, 1.0)
    assert sample is not None
    assert sample.memory_mb == pytest.approx(own.memory_info().rss / 1024**2, rel=0.05)
    gone = psutil.Popen(["true"])
    gone.wait()
    assert sample_of(gone, 1.0) is None
