"""Calls as events and figures, worked out by hand."""

from __future__ import annotations

from evaltools.capture.recorder import Recorder
from evaltools.result.capture import CallFigures


class Model:
    """Stands for an object of a runtime, which lists no operators."""


def record(
    recorder: Recorder,
    model: Model | None,
    start_us: int,
    duration_us: int,
    kind: str = "invoke",
    source: str | bytes = "",
) -> None:
    recorder.called("litert", kind, model, start_us * 1000, duration_us * 1000, source=source)


def test_of_a_call_that_had_begun_before_the_rest_is_drawn() -> None:
    recorder, model = Recorder(77, 100_000), Model()
    record(recorder, model, 90, 30)
    record(recorder, model, 120, 10)
    work = [(event["ts"], event["dur"], event["pid"]) for event in recorder.events() if event["ph"] == "X"]
    assert work == [(0.0, 20.0, 77), (20.0, 10.0, 77)]
    assert list(recorder.events()) == [], "they are fetched once"


def test_figures_are_of_all_calls_of_a_kind() -> None:
    recorder, model = Recorder(77, 0), Model()
    for duration_us in (9000, 1000, 2000):
        record(recorder, model, 0, duration_us)
    (found,) = recorder.models()
    assert found.calls == {"invoke": CallFigures(3, 0, 12.0, 9.0, 2.0, 1.0, 9.0)}
    assert found.nodes is None


def test_models_are_distinguished_and_named_after_what_they_were_opened_from() -> None:
    recorder = Recorder(77, 0)
    models = [Model() for _ in range(4)]
    sources: tuple[str | bytes, ...] = ("a/m.tflite", "b/m.tflite", b"12345", "")
    for model, source in zip(models, sources, strict=True):
        record(recorder, model, 0, 1, "open", source)
        record(recorder, model, 1, 1)
    record(recorder, None, 2, 1, "read output")
    assert [(found.name, sum(each.calls for each in found.calls.values())) for found in recorder.models()] == [
        ("m.tflite", 2),
        ("m.tflite #2", 2),
        ("model of 5 bytes", 2),
        ("model opened before", 2),
        ("tensor buffers", 1),
    ]


def test_a_model_that_is_gone_is_still_told_of_and_another_is_not_taken_for_it() -> None:
    recorder = Recorder(77, 0)
    for _ in range(3):
        record(recorder, Model(), 0, 1)
    assert [found.calls["invoke"].calls for found in recorder.models()] == [1, 1, 1]
