"""Native code that aborts, hangs or fails costs its own configuration one example, and nobody else anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.datasets import sample
from evaltools.preprocess import ImageToTensor, decode_image
from tests.cli.evaluate.sample_runs import PICTURES, XNNPACK, figures_here, imagenet

pytestmark = pytest.mark.once

BAD_PICTURE = "0002.jpg"


@pytest.fixture(scope="module")
def fail_at() -> str:
    """The option that names the first input value of the bad picture, which no other picture has."""
    to_tensor = ImageToTensor(64, 64, np.dtype(np.float32))
    pictures = sorted(sample.images_dir().iterdir())[:PICTURES]
    values = {path.name: to_tensor(decode_image(path)).ravel().tolist()[0] for path in pictures}
    assert list(values.values()).count(values[BAD_PICTURE]) == 1
    return f"fail_at:{values[BAD_PICTURE]!r}"


def command(library: Path, options: str, *more: str) -> list[str]:
    """XNNPACK, and beside it the delegate with options that make it fail."""
    bad = f"bad: external_delegate_path={library} external_delegate_options={options} use_xnnpack=false"
    return imagenet(XNNPACK, "--config", bad, "--record_examples=true", *more)


@pytest.fixture(scope="module")
def undisturbed(rounding_delegate: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    output = tmp_path_factory.mktemp("undisturbed") / "result.json"
    return figures_here(command(rounding_delegate, "precision:fp16", "--workers=1"), output)


def without_bad(found: Any, example: str | None = BAD_PICTURE) -> Any:
    """A result without figures of the bad configuration, and without what it said of one example, None: of any."""
    return {
        **found,
        "rows": [entry for entry in found["rows"] if entry["name"] != "bad"],
        "failed": [entry for entry in found["failed"] if entry["configuration"] != "bad"],
        "notes": [note for note in found["notes"] if not note["text"].startswith("bad: not clean: ")],
        "blocks": [],
        "tables": {name: _rows_without_bad(table, example) for name, table in found["tables"].items()},
    }


def _rows_without_bad(columns: Any, example: str | None) -> Any:
    kept = [
        name != "bad" or example not in (None, each)
        for name, each in zip(columns["configuration"], columns["example"], strict=True)
    ]
    return {name: [value for value, keep in zip(column, kept, strict=True) if keep] for name, column in columns.items()}


def entry_of_bad(found: Any) -> Any:
    (entry,) = (entry for entry in found["rows"] if entry["name"] == "bad")
    return entry


@pytest.mark.usefixtures("time_out_of_runs")
@pytest.mark.parametrize(
    ("fail", "reason"),
    [
        (
            "abort",
            "the process of this configuration died during a run (SIGABRT); "
            "it printed last: rounding_delegate: abort, as option fail asks",
        ),
        (
            "hang",
            "no answer within 2 s during a run; it printed last: rounding_delegate: hang, as option fail asks; "
            "it was ended; --example_timeout=SECONDS allows more",
        ),
        ("invoke", "invoke fails, as option fail asks"),
    ],
)
def test_one_example_is_lost_for_one_configuration(
    rounding_delegate: Path, fail_at: str, undisturbed: Any, tmp_path: Path, fail: str, reason: str
) -> None:
    flags = ("--workers=2", f"--example_timeout={2 if fail == 'hang' else 60}")
    found = figures_here(command(rounding_delegate, f"fail:{fail};{fail_at}", *flags), tmp_path / "result.json", 4)
    (failed,) = found["failed"]
    assert (failed["example"], failed["configuration"], failed["stage"]) == (BAD_PICTURE, "bad", "inference")
    assert failed["reason"] == reason or (fail == "invoke" and reason in failed["reason"])
    assert without_bad(found) == without_bad(undisturbed)
    bad = entry_of_bad(found)
    counts = [bad["figures"][name]["value"] for name in ("failed_examples", "examples")]
    assert (bad["status"], counts) == ("measured", [1, PICTURES - 1])
    assert bad["figures"]["top1"]["count"] == PICTURES - 1


def test_a_configuration_that_always_aborts_is_not_measured(
    rounding_delegate: Path, undisturbed: Any, tmp_path: Path
) -> None:
    found = [
        figures_here(
            command(rounding_delegate, "fail:abort", f"--workers={workers}"), tmp_path / f"{workers}.json", code=3
        )
        for workers in (1, 2)
    ]
    assert found[0] == found[1]
    assert without_bad(found[0], None) == without_bad(undisturbed, None)
    bad = entry_of_bad(found[0])
    assert bad["status"] == "not measured"
    assert bad["figures"]["failed_examples"]["value"] == 3
    assert "top1" not in bad["figures"]
    assert bad["reason"] == (
        "its process died or hung too often in a row (--max_crashes); the last time: the process of this configuration "
        "died during a run (SIGABRT); it printed last: rounding_delegate: abort, as option fail asks"
    )
    assert [entry["example"] for entry in found[0]["failed"]] == ["0001.jpg", "0002.jpg", "0003.jpg"]
