"""XNNPACK in CompiledModel: the file of packed weights, believed whatever is in it, and fp16 that is about nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.datasets import sample
from evaltools.errors import ConfigurationUnavailable, DelegateTookNothing, UsageError
from evaltools.model import ModelFile, read_model
from evaltools.runtime import open_session
from evaltools.runtime.compiled.xnnpack import fp16_without_effect
from evaltools.runtime.delegation import require_delegates_ran
from tests import tiny_models
from tests.runtime.openers import model_of, opened, outputs

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")


@pytest.fixture
def classifier(tmp_path: Path) -> ModelFile:
    return model_of(tiny_models.classifier(), tmp_path)


def test_packed_weights_of_another_model_are_refused(classifier: ModelFile, tmp_path: Path) -> None:
    """The runtime would take them, and compute with the wrong weights."""
    text = f"runtime=compiled use_xnnpack=true xnnpack_weight_cache_file_path={tmp_path}/cache"
    plain = outputs(classifier, "runtime=compiled")
    for _ in range(2):
        np.testing.assert_array_equal(outputs(classifier, text)[0], plain[0])
    other = tmp_path / "other"
    other.mkdir()
    retrained = model_of(tiny_models.classifier(seed=1), other)
    with pytest.raises(ConfigurationUnavailable, match="was not made from this model.*delete it or name another"):
        opened(retrained, text)
    (tmp_path / "note").write_text("precious")
    with pytest.raises(ConfigurationUnavailable, match="was not made from this model"):
        opened(classifier, text.replace("/cache", "/note"))
    assert (tmp_path / "note").read_text() == "precious"


def test_packed_weights_that_were_damaged_are_refused(classifier: ModelFile, tmp_path: Path) -> None:
    """The runtime would take them, and compute with the wrong weights."""
    cache = tmp_path / "cache"
    text = f"runtime=compiled use_xnnpack=true xnnpack_weight_cache_file_path={cache}"
    plain = outputs(classifier, text)[0]
    whole = cache.read_bytes()
    middle = len(whole) // 2
    for damaged in (whole[:middle] + bytes(16) + whole[middle + 16 :], whole[:-16], whole + b"\0"):
        cache.write_bytes(damaged)
        with pytest.raises(ConfigurationUnavailable, match="was changed since.*delete it"):
            opened(classifier, text)
    cache.unlink()
    np.testing.assert_array_equal(outputs(classifier, text)[0], plain)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "cache.model", "model.tflite"]


def test_packed_weights_in_memory_leave_no_file(
    classifier: ModelFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    text = "runtime=compiled use_xnnpack=true xnnpack_weight_cache_file_path=:memory:"
    np.testing.assert_array_equal(outputs(classifier, text)[0], outputs(classifier, "runtime=compiled")[0])
    assert not any(Path.cwd().iterdir())


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("xnnpack_weight_cache_file_path=/nowhere/c", UsageError, "its folder does not exist"),
        ("xnnpack_weight_cache_file_path=/", UsageError, "is a folder"),
        ("xnnpack_force_fp16=true xnnpack_weight_cache_file_path=c", ConfigurationUnavailable, "drop one of the two"),
        ("xnnpack_runtime_flags=-1", UsageError, "0 or more"),
        ("use_gpu=true", ConfigurationUnavailable, "leave --use_xnnpack=true out"),
    ],
)
def test_flags_of_xnnpack_that_cannot_be_honoured(
    classifier: ModelFile, text: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        opened(classifier, f"runtime=compiled use_xnnpack=true {text}")


def test_files_that_cannot_be_read_are_the_users_mistake(classifier: ModelFile, tmp_path: Path) -> None:
    text = f"runtime=compiled use_xnnpack=true xnnpack_weight_cache_file_path={tmp_path}/cache"
    outputs(classifier, text)
    (tmp_path / "cache.model").unlink()
    (tmp_path / "cache.model").mkdir()
    with pytest.raises(
        UsageError, match="the note .*cache.model: Is a directory; name a file that can be read and written"
    ):
        opened(classifier, text)


FP16 = Configuration.from_text("x", "runtime=compiled use_xnnpack=true xnnpack_force_fp16=true")
PLAIN = Configuration.from_text("x", "runtime=compiled use_xnnpack=true")


@pytest.mark.parametrize(("dtype", "nothing_to_do"), [("float32", False), ("int8", True)])
def test_fp16_has_nothing_to_do_without_float_operators(tmp_path: Path, dtype: str, nothing_to_do: bool) -> None:
    (tmp_path / "m.tflite").write_bytes(tiny_models.add_chain(length=2, dtype=dtype))
    model = read_model(tmp_path / "m.tflite")
    assert bool(fp16_without_effect(model, FP16)) == nothing_to_do
    assert fp16_without_effect(model, PLAIN) == ""


def test_a_model_without_float_operators_is_not_measured_as_fp16() -> None:
    session = open_session(read_model(sample.model_file("int8")), FP16)
    try:
        with pytest.raises(DelegateTookNothing, match="--xnnpack_force_fp16=true had nothing to do: no operator"):
            require_delegates_ran(session.delegation)
    finally:
        session.close()
