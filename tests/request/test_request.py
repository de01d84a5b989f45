"""Requests as values: what was stated, and that nothing is lost on the way to another process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltools.configuration import Configuration
from evaltools.errors import UsageError
from evaltools.known_tasks import task_command
from evaltools.request import Options
from evaltools.request.plain import from_plain, to_plain
from evaltools.tasks.framework.request import flags_to_repeat
from tests.requests import request_of

WORDS = {
    "imagenet": ["--label_offset=0", "--margin=1 point", "--config=a b: use_xnnpack=1 num_threads=2", "--workers=2"],
    "coco": ["--resize=letterbox", "--letterbox_fill=0", "--score_threshold=0.25", "--reference=none"],
    "inference_diff": [
        "--input_range=a:0:1", "--input_range=b:-1:1e-3", "--max_quanta=2", "--use_external_delegate=1",
        "--reference=kernels=reference", "--num_runs=7",
    ],
}  # fmt: skip


def options(**values: object) -> Options:
    return Options.of(values, task_command("inference_diff").parameters)


@pytest.mark.parametrize("task", WORDS)
def test_a_request_is_the_same_after_json(task: str) -> None:
    words = [word for word in WORDS[task] if "external" not in word]
    request = request_of(task, *words)
    assert from_plain(json.loads(json.dumps(to_plain(request))), {}) == request


def test_delegates_keep_their_order_and_their_options_after_json() -> None:
    text = "use_xnnpack=true external_delegate_path=a.so external_delegate_options=k:v external_delegate_path=b.so"
    request = request_of("imagenet", f"--config=x: {text}")
    (configuration,) = from_plain(to_plain(request), {}).tests
    assert configuration == Configuration.from_text("x", text)
    assert [delegate.name for delegate in configuration.delegates.requested] == ["XNNPACK", "EXTERNAL", "EXTERNAL#2"]


def test_a_native_shorthand_means_the_same_after_json() -> None:
    request = request_of("imagenet", "--compat=native", "--delegate=xnnpack")
    (configuration,) = request.tests
    assert from_plain(to_plain(request), {}).tests == (configuration,)
    assert "--xnnpack_force_fp16=true" in configuration.to_flags()


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        (None, "a request of version None"),
        ({"version": 1}, "a request of version 1; this evaltools reads version 2"),
        ({"version": 2}, "no request: Object missing required field"),
    ],
)
def test_what_is_no_request_is_refused(plain: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        from_plain(plain, {})


def test_options_of_python_are_parsed_as_those_of_a_command_line() -> None:
    stated = options(num_runs=7, allow_model_mismatch=True, input_range=["a:0:1"], save_outputs=Path("saved"))
    assert (stated.number("num_runs"), stated.is_on("allow_model_mismatch")) == (7, True)
    assert (stated.texts("input_range"), stated.path("save_outputs")) == (["a:0:1"], Path("saved"))
    assert options(input_range="a:0:1").texts("input_range") == ["a:0:1"]
    assert "seed" not in options(seed=None)
    with pytest.raises(UsageError, match="--num_runs=many: not a valid value"):
        options(num_runs="many")
    with pytest.raises(UsageError, match=r"--num_run: no such flag\. Did you mean num_runs\?"):
        options(num_run=7)


def test_the_identity_of_a_run_is_of_values_not_of_their_spelling() -> None:
    def identity(*words: str) -> dict[str, str]:
        return flags_to_repeat(request_of("imagenet", *words).options)

    assert identity("--num_images=07") == identity("--num-images", "7") == {"--num_images": "7"}
    assert identity("--nolabel_check") == identity("--label_check=0")
    assert identity("--num_images=0") == identity(), "a default that is stated changes nothing"
    assert identity("--label_offset=0") != identity(), "but here to state it means something of its own"
    assert identity("--workers=3", "--margin=10 points", "--progress=none") == identity(), "they change no record"
    assert identity("--use_gpu=1") == identity(), "configurations are compared as what they ran on"


def test_input_files_are_the_same_wherever_they_lie() -> None:
    def identity(text: str) -> dict[str, str]:
        return flags_to_repeat(request_of("inference_diff", f"--input_files={text}").options)

    assert identity("in=/data/a.npy") == identity("in=a.npy") == identity("in=other/a.npy")
    assert identity("in=a.npy") != identity("out=a.npy")
    assert identity("in=a.npy") != identity("in=b.npy")
